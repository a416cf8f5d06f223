//! Who judged, as manifests and settings of runs say it.

use std::collections::BTreeMap;

use deeplook_tools::BoxConvention;
use serde_json::Value;

use super::Price;
use crate::message::Dialect;

/// Who judged.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRecord {
    /// The model's name, as asked for.
    pub id: String,
    /// Where, without credentials; absent for the offline judge.
    pub base_url: Option<String>,
    /// The resolved profile.
    pub profile: Value,
    /// The parameters that were set.
    pub params: BTreeMap<String, Value>,
    /// How it calls tools.
    pub dialect: Dialect,
    /// How it writes boxes.
    pub boxes: BoxConvention,
    /// What its tokens cost; absent where that is not known.
    pub price: Option<Price>,
}
