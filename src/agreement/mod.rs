//! How far judges agree with people, people with each other, and a judge with itself.
//!
//! Labels are compared by their rank (1 is worst). All intervals are bootstrap intervals over cases.

mod judges;
mod labels;
mod measures;
pub(crate) mod page;
mod ranking;
mod table;
#[cfg(test)]
mod tests;

pub use self::judges::{
    Agreement, AnnotatorPair, Cell, Confusion, Difference, Judge, JudgeAgreement, Judgement,
};
pub use self::labels::{Labels, LabelsError, Truth};
pub use self::measures::{Measure, Measured, Values};
pub use self::ranking::Ranking;
pub use self::table::{RaterPair, RatingTable, TableAgreement, TableError};
