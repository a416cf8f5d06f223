//! `read_text`: what is written in a picture, or in both, and what differs in it.

mod boxes;
mod letters;
mod reader;
mod resampling;
mod rows;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::reader::Windows;
pub use self::reader::{FILES, Line, Reader};
use self::resampling::Quad;
use self::rows::{Aligned, Row, aligned, rows};
use crate::bounds::within;
use crate::coords::{BoxConvention, PixelBox};
use crate::declaration::{Declared, NetworkKind, Networks};
use crate::pair::{BOTH, Pair};
use crate::scene::{EDITED, ORIGINAL, Scene, View, cut};
use crate::tool::{Tool, ToolError, ToolOutput};

/// What it reads with.
pub const READER: NetworkKind = NetworkKind {
    name: "reader",
    files: |folder| Ok(FILES.map(|name| folder.join(name)).into()),
    load: |runtime, folder, identity| {
        let reader = Reader::load(runtime, folder, identity);
        Ok(Arc::new(reader.map_err(|error| error.to_string())?))
    },
};

const HINT: &str = "A reading is a hint: a reader takes letters for others, misses lines and sees lettering where \
                    there is none. The picture decides: zoom in on what matters.";

/// Reads lettering with PP-OCR.
#[derive(Debug, Clone)]
pub struct ReadText {
    reader: Arc<Reader>,
    settings: ReadingSettings,
}

/// What changes the lines that are read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadingSettings {
    /// A line counts as read where the reader is at least so sure, 0 to 1.
    pub least_confidence: f64,
    /// Larger pictures are searched in windows of this side too, at their own detail: small letters are lost
    /// in a large picture.
    pub window: u32,
    /// How far windows overlap.
    pub overlap: u32,
    /// No more rows than this are told; the data has all of them.
    pub most_rows: usize,
}

impl Default for ReadingSettings {
    fn default() -> Self {
        Self { least_confidence: 0.5, window: 1024, overlap: 256, most_rows: 40 }
    }
}

impl ReadingSettings {
    /// What cannot be meant, if anything.
    pub fn check(&self) -> Result<(), String> {
        within("least_confidence", self.least_confidence, 0.0..=1.0)?;
        within("window", self.window, 256..=2000)?;
        within("overlap", self.overlap, 0..=self.window / 2)?;
        within("most_rows", self.most_rows, 1..=1000)
    }
}

/// The arguments of [`ReadText`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArgs {
    /// Name of the picture to read, e.g. "Edited Image" or "Crop 2"; "both" reads the same region of the
    /// Original Image and the Edited Image and compares them line by line. Default: "both" if there are two
    /// pictures, else the only one.
    #[serde(default)]
    target_image: Option<String>,
    /// The region, as four numbers in the box format that the description of this tool states, with a little
    /// room around the lettering. With "both" it is a box on the Original Image. Default: all of the picture.
    #[serde(default)]
    bbox: Option<[f64; 4]>,
}

/// What was read in a region of one picture.
struct Reading {
    source: String,
    bbox: PixelBox,
    lines: Vec<Line>,
    rows: Vec<Row>,
    /// Where something looks like lettering that could not be read.
    unread: Vec<PixelBox>,
}

impl ReadText {
    /// The tool with this reader and settings of your own.
    pub fn with_settings(reader: Arc<Reader>, settings: ReadingSettings) -> Self {
        Self { reader, settings }
    }

    fn read(&self, view: &View, region: &PixelBox) -> Result<Reading, ToolError> {
        let bbox = region.whole_pixels(view.picture.size());
        let windows = Windows { side: self.settings.window, overlap: self.settings.overlap };
        let part = view.picture.cropped(&bbox);
        let lines = self
            .reader
            .read(&part, windows)
            .map_err(|reason| ToolError::Broken { tool: Self::NAME, reason })?;
        let placed = |line: Line| Line {
            corners: line.corners.map(|[x, y]| [x + bbox.x1, y + bbox.y1]),
            ..line
        };
        let (lines, unread): (Vec<Line>, Vec<Line>) = lines
            .into_iter()
            .map(placed)
            .partition(|line| line.confidence >= self.settings.least_confidence);
        let unread = unread.iter().map(|line| rows::bbox(&line.corners)).collect();
        Ok(Reading { source: view.name.clone(), bbox, rows: rows(&lines), lines, unread })
    }

