//! Simulated editors: each makes one sort of mistake, or none, and hence has known labels.

use super::colour::{Colour, Material, contrast};
use super::filter::{recompressed, regenerated};
use super::plan::{Plan, Role, Slot, gap};
use super::random::Random;
use super::thing::{Look, Thing};
use super::{DrawnEdit, Edit, Kind, label};

/// An editor of known behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Editor {
    /// Does what is asked and nothing else.
    Perfect,
    /// Returns the source, at times recompressed.
    NoOp,
    /// Does what is asked to another object and leaves the target alone.
    WrongObject,
    /// Does something else to the right object.
    WrongAction,
    /// Does what is asked, and more, to the right object.
    OverModifies,
    /// Does what is asked and spoils one thing elsewhere.
    HarmsOnce,
    /// Does what is asked and spoils two to four things elsewhere.
    HarmsSeveral,
    /// Does what is asked, but every pixel is made anew: blur, noise, a small shift, a tint.
    Regenerates,
    /// Returns quite another scene.
    Collapses,
}

impl Editor {
    /// Every editor.
    pub const ALL: [Self; 9] = [
        Self::Perfect,
        Self::NoOp,
        Self::WrongObject,
        Self::WrongAction,
        Self::OverModifies,
        Self::HarmsOnce,
        Self::HarmsSeveral,
        Self::Regenerates,
        Self::Collapses,
    ];

    /// The editor's name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Perfect => "perfect",
            Self::NoOp => "no-op",
            Self::WrongObject => "wrong-object",
            Self::WrongAction => "wrong-action",
            Self::OverModifies => "over-modifies",
            Self::HarmsOnce => "harms-once",
            Self::HarmsSeveral => "harms-several",
            Self::Regenerates => "regenerates",
            Self::Collapses => "collapses",
        }
    }

    /// The true labels of its edits: instruction following, visual consistency.
    pub fn truth(self) -> (&'static str, &'static str) {
        match self {
            Self::Perfect | Self::Regenerates => (label::FLAWLESS, label::PERFECT),
            Self::NoOp => (label::NOT_LOCALISED, label::PERFECT),
            Self::WrongObject => (label::NOT_LOCALISED, label::SINGLE),
            Self::WrongAction => (label::WRONG_ACTION, label::PERFECT),
            Self::OverModifies => (label::OVER_MODIFIED, label::PERFECT),
            Self::HarmsOnce => (label::FLAWLESS, label::SINGLE),
            Self::HarmsSeveral => (label::FLAWLESS, label::MULTIPLE),
            Self::Collapses => (label::NOT_LOCALISED, label::COLLAPSE),
        }
    }
}

/// What every editor makes of a plan. An editor whose mistake makes no sense there is left out.
pub(super) fn edits(plan: &Plan, seed: u64, index: u64) -> Vec<DrawnEdit> {
    let picture = |editor: Editor, random: &mut Random| {
        let draw = |slots: &[Slot]| plan.draw(slots, plan.finish);
        match editor {
            Editor::Perfect => draw(&edited(plan)),
            Editor::NoOp => {
                let source = draw(&plan.slots)?;
                if random.chance(0.5) { recompressed(&source, random) } else { Some(source) }
            }
            Editor::WrongObject => draw(&wrong_object(plan, random)?),
            Editor::WrongAction => draw(&wrong_action(plan, random)?),
            Editor::OverModifies => draw(&over_modified(plan, random)?),
            Editor::HarmsOnce => draw(&harmed(plan, 1, random)?),
            Editor::HarmsSeveral => {
                let most = 2 + random.below(3);
                (2..=most)
                    .rev()
                    .find_map(|count| harmed(plan, count, random))
                    .and_then(|s| draw(&s))
            }
            Editor::Regenerates => regenerated(&draw(&edited(plan))?, random),
            Editor::Collapses => elsewhere(plan, random),
        }
    };
    let one = |editor: Editor| {
        let mut random = Random::new(seed, index, 100 + editor as u64);
        let picture = picture(editor, &mut random)?;
        let (if_label, vc_label) = editor.truth();
        Some(DrawnEdit { editor, picture, if_label, vc_label })
    };
    Editor::ALL.into_iter().filter_map(one).collect()
}

/// True where every mistake can be made in this plan.
pub(super) fn can_all_err(plan: &Plan, random: &mut Random) -> bool {
    wrong_object(plan, random).is_some()
        && wrong_action(plan, random).is_some()
        && harmed(plan, 2, random).is_some()
}

fn is_target(slot: &Slot) -> bool {
    slot.role == Role::Target
}

/// Every object after the edit was done as asked.
pub(super) fn edited(plan: &Plan) -> Vec<Slot> {
    let mut slots = plan.slots.clone();
    if let Edit::Count { to, .. } = plan.edit {
        show_count(&mut slots, to);
        return slots;
    }
    for slot in slots.iter_mut().filter(|slot| is_target(slot)) {
        change(slot, plan.edit.applied(slot.object.look));
    }
    slots
}

