//! What remains below the thresholds: the largest differences that are in no region.

use super::Region;
use super::coarse::Coarse;
use super::hills::{Ground, Landscape};
use crate::coords::PixelBox;

/// So many are told.
pub(super) const MOST: usize = 3;
/// Everything above these is looked at, in units of noise and grey levels.
const GROUND: Ground =
    Ground { z: 1.0, difference: 1.0, peak_z: 0.0, peak_difference: 2.0, mass: 0.0 };

/// A difference that is in no region.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Below {
    /// In pixels of the first picture, inside it.
    pub bbox: PixelBox,
    /// The strongest difference, in grey levels of 255.
    pub strength: f64,
    /// The same in units of the pair's own noise.
    pub significance: f64,
}

/// The largest of `fine`, which were seen at the pictures' own resolution, and of the coarse frame's.
pub(super) fn threshold(fine: Vec<Below>, coarse: &Coarse, regions: &[Region]) -> Vec<Below> {
    let told = |area: &PixelBox| {
        let inside = |other: &PixelBox| other.intersection(area).area() >= 0.5 * area.area();
        regions.iter().any(|region| inside(&region.bbox))
    };
    let mut below: Vec<Below> = fine.into_iter().filter(|below| !told(&below.bbox)).collect();
    below.sort_by(|a, b| b.significance.total_cmp(&a.significance));
    below.truncate(MOST);
    if below.len() < MOST {
        for hill in Landscape::of(&coarse.measure).hills(&GROUND) {
            let area = hill.area.edges().map(|v| v as usize);
            let bbox = coarse.on_first(area, 0.0);
            let known = below.iter().any(|b| !b.bbox.intersection(&bbox).is_empty());
            if !told(&bbox) && !known {
                let (strength, significance) = (hill.peak_difference, hill.peak_z);
                below.push(Below { bbox, strength, significance });
            }
            if below.len() == MOST {
                break;
            }
        }
    }
    below
}
