//! What was done to each picture before it was shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::prompt::{Adaptive, Area, Context, Margin, PictureView, Place, Treatment};

/// A picture of a judgement and how it was prepared: the resolved settings of crops, masks and marks,
/// in the words of packs. What does not apply is left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ViewRecord {
    /// Which picture of the case.
    pub picture: String,
    /// The name by which the model knows it.
    pub name: String,
    /// `whole`, `crop`, `mask`, `overlay` or `mark`.
    #[serde(rename = "as")]
    pub treatment: String,
    /// The region of the case; else the place that the part is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// How a place of the source is found in other pictures: `registered` or `proportional`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// At least so many pixels around it, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// … or this share of the place's own side, if that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin_share: Option<f64>,
    /// More around small places than around large ones: `small`, `large`, `most`, `least`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<[f64; 4]>,
    /// The long edge to which the picture is scaled before it is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canvas: Option<u32>,
    /// The long edge until which a small crop is enlarged, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enlarge_to: Option<u32>,
    /// … or the shorter side of the smallest place in it, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enlarge_place: Option<u32>,
    /// … but never more than so many times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enlarge_most: Option<f64>,
    /// The picture that it is laid over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// The long edge to which it is scaled in the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_edge: Option<u32>,
}

impl From<&PictureView> for ViewRecord {
    fn from(view: &PictureView) -> Self {
        let mut record = Self {
            picture: view.picture.clone(),
            name: view.name.clone(),
            long_edge: view.long_edge,
            ..Self::default()
        };
        record.treatment = match &view.treatment {
            Treatment::Whole => "whole",
            Treatment::Crop { area, context, canvas, enlarge_to, enlarge_place, enlarge_most } => {
                record.places(area);
                match context {
                    Context::Margin(margin) => record.margins(margin),
                    Context::Adaptive(Adaptive { small, large, most, least }) => {
                        record.context = Some([*small, *large, *most, *least]);
                    }
                }
                (record.canvas, record.enlarge_to) = (*canvas, *enlarge_to);
                record.enlarge_place = *enlarge_place;
                record.enlarge_most = *enlarge_most;
                "crop"
            }
            Treatment::Mask { area, margin } => {
                record.places(area);
                record.margins(margin);
                "mask"
            }
            Treatment::Mark { area, margin } => {
                record.places(area);
                record.margins(margin);
                "mark"
            }
            Treatment::Overlay { over } => {
                record.over = Some(over.clone());
                "overlay"
            }
        }
        .to_owned();
        record
    }
}

impl ViewRecord {
    fn places(&mut self, Area { region, place }: &Area) {
        self.region.clone_from(region);
        let place = match place {
            Place::Registered => "registered",
            Place::Proportional => "proportional",
        };
        self.place = Some(place.to_owned());
    }

    fn margins(&mut self, Margin { pixels, share }: &Margin) {
        (self.margin, self.margin_share) = (Some(*pixels), Some(*share));
    }
}