    /// The same region of both pictures.
    fn read_both(&self, bbox: Option<[f64; 4]>, scene: &Scene) -> Result<ToolOutput, ToolError> {
        let pair = Pair::of(scene)?;
        let (original, edited) = match bbox {
            None => (
                PixelBox::whole(pair.original.picture.size()),
                PixelBox::whole(pair.edited.picture.size()),
            ),
            Some(values) => {
                let asked = scene.read_box(ORIGINAL, values)?;
                let place = pair.place(&asked.clipped(pair.original.picture.size()), scene)?;
                (place.original, place.edited.clipped(pair.edited.picture.size()))
            }
        };
        let both = [self.read(pair.original, &original)?, self.read(pair.edited, &edited)?];
        let to_first = |quad: &Quad| {
            quad.map(|[x, y]| {
                let point = pair.registration.to_first(&PixelBox::new(x, y, x, y));
                [point.x1, point.y1]
            })
        };
        let aligned = aligned(&both[0].rows, &both[1].rows, to_first);
        let text = self.compared(&both, &aligned, scene) + pair.doubt() + "\n" + HINT;
        let row = |row: &Option<Row>| row.as_ref().map(row_data);
        let aligned: Vec<Value> = aligned
            .iter()
            .map(|pair| {
                let changes = pair.changes();
                let changes: Vec<Value> =
                    changes.iter().map(|c| json!({ "from": c.from, "to": c.to })).collect();
                json!({
                    "original": row(&pair.first), "edited": row(&pair.second),
                    "same": pair.is_same(), "changes": changes,
                })
            })
            .collect();
        let data = json!({
            "pictures": both.iter().map(Reading::data).collect::<Vec<_>>(),
            "aligned": aligned,
            "registered": pair.registration.is_reliable(),
        });
        Ok(ToolOutput { text, data, pictures: Vec::new() })
    }

    fn compared(&self, both: &[Reading; 2], aligned: &[Aligned], scene: &Scene) -> String {
        let [first, second] = both;
        let mut text = format!(
            "Read in {} of the {ORIGINAL} and the same place in the {EDITED} ({}): {} and {}.",
            scene.box_text(ORIGINAL, &first.bbox),
            scene.box_text(EDITED, &second.bbox),
            count(first.rows.len(), "row"),
            count(second.rows.len(), "row"),
        );
        // What differs comes first: where rows are left out, it is not among them.
        let (same, differing): (Vec<&Aligned>, Vec<&Aligned>) =
            aligned.iter().partition(|pair| pair.is_same());
        let told = |row: &Row, name: &str| {
            format!(
                "{} (sure {:.2}, {})",
                said(&row.text),
                row.confidence,
                scene.box_text(name, &row.bbox())
            )
        };
        let differing_lines = differing.iter().map(|pair| match (&pair.first, &pair.second) {
            (Some(first), Some(second)) => {
                let changes: Vec<String> = pair
                    .changes()
                    .iter()
                    .map(|c| match (c.from.as_str(), c.to.as_str()) {
                        ("", to) => format!("{} is new", said(to)),
                        (from, "") => format!("{} is gone", said(from)),
                        (from, to) => format!("{} became {}", said(from), said(to)),
                    })
                    .collect();
                format!(
                    "\n- {ORIGINAL}: {}; {EDITED}: {}: {}.",
                    told(first, ORIGINAL),
                    told(second, EDITED),
                    changes.join(", ")
                )
            }
            (Some(first), None) => {
                format!(
                    "\n- {ORIGINAL}: {}; nothing was read there in the {EDITED}.",
                    told(first, ORIGINAL)
                )
            }
            (None, Some(second)) => {
                format!(
                    "\n- {EDITED}: {}; nothing was read there in the {ORIGINAL}.",
                    told(second, EDITED)
                )
            }
            (None, None) => String::new(),
        });
        if !differing.is_empty() {
            text += "\nRead differently:";
            text.extend(differing_lines.take(self.settings.most_rows));
        } else if !same.is_empty() {
            text += " Every row was read alike.";
        }
        let room = self.settings.most_rows.saturating_sub(differing.len());
        if !same.is_empty() && room > 0 {
            text += "\nRead alike in both:";
            let rows = same.iter().filter_map(|pair| pair.first.as_ref()).take(room);
            text.extend(rows.map(|row| format!("\n- {}.", told(row, ORIGINAL))));
        }
        text += &left_out(aligned.len().saturating_sub(self.settings.most_rows));
        text += &both.iter().map(Reading::unread_in_words).collect::<String>();
        text
    }

