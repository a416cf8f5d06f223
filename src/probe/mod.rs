//! Is the judge itself sound? Edits whose right answer is known by construction, made of any case,
//! and the same edit in other clothes, which must not change the label.
//!
//! [`make()`] makes the cases, a judge judges them like any others, and [`assess`] says of each
//! [`Probe`] whether the judge passed.

mod assess;
mod make;

pub use assess::{Answer, Assessment, assess};
pub use make::{ProbeCase, make};

use crate::prompt::Criterion;

/// One way of asking a question whose answer is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// The source as its own edit.
    NoOp,
    /// The reference as the edit.
    Reference,
    /// The reference as source and as edit: a judge that ignores the source is taken in.
    NoOpOnReference,
    /// The reference as source, the source as the edit.
    Swapped,
    /// The reference as the edit, with the instruction of another case.
    OtherInstruction,
    /// A blank picture as the edit.
    Blank,
    /// The edit at another place; the target is as it was.
    PastedElsewhere,
    /// The source, recompressed.
    Recompressed,
    /// The source, smaller.
    Resized,
    /// An edit as it is: what the next ones are compared with.
    AsItIs,
    /// The same edit in another file format.
    OtherFormat,
    /// The same edit, smaller.
    OtherSize,
    /// The same edit, under names that promise something.
    OtherNames,
    /// The same edit, with the pictures shown in the opposite order.
    OtherOrder,
}

/// Which labels are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The best one.
    Best,
    /// The worst one.
    Worst,
    /// Any but the best one.
    NotBest,
    /// The one that the same edit got as it is.
    Same,
    /// Nothing is known.
    Anything,
}

impl Probe {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 14] = [
        Self::NoOp,
        Self::Reference,
        Self::NoOpOnReference,
        Self::Swapped,
        Self::OtherInstruction,
        Self::Blank,
        Self::PastedElsewhere,
        Self::Recompressed,
        Self::Resized,
        Self::AsItIs,
        Self::OtherFormat,
        Self::OtherSize,
        Self::OtherNames,
        Self::OtherOrder,
    ];

    /// A short name; also the name of the "editor" in the traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoOp => "no-op",
            Self::Reference => "reference",
            Self::NoOpOnReference => "no-op-on-reference",
            Self::Swapped => "swapped",
            Self::OtherInstruction => "other-instruction",
            Self::Blank => "blank",
            Self::PastedElsewhere => "pasted-elsewhere",
            Self::Recompressed => "recompressed",
            Self::Resized => "resized",
            Self::AsItIs => "as-it-is",
            Self::OtherFormat => "other-format",
            Self::OtherSize => "other-size",
            Self::OtherNames => "other-names",
            Self::OtherOrder => "other-order",
        }
    }

    /// The probe of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|probe| probe.name() == name)
    }

    /// What is shown to the judge, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::NoOp => "the source as its own edit",
            Self::Reference => "the reference as the edit",
            Self::NoOpOnReference => "the reference as source and as edit",
            Self::Swapped => "the reference as source, the source as edit",
            Self::OtherInstruction => "the reference as the edit, another case's instruction",
            Self::Blank => "a blank picture as the edit",
            Self::PastedElsewhere => "the edit pasted outside the target",
            Self::Recompressed => "the source, only recompressed",
            Self::Resized => "the source, only made smaller",
            Self::AsItIs => "an edit as it is, for the comparisons below",
            Self::OtherFormat => "the same edit in another file format",
            Self::OtherSize => "the same edit, smaller",
            Self::OtherNames => "the same edit under promising names",
            Self::OtherOrder => "the same edit, pictures in the opposite order",
        }
    }

    /// Which labels are right under a criterion.
    ///
    /// The first criterion of a pack asks whether the edit was made, every other one whether the
    /// rest was left alone.
    pub fn expected(self, about_the_edit: bool) -> Expected {
        match (self, about_the_edit) {
            (Self::NoOp | Self::Recompressed | Self::Resized, true) => Expected::Worst,
            (Self::NoOp | Self::Recompressed | Self::Resized, false) => Expected::Best,
            (Self::Reference, _) | (Self::NoOpOnReference, false) => Expected::Best,
            (Self::NoOpOnReference | Self::Swapped | Self::OtherInstruction, true) => {
                Expected::NotBest
            }
            (Self::Blank, true) => Expected::NotBest,
            (Self::Blank, false) => Expected::Worst,
            (Self::PastedElsewhere, true) => Expected::Worst,
            (Self::PastedElsewhere, false) => Expected::NotBest,
            (Self::Swapped | Self::OtherInstruction, false) | (Self::AsItIs, _) => {
                Expected::Anything
            }
            (Self::OtherFormat | Self::OtherSize | Self::OtherNames | Self::OtherOrder, _) => {
                Expected::Same
            }
        }
    }
}

impl Expected {
    /// Whether a label is right; `as_it_is` is what the same edit got as it is. `None` where that
    /// cannot be told.
    pub fn is_met(
        self,
        label: &str,
        as_it_is: Option<&str>,
        criterion: &Criterion,
    ) -> Option<bool> {
        let rank = criterion.label(label)?.rank;
        let ranks = || criterion.labels().iter().map(|label| label.rank);
        match self {
            Self::Best => Some(Some(rank) == ranks().max()),
            Self::Worst => Some(Some(rank) == ranks().min()),
            Self::NotBest => Some(Some(rank) != ranks().max()),
            Self::Same => as_it_is.map(|before| before == label),
            Self::Anything => None,
        }
    }

    /// In words.
    pub fn in_words(self, criterion: &Criterion) -> String {
        let by_rank = |best: bool| {
            let labels = criterion.labels().iter();
            let chosen = if best {
                labels.max_by_key(|label| label.rank)
            } else {
                labels.min_by_key(|label| label.rank)
            };
            chosen.map_or(String::new(), |label| label.name.clone())
        };
        match self {
            Self::Best => by_rank(true),
            Self::Worst => by_rank(false),
            Self::NotBest => format!("not {}", by_rank(true)),
            Self::Same => "the same label".to_owned(),
            Self::Anything => "anything".to_owned(),
        }
    }
}