/// Shows `count` of the counted objects.
fn show_count(slots: &mut [Slot], count: usize) {
    let counted = |slot: &&mut Slot| matches!(slot.role, Role::Target | Role::Wanted);
    for (number, slot) in slots.iter_mut().filter(counted).enumerate() {
        slot.shown = number < count;
    }
}

fn change(slot: &mut Slot, look: Option<Look>) {
    match look {
        Some(look) => slot.object = slot.object.looking(look),
        None => slot.shown = false,
    }
}

/// True where the look stands out from what lies behind the object.
fn stands_out(slot: &Slot, look: &Look) -> bool {
    contrast(look.mean(), slot.ground) > 0.35
}

/// True where the look could be taken for the target, before or after the edit.
fn misleads(plan: &Plan, look: &Look) -> bool {
    let targets = plan.look().into_iter().chain(plan.look().and_then(|l| plan.edit.applied(l)));
    targets.into_iter().any(|target| target.clashes(look))
}

/// The edit done to one bystander instead.
fn wrong_object(plan: &Plan, random: &mut Random) -> Option<Vec<Slot>> {
    let target = plan.look()?;
    let mut slots = plan.slots.clone();
    let fits = |slot: &Slot| {
        let look = slot.object.look;
        let signs_only = matches!(plan.edit, Edit::Word(_));
        let kin = look.thing == target.thing || look.colour == target.colour;
        slot.role == Role::Bystander
            && signs_only == (look.thing == Thing::Sign)
            && match plan.edit {
                Edit::Remove | Edit::Count { .. } => true,
                Edit::Word(word) => word != look.word,
                Edit::Colour(_) if look.material.is_some() => false,
                Edit::Shape(_) if !Thing::SHAPES.contains(&look.thing) => false,
                edit => edit.applied(look).is_some_and(|new| {
                    new.differs_clearly(&look) && stands_out(slot, &new) && (kin || look != target)
                }),
            }
    };
    let mut able: Vec<usize> = (0..slots.len()).filter(|at| fits(&slots[*at])).collect();
    random.shuffle(&mut able);
    // The likeliest mistake is the most similar object.
    able.sort_by_key(|at| slots[*at].object.look.thing != target.thing);
    if let Edit::Count { from, to } = plan.edit {
        let of_role = |role: Role| slots.iter().position(|slot| slot.role == role);
        let at = if to > from { of_role(Role::Spare) } else { able.first().copied() }?;
        slots[at].shown = to > from;
        return Some(slots);
    }
    let slot = slots.get_mut(*able.first()?)?;
    change(slot, plan.edit.applied(slot.object.look));
    Some(slots)
}

/// Something else done to every target.
fn wrong_action(plan: &Plan, random: &mut Random) -> Option<Vec<Slot>> {
    let look = plan.look()?;
    let asked = plan.edit.applied(look);
    let visible = |new: &Look| {
        plan.targets().all(|slot| stands_out(slot, new)) && asked.is_none_or(|a| a != *new)
    };
    let mut slots = plan.slots.clone();
    if let Edit::Count { from, to } = plan.edit {
        let room = slots.iter().filter(|s| matches!(s.role, Role::Target | Role::Wanted)).count();
        let counts: Vec<usize> = match to > from {
            true => (from + 1..=room).filter(|count| *count != to).collect(),
            false => (0..from).filter(|count| *count != to).collect(),
        };
        show_count(&mut slots, random.pick(&counts)?);
        return Some(slots);
    }
    let removes = random.chance(0.2);
    let wrong = match plan.edit {
        Edit::Colour(_) | Edit::Material(_) | Edit::Replace(_) if removes => None,
        edit => {
            let mut propose = || match edit {
                Edit::Material(right) => {
                    let done = Look { material: Some(right), ..look };
                    Edit::other_material(look, &[look, done], random)
                        .map(|material| Look { material: Some(material), ..look })
                }
                Edit::Colour(right) => Edit::other_colour(&[look.colour, right], random)
                    .map(|colour| Look { colour, ..look }),
                Edit::Word(right) => {
                    Edit::other_word(&[look.word, right], random).map(|word| Look { word, ..look })
                }
                Edit::Shape(right) => Edit::other_shape(&[look.thing, right], random)
                    .map(|thing| Look { thing, ..look }),
                Edit::Replace(right) => Edit::other_object(&[look, right], random),
                // A removed object that is still to be seen in another colour might be called
                // untouched; something else in its place cannot.
                Edit::Remove => Edit::other_object(&[look], random),
                Edit::Count { .. } => None,
            };
            let proposed = (0..40).find_map(|_| propose().filter(visible));
            // A material for which there is no third one goes altogether.
            if !matches!(edit, Edit::Material(_)) && proposed.is_none() {
                return None;
            }
            proposed
        }
    };
    for slot in slots.iter_mut().filter(|slot| is_target(slot)) {
        change(slot, wrong);
    }
    Some(slots)
}

