//! A drawn benchmark whose truth is known.
//!
//! Each case is a scene of small objects before a painted background, an instruction that means
//! one or several of them, and what nine [`Editor`]s of known behaviour make of it. The same seed
//! gives the same bytes everywhere, and a case does not depend on how many others are drawn.
//!
//! ```no_run
//! let case = deeplook::dataset::draw::case(7, 0)?;
//! println!("{}: {}", case.kind.name(), case.instruction);
//! # Ok::<(), deeplook::dataset::draw::DrawError>(())
//! ```

mod background;
mod canvas;
mod colour;
mod edit;
mod editors;
mod filter;
mod letters;
mod plan;
mod random;
mod shape;
mod surface;
#[cfg(test)]
mod tests;
mod thing;
mod write;

use deeplook_tools::{Picture, PixelBox};

pub use colour::{Colour, Material};
pub use editors::Editor;
pub use letters::WORDS;
pub use thing::Thing;
pub use write::{DrawError, MOST_CASES, Made, make};

use edit::Edit;
use plan::{Plan, Slot};
use random::Random;

/// The labels' names.
pub mod label {
    /// Instruction following: done as asked.
    pub const FLAWLESS: &str = "Flawless Execution";
    /// Instruction following: done, and the object changed beyond it.
    pub const OVER_MODIFIED: &str = "Over Modification";
    /// Instruction following: the right object, the wrong change.
    pub const WRONG_ACTION: &str = "Wrong Action";
    /// Instruction following: the target was not edited.
    pub const NOT_LOCALISED: &str = "Localization Failure";
    /// Visual consistency: nothing else changed.
    pub const PERFECT: &str = "Perfect Consistency";
    /// Visual consistency: one other thing changed.
    pub const SINGLE: &str = "Single Anomaly";
    /// Visual consistency: two or more other things changed.
    pub const MULTIPLE: &str = "Multiple Anomalies";
    /// Visual consistency: another place or style.
    pub const COLLAPSE: &str = "Scene Collapse";
}

/// The type of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Kind {
    ChangeMaterial,
    ChangeColor,
    ChangeOcr,
    ChangeShape,
    RemovalObject,
    ReplaceObject,
    ChangeCount,
}

impl Kind {
    /// Every type, in the order in which cases go through them.
    pub const ALL: [Self; 7] = [
        Self::ChangeMaterial,
        Self::ChangeColor,
        Self::ChangeOcr,
        Self::ChangeShape,
        Self::RemovalObject,
        Self::ReplaceObject,
        Self::ChangeCount,
    ];

    /// The type's name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChangeMaterial => "Change Material",
            Self::ChangeColor => "Change Color",
            Self::ChangeOcr => "Change OCR",
            Self::ChangeShape => "Change Shape",
            Self::RemovalObject => "Removal Object",
            Self::ReplaceObject => "Replace Object",
            Self::ChangeCount => "Change Count",
        }
    }
}

/// A case as it was drawn.
#[derive(Debug, Clone)]
pub struct DrawnCase {
    /// Its name: the number from 1, in four digits.
    pub id: String,
    /// The picture before the edit.
    pub source: Picture,
    /// What a perfect edit gives, with other grain.
    pub reference: Picture,
    /// What the editors were asked to do.
    pub instruction: String,
    /// The instruction's type.
    pub kind: Kind,
    /// A phrase of [`vocabulary`] that fits the annotated objects and nothing else in the source.
    pub target: String,
    /// The annotated objects: tight boxes of whole pixels in the source.
    pub boxes: Vec<PixelBox>,
    /// Where the edit shows when done as asked: the targets before and after, and what is added.
    pub touched: Vec<PixelBox>,
    /// Every object of the source.
    pub objects: Vec<DrawnObject>,
    /// What each editor made of it. An editor whose truth would be debatable is missing.
    pub edits: Vec<DrawnEdit>,
}

/// An object of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnObject {
    /// The phrase of [`vocabulary`] that fits it.
    pub phrase: String,
    /// Its tight box.
    pub bounds: PixelBox,
    /// True where the instruction means it.
    pub target: bool,
}

/// One editor's picture and its true labels.
#[derive(Debug, Clone)]
pub struct DrawnEdit {
    /// Who made it.
    pub editor: Editor,
    /// The edited picture.
    pub picture: Picture,
    /// The label for instruction following.
    pub if_label: &'static str,
    /// The label for visual consistency.
    pub vc_label: &'static str,
}

/// Draws one case of a benchmark in memory.
pub fn case(seed: u64, index: usize) -> Result<DrawnCase, DrawError> {
    let number = index as u64;
    Plan::new(seed, number)
        .and_then(|plan| draw(&plan, seed, number))
        .ok_or(DrawError::NoRoom { seed, index })
}

/// Draws only the source of a case, with all its objects: enough to teach a detector.
pub fn scene(seed: u64, index: usize) -> Result<(Picture, Vec<DrawnObject>), DrawError> {
    let draw = || {
        let plan = Plan::new(seed, index as u64)?;
        Some((plan.draw(&plan.slots, plan.finish)?, objects(&plan)))
    };
    draw().ok_or(DrawError::NoRoom { seed, index })
}

/// Every phrase that [`DrawnCase::target`] and [`DrawnObject::phrase`] can hold: each colour and
/// each material with each thing, and a sign with each word.
pub fn vocabulary() -> Vec<String> {
    let adjectives = Colour::ALL.map(Colour::name).into_iter();
    let adjectives: Vec<&str> = adjectives.chain(Material::ALL.map(Material::name)).collect();
    let things = [Thing::SHAPES, Thing::THINGS].concat();
    let mut phrases = Vec::new();
    for adjective in adjectives {
        phrases.extend(things.iter().map(|thing| format!("{adjective} {}", thing.name())));
    }
    phrases.extend(WORDS.map(|word| thing::Look::sign(word, Colour::White).phrase()));
    phrases
}

fn objects(plan: &Plan) -> Vec<DrawnObject> {
    let shown = plan.slots.iter().filter(|slot| slot.shown);
    shown
        .map(|slot| DrawnObject {
            phrase: slot.object.look.phrase(),
            bounds: slot.bounds,
            target: slot.role == plan::Role::Target,
        })
        .collect()
}

fn draw(plan: &Plan, seed: u64, index: u64) -> Option<DrawnCase> {
    let look = plan.look()?;
    let mut random = Random::new(seed, index, 3);
    let boxes: Vec<PixelBox> = plan.targets().map(|slot| slot.bounds).collect();
    let edited = editors::edited(plan);
    let changed = |(before, after): (&Slot, &Slot)| {
        let meant = matches!(before.role, plan::Role::Target | plan::Role::Wanted);
        (meant && (before.shown || after.shown))
            .then(|| before.bounds.union(&after.object.bounds()))
    };
    let other_grain = canvas::Finish { seed: random.seed(), ..plan.finish };
    Some(DrawnCase {
        id: format!("{:04}", index + 1),
        source: plan.draw(&plan.slots, plan.finish)?,
        reference: plan.draw(&edited, other_grain)?,
        instruction: edit::instruction(plan.edit, look, boxes.len(), &mut random),
        kind: plan.kind,
        target: look.phrase(),
        touched: plan.slots.iter().zip(&edited).filter_map(changed).collect(),
        boxes,
        objects: objects(plan),
        edits: editors::edits(plan, seed, index),
    })
}
