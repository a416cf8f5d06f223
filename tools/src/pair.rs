//! The original and the edited picture, and what lies at the same place in both.

use crate::coords::{PixelBox, Size};
use crate::enhancer::{Enhancer, Enlargement, SAME_DETAIL};
use crate::picture::Picture;
use crate::registration::Registration;
use crate::scene::{EDITED, ORIGINAL, Panel, Scene, View};
use crate::side_by_side::Layout;
use crate::tool::ToolError;

/// What a judge says to look at the same place of both pictures.
pub(crate) const BOTH: &str = "both";

/// The two pictures, and how one lies on the other.
pub(crate) struct Pair<'a> {
    pub(crate) original: &'a View,
    pub(crate) edited: &'a View,
    pub(crate) registration: Registration,
}

/// The same place in both pictures, in pixels of each. In the edited one it may begin between pixels and
/// reach beyond the frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub(crate) original: PixelBox,
    pub(crate) edited: PixelBox,
}

impl<'a> Pair<'a> {
    /// The pair of a scene; a refusal where there is only one picture.
    pub(crate) fn of(scene: &'a Scene) -> Result<Self, ToolError> {
        let (original, edited) = (scene.view(ORIGINAL)?, scene.view(EDITED)?);
        let registration = Registration::estimate(&original.picture, &edited.picture);
        Ok(Self { original, edited, registration })
    }

    /// The place of a box on the original; a refusal where the edited picture shows nothing of it.
    pub(crate) fn place(&self, original: &PixelBox, scene: &Scene) -> Result<Place, ToolError> {
        self.same_place(original).ok_or_else(|| {
            ToolError::refused(format!(
                "the region {} of the {ORIGINAL} is not in the frame of the {EDITED}",
                scene.box_text(ORIGINAL, original)
            ))
        })
    }

    /// The place of a box on the original, if the edited picture shows something of it.
    pub(crate) fn same_place(&self, original: &PixelBox) -> Option<Place> {
        let edited = snapped(self.registration.to_second(original));
        let visible = !edited.clipped(self.edited.picture.size()).is_empty();
        visible.then_some(Place { original: *original, edited })
    }

    /// Both sides of a place as one picture, each shown at `shown`; and what its halves show. A side with
    /// more detail than the other is brought down to it first: what only one side can show would look like
    /// an edit. Where the frame of the edited picture ends, it is grey.
    pub(crate) fn side_by_side(
        &self,
        place: &Place,
        shown: Size,
        layout: Layout,
        (enhancer, enlargement): (&Enhancer, Enlargement),
        tool: &'static str,
    ) -> Result<(Picture, Vec<Panel>), ToolError> {
        let sizes = (place.detail(), shown);
        let half = |view: &View, area: &PixelBox| {
            enhancer.shown(&view.picture, area, sizes, enlargement, tool)
        };
        let (first, second) =
            (half(self.original, &place.original)?, half(self.edited, &place.edited)?);
        let (picture, [left, right]) = layout.lay(&first, &second);
        let panel = |area, view: &View, region| Panel { area, source: view.name.clone(), region };
        let panels = vec![
            panel(left, self.original, place.original),
            panel(right, self.edited, place.edited),
        ];
        Ok((picture, panels))
    }

    /// What must be known to read pictures of these places: whose detail they show, and where a frame ends.
    pub(crate) fn remarks(&self, places: &[Place]) -> String {
        let mut remarks = String::new();
        if let Some(finer) = places.iter().find_map(Place::finer) {
            let other = if finer == ORIGINAL { EDITED } else { ORIGINAL };
            remarks += &format!(
                " The {finer} has more pixels and was brought down to the detail of the {other}; zoom into \
                 the {finer} alone to see all of it."
            );
        }
        let frame = self.edited.picture.size();
        if places.iter().any(|place| place.edited.clipped(frame) != place.edited) {
            remarks += &format!(
                " What is plain grey on the side of the {EDITED} lies outside of its frame."
            );
        }
        remarks
    }

    /// What whoever looks at the same place must know about how it was found.
    pub(crate) fn doubt(&self) -> &'static str {
        if self.registration.is_reliable() {
            ""
        } else {
            " The pictures could not be laid onto each other, so the place in the second one was found by \
             proportion only and may be another one."
        }
    }
}

impl Place {
    /// How many pixels both sides have for it: along each side those of the coarser picture.
    pub(crate) fn detail(&self) -> Size {
        let fewer = |a: f64, b: f64| a.min(b).round().max(1.0) as u32;
        Size::new(
            fewer(self.original.width(), self.edited.width()),
            fewer(self.original.height(), self.edited.height()),
        )
    }

    /// The name of the picture that has more detail there, and was brought down to the other's.
    pub(crate) fn finer(&self) -> Option<&'static str> {
        let ratio = (self.edited.area() / self.original.area()).sqrt();
        if ratio < SAME_DETAIL {
            Some(ORIGINAL)
        } else if ratio > 1.0 / SAME_DETAIL {
            Some(EDITED)
        } else {
            None
        }
    }
}

/// A box that lies on whole pixels but for what registration cannot know is put onto them: pixels need not
/// be made anew then.
pub(crate) fn snapped(area: PixelBox) -> PixelBox {
    let whole = area.edges().map(f64::round);
    if area.edges().iter().zip(whole).all(|(edge, whole)| (edge - whole).abs() <= 0.25) {
        let [x1, y1, x2, y2] = whole;
        return PixelBox::new(x1, y1, x2, y2);
    }
    area
}
