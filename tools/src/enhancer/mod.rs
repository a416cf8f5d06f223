//! The Enhancer: small crops enlarged by a network that restores detail, where there is one.
//!
//! Invented detail is not evidence: what enlarged a picture is always recorded and said, the same
//! network treats both halves of a pair, and how much is enhanced is bounded by pixels, never by a
//! clock, so that the same call enhances the same crops on every machine.

mod network;
#[cfg(test)]
mod tests;
mod tool;

pub use network::NetworkFacts;
pub use tool::{Enhance, EnhanceArgs};

use serde_json::{Value, json};

use self::network::Network;
use crate::coords::{PixelBox, Size};
use crate::onnx::{OnnxError, Session};
use crate::picture::Picture;
use crate::tool::ToolError;

/// How a toolbox names the network where it cannot be had.
pub const NETWORK: &str = "enhancement model";

/// How many pixels the network is fed for one observation, unless another budget is set: enough for
/// a picture of 512×512, and some three seconds of the photo model on two cores.
pub const BUDGET: u64 = 320_000;

/// What is enhanced at once must fit into memory.
pub const MOST_BUDGET: u64 = 1 << 22;

/// Sides whose numbers of pixels differ by less than this part have the same detail.
pub(crate) const SAME_DETAIL: f64 = 0.95;

/// Enlarging by less than this is left to interpolation: it could hardly be seen.
const WORTHWHILE: f64 = 1.3;

/// Enlarges crops with a network, or by interpolation where there is none.
#[derive(Debug)]
pub struct Enhancer {
    network: Option<Network>,
    budget: u64,
}

impl Default for Enhancer {
    fn default() -> Self {
        Self::none()
    }
}

/// How a crop came to the size at which it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enlargement {
    /// It has its own size, or less.
    None,
    /// More pixels of the same detail.
    Interpolated,
    /// Through the network.
    Enhanced,
}

impl Enhancer {
    /// No network: everything is interpolated.
    pub fn none() -> Self {
        Self { network: None, budget: BUDGET }
    }

    /// Enlarges with a model that takes a picture (1×3×H×W, red, green and blue from 0 to 1) and gives
    /// a larger one. `sha256` is of its file, for the record.
    pub fn load(session: Session, name: &str, sha256: &str) -> Result<Self, OnnxError> {
        let model = session.path().to_owned();
        let network = Network::load(session, name, sha256)
            .map_err(|reason| OnnxError::Model { model, reason })?;
        Ok(Self { network: Some(network), budget: BUDGET })
    }

    /// With another number of pixels that the network is fed for one observation, at most
    /// [`MOST_BUDGET`].
    pub fn with_budget(mut self, pixels: u64) -> Self {
        self.budget = pixels.min(MOST_BUDGET);
        self
    }

    /// What is known of the network, if there is one.
    pub fn network(&self) -> Option<&NetworkFacts> {
        self.network.as_ref().map(Network::facts)
    }

    /// Adds what changes the pictures to the settings of a tool.
    pub(crate) fn record_in(&self, settings: &mut Value) {
        if let (Some(NetworkFacts { name, sha256, scale, border }), Some(settings)) =
            (self.network(), settings.as_object_mut())
        {
            let budget = self.budget;
            let record = json!({
                "model": name, "sha256": sha256, "scale": scale, "border": border, "budget": budget,
            });
            settings.insert("enhancer".to_owned(), record);
        }
    }

