//! Where a point of the first picture is in the second.

use crate::coords::{PixelBox, Size};
use crate::picture::Picture;

/// How the frame of the second picture lies on the first.
#[derive(Debug, Clone)]
pub struct Registration {
    first: Size,
    second: Size,
}

impl Registration {
    /// Estimates it from the two pictures.
    pub fn estimate(first: &Picture, second: &Picture) -> Self {
        Self { first: first.size(), second: second.size() }
    }

    /// A box on the first picture, in pixels of the second.
    pub fn to_second(&self, area: &PixelBox) -> PixelBox {
        area.mapped(&PixelBox::whole(self.first), &PixelBox::whole(self.second))
    }
}