/// The edit done, and the targets changed beyond it.
fn over_modified(plan: &Plan, random: &mut Random) -> Option<Vec<Slot>> {
    let look = plan.look()?;
    let done = plan.edit.applied(look)?;
    let mut slots = edited(plan);
    let targets: Vec<usize> = (0..slots.len())
        .filter(|at| slots[*at].shown && matches!(slots[*at].role, Role::Target | Role::Wanted))
        .collect();
    let smallest = targets.iter().map(|at| slots[*at].object.scale).fold(f32::MAX, f32::min);
    let clear = |new: &Look| targets.iter().all(|at| stands_out(&slots[*at], new));
    let patterned = |colour: Colour, random: &mut Random| {
        random.pick(&Material::PATTERNS).map(|m| Look { material: Some(m), colour, ..done })
    };
    let beyond = match plan.kind {
        // What is gone cannot be changed too much, and what replaces has no former details.
        Kind::RemovalObject | Kind::ReplaceObject => return None,
        Kind::ChangeOcr => (0..40).find_map(|_| {
            let colour = Edit::other_colour(&[look.colour], random)?;
            Some(Look { colour, ..done }).filter(clear)
        }),
        Kind::ChangeShape => (0..40).find_map(|_| {
            let colour = Edit::other_colour(&[look.colour], random)?;
            let new = Look { colour, material: None, ..done };
            Some(new).filter(|new| clear(new) && contrast(new.mean(), look.mean()) > 0.45)
        }),
        Kind::ChangeColor if smallest > 22.0 && random.chance(0.4) => {
            patterned(done.colour, random).filter(clear)
        }
        Kind::ChangeColor | Kind::ChangeMaterial if random.chance(0.5) => {
            Edit::other_shape(&[look.thing], random).map(|thing| Look { thing, ..done })
        }
        _ => None,
    };
    let blur = plan.kind == Kind::ChangeColor && random.chance(0.35);
    let grows = random.chance(0.6);
    let room = |at: usize| {
        let bounds = slots[at].bounds;
        let need = bounds.width().max(bounds.height()) * 0.6;
        let size = plan.backdrop.canvas.size;
        slots.iter().enumerate().all(|(i, s)| i == at || gap(&s.bounds, &bounds) > need)
            && bounds.grown(need, need).clipped(size) == bounds.grown(need, need)
    };
    let factor = if grows && targets.iter().all(|at| room(*at)) { 1.6 } else { 0.6 };
    for at in targets {
        let slot = &mut slots[at];
        match beyond {
            Some(look) => slot.object = slot.object.looking(look),
            None if blur => slot.object.blur = 0.8,
            None => slot.object = slot.object.scaled(factor),
        }
    }
    Some(slots)
}

/// The edit done, and `count` things spoilt that are far from the targets and from each other.
fn harmed(plan: &Plan, count: usize, random: &mut Random) -> Option<Vec<Slot>> {
    let mut slots = edited(plan);
    let mut order: Vec<usize> = (0..slots.len()).collect();
    random.shuffle(&mut order);
    let meant = |slot: &Slot| matches!(slot.role, Role::Target | Role::Wanted);
    let mut spoilt: Vec<usize> = Vec::new();
    for at in order {
        let far = |other: &Slot| gap(&slots[at].bounds, &other.bounds) >= plan.apart();
        if spoilt.len() < count
            && !meant(&slots[at])
            && slots.iter().filter(|slot| meant(slot)).all(far)
            && spoilt.iter().all(|other| far(&slots[*other]))
        {
            spoil(plan, &mut slots[at], random);
            spoilt.push(at);
        }
    }
    (spoilt.len() == count).then_some(slots)
}

/// Adds, removes, recolours, exchanges or distorts one object.
fn spoil(plan: &Plan, slot: &mut Slot, random: &mut Random) {
    if slot.role == Role::Spare {
        slot.shown = true;
        return;
    }
    let look = slot.object.look;
    let fits =
        |new: &Look| stands_out(slot, new) && !misleads(plan, new) && new.differs_clearly(&look);
    let new = match random.below(4) {
        0 => {
            slot.shown = false;
            return;
        }
        1 => None,
        2 if look.material.is_none() => (0..20).find_map(|_| {
            let colour = Edit::other_colour(&[look.colour], random)?;
            Some(Look { colour, ..look }).filter(fits)
        }),
        _ => (0..20).find_map(|_| Edit::other_object(&[look], random).filter(fits)),
    };
    match new {
        Some(look) => slot.object = slot.object.looking(look),
        None => slot.object.warp = 0.19,
    }
}

/// Quite another scene, without anything like the target.
fn elsewhere(plan: &Plan, random: &mut Random) -> Option<deeplook_tools::Picture> {
    let other = plan.elsewhere(random.clone())?;
    let mut slots = other.slots.clone();
    for slot in slots.iter_mut().filter(|slot| misleads(plan, &slot.object.look)) {
        slot.shown = false;
    }
    other.draw(&slots, other.finish)
}