    /// What one observation may spend.
    pub(crate) fn purse(&self) -> Purse<'_> {
        Purse { enhancer: self, left: self.budget }
    }

    /// The part of `source` under `area`, which may begin between pixels and reach beyond the picture, at
    /// the size `shown`. Where it has more pixels than `detail`, it is brought down to them first.
    pub(crate) fn shown(
        &self,
        source: &Picture,
        area: &PixelBox,
        (detail, shown): (Size, Size),
        enlargement: Enlargement,
        tool: &'static str,
    ) -> Result<Picture, ToolError> {
        let enlarged = shown.width > detail.width;
        Ok(match enlargement {
            Enlargement::Enhanced => {
                self.cut(source, area, detail, enlargement, tool)?.resized(shown)
            }
            _ if enlarged && is_finer(area, detail) => source.under(area, detail).resized(shown),
            // In one step. What is shown smaller than its detail loses the rest anyway.
            _ => source.under(area, shown),
        })
    }

    /// The part of `source` under `area` with no more pixels than `detail`, or at the network's scale of
    /// them if it is to be enhanced.
    pub(crate) fn cut(
        &self,
        source: &Picture,
        area: &PixelBox,
        detail: Size,
        enlargement: Enlargement,
        tool: &'static str,
    ) -> Result<Picture, ToolError> {
        let whole = area.whole_pixels(source.size()) == *area && !is_finer(area, detail);
        match enlargement {
            // With its surroundings in the picture.
            Enlargement::Enhanced if whole => self.enhanced(source, area, tool),
            Enlargement::Enhanced => {
                self.enhanced(&source.under(area, detail), &PixelBox::whole(detail), tool)
            }
            _ => Ok(source.under(area, detail)),
        }
    }

    /// The part of `source` under `area` at the network's scale; its own pixels where there is none.
    pub(crate) fn enhanced(
        &self,
        source: &Picture,
        area: &PixelBox,
        tool: &'static str,
    ) -> Result<Picture, ToolError> {
        let Some(network) = &self.network else { return Ok(source.cropped(area)) };
        network.enlarge(source, area).map_err(|reason| ToolError::Broken {
            tool,
            reason: format!(
                "the enhancement model {} failed: {reason}; fetch it again, or choose another \
                 enhancer or none",
                network.facts().name
            ),
        })
    }

    /// How many pixels the network is fed to enlarge a part of `size` once.
    fn work(&self, size: Size) -> u64 {
        self.network.as_ref().map_or(size.area(), |network| network.work(size))
    }

    /// What enlarged a picture, for the record.
    pub(crate) fn name_of(&self, enlargement: Enlargement) -> Value {
        match (enlargement, self.network()) {
            (Enlargement::None, _) => Value::Null,
            (Enlargement::Enhanced, Some(network)) => json!(network.name),
            _ => json!("lanczos"),
        }
    }

    /// What text for the model says behind "enlarged 3×".
    pub(crate) fn in_words(&self, enlargement: Enlargement) -> String {
        match (enlargement, self.network()) {
            (Enlargement::None, _) => String::new(),
            (Enlargement::Enhanced, Some(NetworkFacts { name, scale, .. })) => {
                format!(", enhanced {scale}× with the model {name}")
            }
            _ => " by Lanczos interpolation".to_owned(),
        }
    }
}

/// Whether a part has clearly more pixels than `detail`.
fn is_finer(area: &PixelBox, detail: Size) -> bool {
    let finer = |own: f64, side: u32| own * SAME_DETAIL > f64::from(side);
    finer(area.width(), detail.width) || finer(area.height(), detail.height)
}

/// The pixels that the network may still be fed for one observation: who asks first is served first.
#[derive(Debug)]
pub(crate) struct Purse<'a> {
    enhancer: &'a Enhancer,
    left: u64,
}

impl Purse<'_> {
    /// How a crop of these parts, each shown at `shown`, is to be enlarged: all of them in the same
    /// manner, as a difference in sharpness would look like an edit.
    pub(crate) fn spend(&mut self, parts: &[&PixelBox], shown: Size) -> Enlargement {
        let factor = |part: &PixelBox| f64::from(shown.width) / part.width();
        let most = parts.iter().map(|part| factor(part)).fold(0.0, f64::max);
        if most <= 1.0 {
            return Enlargement::None;
        }
        let Some(network) = &self.enhancer.network else { return Enlargement::Interpolated };
        let size = |part: &PixelBox| Size::new(part.width() as u32, part.height() as u32);
        let work = parts.iter().map(|part| network.work(size(part))).fold(0, u64::saturating_add);
        if most < WORTHWHILE || work > self.left {
            return Enlargement::Interpolated;
        }
        self.left -= work;
        Enlargement::Enhanced
    }
}