    /// Regions of pictures, each on its own.
    fn alone(&self, readings: &[Reading], scene: &Scene) -> ToolOutput {
        let mut text = String::new();
        for reading in readings {
            text += &format!(
                "Read in {} of the {}: {}.",
                scene.box_text(&reading.source, &reading.bbox),
                reading.source,
                count(reading.rows.len(), "row")
            );
            for row in reading.rows.iter().take(self.settings.most_rows) {
                text += &format!(
                    "\n- {} (sure {:.2}, {}).",
                    said(&row.text),
                    row.confidence,
                    scene.box_text(&reading.source, &row.bbox())
                );
            }
            text += &left_out(reading.rows.len().saturating_sub(self.settings.most_rows));
            text += &reading.unread_in_words();
            text += "\n";
        }
        let data = json!({ "pictures": readings.iter().map(Reading::data).collect::<Vec<_>>() });
        ToolOutput { text: text + HINT, data, pictures: Vec::new() }
    }
}

impl Tool for ReadText {
    type Args = ReadArgs;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn description(&self, boxes: BoxConvention) -> String {
        format!(
            "Reads the lettering in a picture or a region of it (OCR), with a box and a confidence for each row; \
             of both pictures it tells row by row what reads differently. Use it where an instruction is about \
             text, and to find lettering that was changed unasked. A reading is a hint, the picture decides: \
             zoom in on every row that matters. Boxes are {}.",
            boxes.form()
        )
    }

    fn settings(&self) -> Value {
        json!({ "reader": self.reader.identity(), "reading": self.settings })
    }

    fn call(&self, args: ReadArgs, scene: &Scene) -> Result<ToolOutput, ToolError> {
        let target = match args.target_image.as_deref() {
            Some(name) => name,
            None if scene.view(EDITED).is_ok() => BOTH,
            None => ORIGINAL,
        };
        if target.trim().eq_ignore_ascii_case(BOTH) {
            return self.read_both(args.bbox, scene);
        }
        let readings = match args.bbox {
            Some(values) => {
                let (source, region) = scene.place(target, values)?;
                vec![self.read(source, &region)?]
            }
            // A crop is read where it was cut from: that has all the detail there is.
            None => {
                let panels = scene.view(target)?.panels.iter();
                let read = panels.map(|panel| {
                    let source = scene.view(&panel.source)?;
                    self.read(source, &panel.region.clipped(source.picture.size()))
                });
                read.collect::<Result<_, ToolError>>()?
            }
        };
        Ok(self.alone(&readings, scene))
    }
}

impl Declared for ReadText {
    const NAME: &'static str = "read_text";
    type Settings = ReadingSettings;
    const NETWORK: Option<NetworkKind> = Some(READER);

    fn check(settings: &ReadingSettings) -> Result<(), String> {
        settings.check()
    }

    fn settable(recorded: &Value) -> &Value {
        &recorded["reading"]
    }

    fn make(settings: ReadingSettings, networks: &Networks) -> Result<Self, String> {
        Ok(Self::with_settings(networks.get(&READER)?, settings))
    }
}

impl Reading {
    fn data(&self) -> Value {
        let lines = self.lines.iter().map(|line| {
            json!({
                "text": line.text, "confidence": line.confidence,
                "bbox": rows::bbox(&line.corners), "corners": line.corners,
            })
        });
        json!({
            "source": self.source, "bbox": self.bbox, "lines": lines.collect::<Vec<_>>(),
            "rows": self.rows.iter().map(row_data).collect::<Vec<_>>(), "unread": self.unread,
        })
    }

    fn unread_in_words(&self) -> String {
        match self.unread.len() {
            0 => String::new(),
            n => format!(
                "\n{} of the {} may be lettering that could not be read.",
                count(n, "more place"),
                self.source
            ),
        }
    }
}

fn row_data(row: &Row) -> Value {
    json!({ "text": row.text, "confidence": row.confidence, "bbox": row.bbox() })
}

/// What was read is anybody's text: quoted, on one line, and not endless.
fn said(text: &str) -> String {
    format!("{:?}", cut(text, 120))
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

fn left_out(rows: usize) -> String {
    match rows {
        0 => String::new(),
        n => format!("\n{} not told here.", count(n, "more row")),
    }
}
