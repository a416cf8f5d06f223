//! The pictures of a case, how they lie on the source, and what is made of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use deeplook_tools::difference::{Settings, compare};
use deeplook_tools::registration::Registration;
use deeplook_tools::scene::{self, View};
use deeplook_tools::{Picture, PixelBox, Size};

use super::pixels::{self, Enlarging};
use super::{About, Brief, BriefPicture, ProtocolError};
use crate::case::{EDITED, EditCase, InputPicture, REFERENCE, SOURCE, TARGET};
use crate::prompt::{Area, Context, Margin, ModeView, PictureView, Place, Sizes, Treatment};

/// The pictures of a case and how they lie on the source.
pub(super) struct Frames<'a> {
    case: &'a EditCase,
    shown: &'a ModeView,
    /// By name of the picture.
    lies: BTreeMap<&'a str, Registration>,
    /// Pictures scaled to a long edge before they are cut, once for all parts.
    canvases: BTreeMap<(&'a str, u32, Sizes), Picture>,
    /// Where things came or went, in pixels of the source; only looked for where they are counted.
    changes: Option<Vec<PixelBox>>,
}

impl<'a> Frames<'a> {
    /// Measures what has to be known.
    pub(super) fn of(
        case: &'a EditCase,
        shown: &'a ModeView,
        counting: bool,
    ) -> Result<Self, ProtocolError> {
        let mut frames = Self {
            case,
            shown,
            lies: BTreeMap::new(),
            canvases: BTreeMap::new(),
            changes: counting.then(Vec::new),
        };
        let placed = shown.views.iter().filter(|view| view.is_placed());
        let placed = placed.map(|view| view.picture.as_str());
        let told = shown.frame.then_some(EDITED);
        let counted = [EDITED, REFERENCE].into_iter().filter(|_| counting);
        for name in told.into_iter().chain(counted).chain(placed) {
            if name != SOURCE && !frames.lies.contains_key(name) {
                frames.measure(name);
            }
        }
        for view in &shown.views {
            if let Treatment::Crop { canvas: Some(edge), .. } = view.treatment
                && let Some(input) = frames.input(&view.picture)
            {
                let size = pixels::at_long_edge(input.picture().size(), edge, view.sizes);
                let scaled = || input.picture().resized(size);
                frames.canvases.entry((&view.picture, edge, view.sizes)).or_insert_with(scaled);
            }
        }
        Ok(frames)
    }

