//! The named pictures that a judge works with, and where each of them comes from.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coords::{BoxConvention, PixelBox, Size};
use crate::picture::Picture;
use crate::tool::ToolError;

/// The picture before the edit.
pub const ORIGINAL: &str = "Original Image";
/// The picture after the edit.
pub const EDITED: &str = "Edited Image";
/// What a good edit looks like, where there is one.
pub const REFERENCE: &str = "Reference Image";

/// A picture with a name, and the places in the source pictures that it shows.
#[derive(Debug, Clone)]
pub struct View {
    /// The name by which a model and the arguments of tools refer to it.
    pub name: String,
    /// The pixels.
    pub picture: Arc<Picture>,
    /// What it shows, from left to right: one panel, or two for a side-by-side.
    pub panels: Vec<Panel>,
}

/// A part of a [`View`] that shows a region of a source picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Panel {
    /// Where on the view.
    pub area: PixelBox,
    /// The name of the source picture.
    pub source: String,
    /// Which region of it, in its pixels; it may reach beyond the picture, where the panel is grey.
    pub region: PixelBox,
}

impl Panel {
    /// A box on the view, clipped to this panel, in pixels of the source picture.
    pub fn to_source(&self, on_view: &PixelBox) -> PixelBox {
        on_view.intersection(&self.area).mapped(&self.area, &self.region)
    }
}

impl View {
    /// A source picture: it shows itself.
    pub fn source(name: &str, picture: Arc<Picture>) -> Self {
        let whole = PixelBox::whole(picture.size());
        let panel = Panel { area: whole, source: name.to_owned(), region: whole };
        Self { name: name.to_owned(), picture, panels: vec![panel] }
    }

    /// The panel under the centre of `area`; on a dividing line, the nearer one.
    pub fn panel_at(&self, area: &PixelBox) -> Option<&Panel> {
        let (x, y) = area.centre();
        let distance = |p: &Panel| {
            let (across, down) =
                ((p.area.x1 - x).max(x - p.area.x2), (p.area.y1 - y).max(y - p.area.y2));
            across.max(0.0) + down.max(0.0)
        };
        self.panels.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }
}

/// What a model can take: tools make no more than it would get to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Room {
    /// A picture with a longer side is reduced on its way to the model.
    pub side: u32,
    /// How many pictures it gets in all, where that is limited.
    pub pictures: Option<u32>,
}

impl Default for Room {
    fn default() -> Self {
        Self { side: u32::MAX, pictures: None }
    }
}

/// All the pictures of one judgement so far.
#[derive(Debug, Clone)]
pub struct Scene {
    views: Vec<(View, Size)>,
    sources: usize,
    boxes: BoxConvention,
    room: Room,
}

impl Scene {
    /// A scene of pictures named "Original Image", "Edited Image" and "Reference Image", in that
    /// order; pictures beyond the third are left out.
    pub fn new(pictures: impl IntoIterator<Item = Picture>) -> Self {
        let named = [ORIGINAL, EDITED, REFERENCE].into_iter().zip(pictures);
        Self::from_views(named.map(|(name, picture)| View::source(name, Arc::new(picture))))
    }

    /// A scene of the given views.
    pub fn from_views(views: impl IntoIterator<Item = View>) -> Self {
        let boxes = BoxConvention::PIXELS;
        let mut scene = Self { views: Vec::new(), sources: 0, boxes, room: Room::default() };
        scene.add(views);
        scene.sources = scene.views.len();
        scene
    }

    /// The scene for a model that writes boxes in another convention.
    pub fn with_boxes(mut self, boxes: BoxConvention) -> Self {
        self.boxes = boxes;
        self
    }

    /// How the model writes boxes, and how text for it writes them.
    pub fn boxes(&self) -> BoxConvention {
        self.boxes
    }

    /// The scene for a model that takes no more than this.
    pub fn with_room(mut self, room: Room) -> Self {
        self.room = room;
        self
    }

    /// What the model can take in all.
    pub fn room(&self) -> Room {
        self.room
    }

    /// How many more pictures the model can get, where that is limited.
    pub fn pictures_left(&self) -> Option<usize> {
        self.room.pictures.map(|most| (most as usize).saturating_sub(self.views.len()))
    }

    /// Adds pictures, as a tool's output brings them.
    pub fn add(&mut self, views: impl IntoIterator<Item = View>) {
        self.views.extend(views.into_iter().map(|view| {
            let size = view.picture.size();
            (view, size)
        }));
    }

