//! What the files of traces and runs hold, and nothing else.
//!
//! These types belong to the files: they have versions of their own, and no type of the rest of the
//! house is in them. Whoever changes a type that has a form here must say what that means for what is
//! stored, or it does not compile.

mod case;
mod conversation;
mod events;
pub(super) mod format1;
mod line;
mod manifest;
mod pixels;
mod reply;
mod run;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

pub use self::case::Inputs;
pub(crate) use self::conversation::Limits;
pub(super) use self::events::{
    Asked, Decided, Event, Finished, GaveUp, KINDS, Line, Observed, Seen, ToolAnswer,
};
pub(super) use self::line::{OutcomeName, PartLine, ResultLine};
pub use self::manifest::{FORMAT, FormatVersion, PackRecord};
pub(super) use self::manifest::{Manifest, Model, Preprocessing, Tools};
pub(crate) use self::run::{Planned, Run};
pub use self::views::ViewRecord;
use crate::case::Named;
use crate::hash::Hash;

/// The stored form of a `T`, and the way back.
pub(crate) trait Form<T>: Sized {
    /// What is stored of it.
    fn of(it: T) -> Self;
    /// What it was.
    fn back(self) -> T;
}

/// What stands for itself.
macro_rules! plain {
    ($($type:ty),*) => {$(
        impl $crate::trace::stored::Form<$type> for $type {
            fn of(it: $type) -> Self { it }
            fn back(self) -> $type { self }
        }
    )*};
}
plain!(String, bool, u8, u16, u32, u64, usize, f64, [f64; 2], Value, Hash, PathBuf);

impl<T, F: Form<T>> Form<Option<T>> for Option<F> {
    fn of(it: Option<T>) -> Self {
        it.map(F::of)
    }

    fn back(self) -> Option<T> {
        self.map(F::back)
    }
}

impl<T, F: Form<T>> Form<Vec<T>> for Vec<F> {
    fn of(it: Vec<T>) -> Self {
        it.into_iter().map(F::of).collect()
    }

    fn back(self) -> Vec<T> {
        self.into_iter().map(F::back).collect()
    }
}

impl<T: Ord, F: Form<T> + Ord> Form<BTreeSet<T>> for BTreeSet<F> {
    fn of(it: BTreeSet<T>) -> Self {
        it.into_iter().map(F::of).collect()
    }

    fn back(self) -> BTreeSet<T> {
        self.into_iter().map(F::back).collect()
    }
}

impl<K: Ord, T, G: Form<K> + Ord, F: Form<T>> Form<BTreeMap<K, T>> for BTreeMap<G, F> {
    fn of(it: BTreeMap<K, T>) -> Self {
        it.into_iter().map(|(key, one)| (G::of(key), F::of(one))).collect()
    }

    fn back(self) -> BTreeMap<K, T> {
        self.into_iter().map(|(key, one)| (key.back(), one.back())).collect()
    }
}

impl<T, F: Form<T>> Form<Named<T>> for BTreeMap<String, F> {
    fn of(it: Named<T>) -> Self {
        it.into_iter().map(|(name, one)| (name.to_string(), F::of(one))).collect()
    }

    fn back(self) -> Named<T> {
        self.into_iter().map(|(name, one)| (name, one.back())).collect()
    }
}

/// Defines stored forms that have the same fields, or the same names, as what they are forms of.
macro_rules! forms {
    () => {};
    ($(#[$about:meta])* struct $name:ident of $type:ty { $($(#[$note:meta])* $field:ident: $form:ty,)* } $($rest:tt)*) => {
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        $(#[$about])*
        pub(crate) struct $name { $($(#[$note])* pub(crate) $field: $form,)* }
        impl $crate::trace::stored::Form<$type> for $name {
            fn of(it: $type) -> Self {
                type It = $type;
                let It { $($field),* } = it;
                Self { $($field: $crate::trace::stored::Form::of($field)),* }
            }
            fn back(self) -> $type {
                type It = $type;
                let Self { $($field),* } = self;
                It { $($field: $crate::trace::stored::Form::back($field)),* }
            }
        }
        $crate::trace::stored::both_ways!($name, $type);
        $crate::trace::stored::forms! { $($rest)* }
    };
    ($(#[$about:meta])* enum $name:ident of $type:ty { $($(#[$note:meta])* $variant:ident,)* } $($rest:tt)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        $(#[$about])*
        pub(crate) enum $name { $($(#[$note])* $variant,)* }
        impl $crate::trace::stored::Form<$type> for $name {
            fn of(it: $type) -> Self {
                type It = $type;
                match it { $(It::$variant => Self::$variant,)* }
            }
            fn back(self) -> $type {
                type It = $type;
                match self { $(Self::$variant => It::$variant,)* }
            }
        }
        $crate::trace::stored::both_ways!($name, $type);
        $crate::trace::stored::forms! { $($rest)* }
    };
}

/// Lets serde, and whoever likes `into`, go the same way.
macro_rules! both_ways {
    ($form:ty, $type:ty) => {
        impl From<$type> for $form {
            fn from(it: $type) -> Self {
                $crate::trace::stored::Form::of(it)
            }
        }
        impl From<$form> for $type {
            fn from(form: $form) -> Self {
                $crate::trace::stored::Form::back(form)
            }
        }
    };
}
use {both_ways, forms, plain};