    fn input(&self, name: &str) -> Option<&'a InputPicture> {
        self.case.picture(name)
    }

    /// An added thing has no box in the source, and an editor may add it elsewhere than the
    /// reference does: to count things, one must see every place that changed in either.
    fn measure(&mut self, name: &'a str) {
        let Some(other) = self.input(name) else { return };
        let source = &self.case.source;
        let counted = name == EDITED || name == REFERENCE;
        let lies = match &mut self.changes {
            Some(changes) if counted => {
                let (first, second) = (source.picture(), other.picture());
                let seen = compare(first, second, usize::MAX, &Settings::default());
                // Another scene altogether has no places.
                if !seen.changed_everywhere {
                    changes.extend(seen.regions.iter().map(|region| region.bbox));
                }
                seen.registration
            }
            _ => other.on(source),
        };
        self.lies.insert(name, lies);
    }

    /// One part, with its pictures.
    pub(super) fn brief(&self, mut about: About) -> Result<Brief, ProtocolError> {
        let mut pictures = Vec::new();
        let mut crop = None;
        for view in &self.shown.views {
            let Some(input) = self.input(&view.picture) else {
                if view.optional {
                    continue;
                }
                return Err(ProtocolError::NoPicture { picture: view.picture.clone() });
            };
            pictures.push(self.picture(view, input, &about)?);
            if let Treatment::Crop { area, context, .. } = &view.treatment {
                crop.get_or_insert_with(|| self.cut(area, context, &about));
            }
        }
        if about.boxes.is_empty() {
            let areas = self.shown.views.iter().filter_map(|view| view.treatment.area());
            let first = areas.filter_map(|area| area.region.as_deref()).next();
            about.boxes = first.map(|region| self.case.region(region).to_vec()).unwrap_or_default();
        }
        let About { name, boxes, question, .. } = about;
        Ok(Brief { name, boxes, crop, question, pictures, notes: self.notes() })
    }

    /// The places that a treatment is about, in pixels of the source.
    fn places<'b>(&'b self, area: &Area, about: &'b About) -> &'b [PixelBox] {
        match &area.region {
            Some(region) => self.case.region(region),
            None => &about.boxes,
        }
    }

    /// What a crop shows, in pixels of the source.
    fn cut(&self, area: &Area, context: &Context, about: &About) -> PixelBox {
        let changes = self.changes.iter().flatten().filter(|_| about.changes);
        let places: Vec<PixelBox> =
            self.places(area, about).iter().chain(changes).copied().collect();
        pixels::around(&places, context, self.case.source.picture().size())
    }

    /// Where a place of the source is in another picture.
    fn here(&self, picture: &str, size: Size, place: Place, area: &PixelBox) -> PixelBox {
        match self.lies.get(picture).filter(|_| place == Place::Registered) {
            Some(lies) => lies.to_second(area),
            None => {
                let source = self.case.source.picture().size();
                if source == size {
                    return *area;
                }
                area.mapped(&PixelBox::whole(source), &PixelBox::whole(size))
            }
        }
    }

    fn picture(
        &self,
        view: &PictureView,
        input: &InputPicture,
        about: &About,
    ) -> Result<BriefPicture, ProtocolError> {
        let picture = input.picture();
        let here = |area: &Area, place: &PixelBox| {
            self.here(&view.picture, picture.size(), area.place, place)
        };
        let widened = |area: &Area, margin: &Margin| -> Vec<PixelBox> {
            let source = self.case.source.picture().size();
            let places = self.places(area, about).iter();
            places.map(|place| here(area, &pixels::widened(place, margin, source))).collect()
        };
        let (done, caption) = match &view.treatment {
            Treatment::Whole if view.long_edge.is_none() && view.fit.is_none() => {
                return Ok(BriefPicture {
                    view: View::source(&view.name, Arc::clone(picture)),
                    caption: view.caption.clone().unwrap_or_default(),
                    whole: (view.caption.is_none() && view.jpeg.is_none()).then(|| input.clone()),
                    jpeg: view.jpeg,
                });
            }
            Treatment::Whole => (picture.as_ref().clone(), String::new()),
            Treatment::Mask { area, margin } => {
                let what = self.in_words(area, about, "the target of the instruction");
                let caption = format!("{what} is painted white; judge only the rest");
                (pixels::masked(picture, &widened(area, margin)), caption)
            }
            Treatment::Mark { area, margin } => {
                let what = self.in_words(area, about, "the target of the instruction");
                (
                    pixels::marked(picture, &widened(area, margin)),
                    format!("{what} is framed in red"),
                )
            }
            Treatment::Overlay { over } => {
                let missing = || ProtocolError::NoPicture { picture: over.clone() };
                let below = self.input(over).ok_or_else(missing)?;
                let laid = below.picture().beneath(&view.picture, input.bytes())?;
                (laid, format!("laid over the {over} picture"))
            }
            Treatment::Crop { area, context, canvas, enlarge_to, enlarge_place, enlarge_most } => {
                let canvas = canvas
                    .and_then(|edge| self.canvases.get(&(view.picture.as_str(), edge, view.sizes)));
                let places = self.places(area, about).iter().map(|place| here(area, place));
                let (cut, region, places) = match canvas {
                    None => {
                        let region = here(area, &self.cut(area, context, about));
                        let region = region.whole_pixels(picture.size());
                        (picture.cropped(&region), region, places.collect())
                    }
                    Some(canvas) => {
                        let (from, to) =
                            (PixelBox::whole(picture.size()), PixelBox::whole(canvas.size()));
                        let places: Vec<PixelBox> =
                            places.map(|place| place.mapped(&from, &to)).collect();
                        let region = pixels::on_canvas(&places, context, canvas.size());
                        (canvas.cropped(&region), region, places)
                    }
                };
                let enlarging =
                    Enlarging { to: *enlarge_to, place: *enlarge_place, most: *enlarge_most };
                let shown = match self.end_size(view, cut.size())? {
                    Some(size) => cut.resized(size),
                    None => pixels::enlarged(&cut, &places, &enlarging),
                };
                let times = f64::from(shown.size().width) / region.width();
                let what = match about.changes {
                    true => "all targets and every place that changed".to_owned(),
                    false => self.in_words(area, about, "the target"),
                };
                let change = if times < 1.0 { "reduced to" } else { "enlarged" };
                let caption = format!("a crop around {what}, {change} {times:.1}×");
                return Ok(made(view, shown, caption));
            }
        };
        let picture = match self.end_size(view, done.size())? {
            Some(size) => done.resized(size),
            None => done,
        };
        Ok(made(view, picture, caption))
    }

    /// The size at which a picture is shown in the end, where the pack says one.
    fn end_size(&self, view: &PictureView, size: Size) -> Result<Option<Size>, ProtocolError> {
        if let Some(edge) = view.long_edge {
            return Ok(Some(pixels::at_long_edge(size, edge, view.sizes)));
        }
        let Some(fit) = &view.fit else { return Ok(None) };
        let other = self.input(fit).map(|input| input.picture().size());
        other.map(Some).ok_or_else(|| ProtocolError::NoPicture { picture: fit.clone() })
    }

    /// The place of a treatment, for the judge.
    fn in_words(&self, area: &Area, about: &About, target: &str) -> String {
        match &area.region {
            Some(region) if region != TARGET => format!("the place {region:?}"),
            None if about.question.is_some() => "the place in question".to_owned(),
            _ => target.to_owned(),
        }
    }

    /// What the judge must know about the frame of the edited picture.
    fn notes(&self) -> Vec<String> {
        let (source, edited) =
            (self.case.source.picture().size(), self.case.edited.picture().size());
        let mut notes = Vec::new();
        if source != edited {
            notes.push(format!(
                "The editor returned another size ({edited} instead of {source} pixels); that alone is \
                 neither an error nor a change of the scene."
            ));
        }
        let told = self.lies.get(EDITED).filter(|_| self.shown.frame);
        let Some(lies) = told else { return notes };
        let placed = self.shown.tools || self.shown.views.iter().any(PictureView::is_placed);
        if !lies.is_reliable() && placed {
            notes.push(
                "The two pictures could not be laid onto each other: they may show different scenes, \
                 and places were matched by proportion only."
                    .to_owned(),
            );
        } else if let Some([left, top, right, bottom]) =
            lies.compensation().cut.filter(|_| lies.is_reliable())
        {
            let percent = |part: f64| (part * 100.0).round();
            let edited = self.shown.views.iter().find(|view| view.picture == EDITED);
            let edited = edited.map_or(scene::EDITED, |view| view.name.as_str());
            notes.push(format!(
                "The {edited} shows a smaller frame: about {} % is cut off on the left, {} % at the \
                 top, {} % on the right, {} % at the bottom. What lies outside its frame is not to be \
                 judged.",
                percent(left), percent(top), percent(right), percent(bottom)
            ));
        }
        notes
    }
}

/// To the tools of a part what was made of a picture is the whole picture.
fn made(view: &PictureView, picture: Picture, caption: String) -> BriefPicture {
    BriefPicture {
        view: View::source(&view.name, Arc::new(picture)),
        caption: view.caption.clone().unwrap_or(caption),
        whole: None,
        jpeg: view.jpeg,
    }
}