    /// Says that the model sees the picture `name` at another size than it has: boxes in pixels
    /// are then pixels of that size.
    pub fn set_shown_size(&mut self, name: &str, shown: Size) {
        if let Some(entry) = self.views.iter_mut().find(|(view, _)| view.name == name) {
            entry.1 = shown;
        }
    }

    /// The name for the `ahead`-th picture (from 0) that a tool is about to bring.
    pub fn crop_name(&self, ahead: usize) -> String {
        format!("Crop {}", self.views.len() - self.sources + ahead + 1)
    }

    /// All views, in the order in which they came, each with the size at which the model sees it.
    pub fn shown(&self) -> impl Iterator<Item = (&View, Size)> {
        self.views.iter().map(|(view, shown)| (view, *shown))
    }

    /// All views, in the order in which they came.
    pub fn views(&self) -> impl Iterator<Item = &View> {
        self.views.iter().map(|(view, _)| view)
    }

    /// The picture of this name; case, quotes and a missing "Image" are forgiven.
    pub fn view(&self, name: &str) -> Result<&View, ToolError> {
        self.find(name).map(|(view, _)| view)
    }

    fn find(&self, name: &str) -> Result<&(View, Size), ToolError> {
        let wanted = simplified(name);
        self.views.iter().find(|(view, _)| simplified(&view.name) == wanted).ok_or_else(|| {
            let known: Vec<String> = self.views().map(|view| format!("{:?}", view.name)).collect();
            ToolError::refused(format!(
                "there is no picture {}; the pictures are: {}",
                quoted(name),
                known.join(", ")
            ))
        })
    }

    /// A box that the model gave on the picture `name`, in pixels of that picture.
    pub fn read_box(&self, name: &str, values: [f64; 4]) -> Result<PixelBox, ToolError> {
        let (view, shown) = self.find(name)?;
        let area = self
            .boxes
            .read(values, *shown)
            .map_err(|e| ToolError::refused(format!("on {:?}: {e}", view.name)))?;
        Ok(area.mapped(&PixelBox::whole(*shown), &PixelBox::whole(view.picture.size())))
    }

    /// The source picture that shows what the model gave a box on, and the place in its pixels. A crop
    /// leads to what it was cut from: that has all the detail there is.
    pub fn place(&self, name: &str, values: [f64; 4]) -> Result<(&View, PixelBox), ToolError> {
        let view = self.view(name)?;
        let on_view = self.read_box(name, values)?;
        let nothing = || {
            let name = quoted(name);
            ToolError::refused(format!(
                "the box shows nothing of {name}; choose one on the picture"
            ))
        };
        let panel = view.panel_at(&on_view).ok_or_else(nothing)?;
        let place = panel.to_source(&on_view);
        let source = self.view(&panel.source)?;
        // Where a panel is grey there is nothing of the picture.
        let place = place.clipped(source.picture.size());
        if place.is_empty() {
            return Err(nothing());
        }
        Ok((source, place))
    }

    /// How many pixels of the picture `name`, as the model sees it, show one pixel of `source`.
    pub(crate) fn shown_scale(&self, name: &str, source: &str) -> f64 {
        let Ok((view, shown)) = self.find(name) else { return 1.0 };
        let sent = f64::from(shown.width) / f64::from(view.picture.size().width);
        let panel = view.panels.iter().find(|panel| panel.source == source);
        panel.map_or(sent, |panel| sent * panel.area.width() / panel.region.width())
    }

    /// A box in pixels of the picture `name`, as text for the model.
    pub fn box_text(&self, name: &str, area: &PixelBox) -> String {
        match self.find(name) {
            Ok((view, shown)) => {
                let whole = PixelBox::whole(view.picture.size());
                self.boxes.text(&area.mapped(&whole, &PixelBox::whole(*shown)), *shown)
            }
            Err(_) => area.to_string(),
        }
    }
}

fn simplified(name: &str) -> String {
    let name = name.trim().trim_matches(['"', '\'', '`']).to_lowercase();
    name.strip_suffix(" image").unwrap_or(&name).trim().to_owned()
}

/// Untrusted text in a message: quoted, on one line, and not endless.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", cut(text, 60))
}

/// The first `longest` characters, with a mark where more was there.
pub fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
