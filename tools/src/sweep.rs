//! `sweep`: both pictures tile by tile, side by side, so that nothing is left unseen.

use std::sync::Arc;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bounds::within;
use crate::coords::{BoxConvention, PixelBox, Size};
use crate::declaration::{Declared, Networks};
use crate::enhancer::{Enhancer, Enlargement};
use crate::pair::{Pair, Place};
use crate::picture::Picture;
use crate::scene::{EDITED, ORIGINAL, Scene, View};
use crate::side_by_side::Layout;
use crate::tool::{Tool, ToolError, ToolOutput};
use crate::zoom::MOST_SIDE;

/// The most tiles that a call may ask for.
const MOST_TILES: usize = 24;
/// The long side at which differences of tiles are measured.
const MEASURED: u32 = 320;
/// The part of a tile's pixels, those that differ most, whose mean stands for it.
const STRONGEST: f64 = 0.001;

/// Shows both pictures in aligned tiles.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sweep {
    /// About how many pixels a side of a tile has where the call does not say how many there are.
    pub tile: u32,
    /// No more tiles than this where the call does not say.
    pub most_tiles: usize,
    /// How much of its side a tile shares with its neighbour: what lies on the border of one is seen.
    pub overlap: f64,
    /// A tile whose long side is shorter is enlarged to this, …
    pub floor: u32,
    /// … but not more often than this.
    pub most: f64,
    /// No side of a picture is longer than this.
    pub ceiling: u32,
}

impl Default for Sweep {
    fn default() -> Self {
        Self { tile: 800, most_tiles: 12, overlap: 0.06, floor: 768, most: 4.0, ceiling: 2048 }
    }
}

/// The arguments of [`Sweep`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepArgs {
    /// How many rows of tiles, 1 to 8. Default: so many that the detail of the pictures is seen.
    #[serde(default)]
    rows: Option<u32>,
    /// How many columns of tiles, 1 to 8. Default: so many that the detail of the pictures is seen.
    #[serde(default)]
    columns: Option<u32>,
}

/// A tile before it is shown.
struct Tile {
    row: usize,
    column: usize,
    place: Place,
    /// Grey levels.
    residual: f64,
}

impl Tool for Sweep {
    type Args = SweepArgs;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn description(&self, boxes: BoxConvention) -> String {
        format!(
            "Shows the whole Original Image and the same places in the Edited Image side by side, tile by \
             tile, the tiles that differ most first. Use it once to go through both pictures for changes \
             that nobody asked for. Boxes are {}.",
            boxes.form()
        )
    }

    fn settings(&self) -> Value {
        json!(self)
    }

    fn call(&self, args: SweepArgs, scene: &Scene) -> Result<ToolOutput, ToolError> {
        for (name, number) in [("rows", args.rows), ("columns", args.columns)] {
            if let Some(number) = number.filter(|number| !(1..=8).contains(number)) {
                return Err(ToolError::refused(format!(
                    "{name} is {number}; give a number from 1 to 8"
                )));
            }
        }
        let pair = Pair::of(scene)?;
        let (rows, columns) = self.grid(&args, &pair, scene)?;
        let tiles = self.tiles((rows, columns), &pair);
        if tiles.is_empty() {
            return Err(ToolError::refused(format!(
                "no part of the {ORIGINAL} is in the frame of the {EDITED}"
            )));
        }
        let layout = self.layout(&tiles[0].place, scene).0;
        let shown: Vec<View> = tiles
            .par_iter()
            .enumerate()
            .map(|(at, tile)| self.view(tile, layout, &pair, scene, scene.crop_name(at)))
            .collect::<Result<_, ToolError>>()?;
        let names: Vec<&str> = shown.iter().map(|view| view.name.as_str()).collect();
        let (text, data) = told(&tiles, &names, (rows, columns), layout, &pair, scene);
        Ok(ToolOutput { text, data, pictures: shown })
    }
}

impl Declared for Sweep {
    const NAME: &'static str = "sweep";
    type Settings = Self;

    fn check(settings: &Self) -> Result<(), String> {
        settings.check()
    }

    fn make(settings: Self, _: &Networks) -> Result<Self, String> {
        Ok(settings)
    }
}

impl Sweep {
    /// What of its settings cannot be meant, if anything.
    pub fn check(&self) -> Result<(), String> {
        within("tile", self.tile, 16..=MOST_SIDE)?;
        within("most_tiles", self.most_tiles, 1..=MOST_TILES)?;
        within("overlap", self.overlap, 0.0..=0.5)?;
        within("floor", self.floor, 1..=MOST_SIDE)?;
        within("most", self.most, 0.1..=1000.0)?;
        within("ceiling", self.ceiling, 1..=MOST_SIDE)
    }

    /// How many rows and columns: as asked for, else so many that tiles have about the usual size.
    fn grid(
        &self,
        args: &SweepArgs,
        pair: &Pair<'_>,
        scene: &Scene,
    ) -> Result<(usize, usize), ToolError> {
        let left = scene.pictures_left();
        if left == Some(0) {
            return Err(ToolError::refused(
                "no more pictures can be sent in this conversation; answer from what you have seen",
            ));
        }
        let most = left.map_or(MOST_TILES, |left| left.min(MOST_TILES));
        let whole = PixelBox::whole(pair.original.picture.size());
        let edited = pair.registration.to_second(&whole);
        let size = Place { original: whole, edited }.detail();
        let sensible = |side: u32| (f64::from(side) / f64::from(self.tile)).round().max(2.0);
        let (mut rows, mut columns) = (sensible(size.height), sensible(size.width));
        let (given_rows, given_columns) = (args.rows.map(f64::from), args.columns.map(f64::from));
        rows = given_rows.unwrap_or(rows);
        columns = given_columns.unwrap_or(columns);
        let limit = self.most_tiles.clamp(1, most) as f64;
        while rows * columns > limit && (given_rows.is_none() || given_columns.is_none()) {
            // Fewer along the side on which tiles are shorter.
            let flat = f64::from(size.height) / rows <= f64::from(size.width) / columns;
            let fewer_rows =
                given_rows.is_none() && rows > 1.0 && (flat || given_columns.is_some());
            if fewer_rows {
                rows -= 1.0;
            } else if given_columns.is_none() && columns > 1.0 {
                columns -= 1.0;
            } else if given_rows.is_none() && rows > 1.0 {
                rows -= 1.0;
            } else {
                break;
            }
        }
        let (rows, columns) = (rows as usize, columns as usize);
        if rows * columns > most {
            let why = if most < MOST_TILES { "the model can get" } else { "are shown at once" };
            return Err(ToolError::refused(format!(
                "{rows} rows and {columns} columns are {} tiles, more than the {most} that {why}",
                rows * columns
            )));
        }
        Ok((rows, columns))
    }

    /// The tiles that the edited picture shows too, the largest residuals first.
    fn tiles(&self, (rows, columns): (usize, usize), pair: &Pair<'_>) -> Vec<Tile> {
        let size = pair.original.picture.size();
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let part = |at: usize, count: usize, side: f64| {
            let step = side / count as f64;
            let shared = if count > 1 { self.overlap * step } else { 0.0 };
            (at as f64 * step - shared, (at + 1) as f64 * step + shared)
        };
        let places = (0..rows * columns).map(|at| {
            let (row, column) = (at / columns, at % columns);
            let ((y1, y2), (x1, x2)) = (part(row, rows, height), part(column, columns, width));
            (row, column, PixelBox::new(x1, y1, x2, y2).whole_pixels(size))
        });
        let places: Vec<_> = places.collect();
        let mut tiles: Vec<Tile> = places
            .into_par_iter()
            .filter_map(|(row, column, area)| {
                let place = pair.same_place(&area)?;
                let residual = residual(&place, pair)?;
                Some(Tile { row, column, place, residual })
            })
            .collect();
        // A stable sort: of equals, row by row.
        tiles.sort_by(|a, b| b.residual.total_cmp(&a.residual));
        tiles
    }

    /// How the halves of a tile lie, and how large each of them is.
    fn layout(&self, place: &Place, scene: &Scene) -> (Layout, Size) {
        let own = Size::new(place.original.width() as u32, place.original.height() as u32);
        let wanted =
            (f64::from(self.floor) / f64::from(own.long_side())).clamp(1.0, self.most.max(1.0));
        let (layout, times) = Layout::fitting(own, wanted, self.ceiling.min(scene.room().side));
        (layout, own.scaled(times))
    }

    fn view(
        &self,
        tile: &Tile,
        layout: Layout,
        pair: &Pair<'_>,
        scene: &Scene,
        name: String,
    ) -> Result<View, ToolError> {
        let (_, shown) = self.layout(&tile.place, scene);
        let way = (&Enhancer::none(), Enlargement::Interpolated);
        let (picture, panels) = pair.side_by_side(&tile.place, shown, layout, way, Self::NAME)?;
        Ok(View { name, picture: Arc::new(picture), panels })
    }
}

/// How much the strongest pixels of a place differ, when the mean change of each channel is taken off.
fn residual(place: &Place, pair: &Pair<'_>) -> Option<f64> {
    let registration = &pair.registration;
    let original = place.original.intersection(&registration.visible());
    let edited = registration.to_second(&original).clipped(pair.edited.picture.size());
    if original.is_empty() || edited.is_empty() {
        return None;
    }
    let detail = Place { original, edited }.detail();
    let size = if detail.long_side() > MEASURED { detail.with_long_side(MEASURED) } else { detail };
    let seen = |picture: &Picture, area: &PixelBox| picture.under(area, size);
    let (first, second) =
        (seen(&pair.original.picture, &original), seen(&pair.edited.picture, &edited));
    let differences: Vec<[i32; 3]> = first
        .rgb()
        .pixels()
        .zip(second.rgb().pixels())
        .map(|(a, b)| std::array::from_fn(|c| i32::from(b.0[c]) - i32::from(a.0[c])))
        .collect();
    let count = differences.len().max(1) as f64;
    let mean: [f64; 3] = std::array::from_fn(|c| {
        differences.iter().map(|d| i64::from(d[c])).sum::<i64>() as f64 / count
    });
    let strength =
        |d: &[i32; 3]| (0..3).map(|c| (f64::from(d[c]) - mean[c]).abs()).fold(0.0, f64::max);
    let mut strengths: Vec<f64> = differences.iter().map(strength).collect();
    strengths.sort_by(|a, b| b.total_cmp(a));
    strengths.truncate(((STRONGEST * count).ceil() as usize).max(1));
    Some(strengths.iter().sum::<f64>() / strengths.len() as f64)
}

fn told(
    tiles: &[Tile],
    names: &[&str],
    (rows, columns): (usize, usize),
    layout: Layout,
    pair: &Pair<'_>,
    scene: &Scene,
) -> (String, Value) {
    let [first, second] = layout.sides();
    let missing = rows * columns - tiles.len();
    let mut text = format!(
        "{} tiles ({rows} rows, {columns} columns) of the {ORIGINAL} {first} and the same places in the \
         {EDITED} {second}, a red line between; those that differ most come first:",
        tiles.len()
    );
    for (tile, name) in tiles.iter().zip(names) {
        text += &format!(
            "\n{name}: row {}, column {}, {}, strongest difference {:.0} of 255",
            tile.row + 1,
            tile.column + 1,
            scene.box_text(ORIGINAL, &tile.place.original),
            tile.residual,
        );
    }
    if missing > 0 {
        text +=
            &format!("\n{missing} tiles are not in the frame of the {EDITED} and are left out.");
    }
    text += "\nNeighbouring tiles overlap a little. The numbers only order the tiles: they are measured on \
             reduced tiles, and a small change can hide in a tile with a small number.";
    let places: Vec<Place> = tiles.iter().map(|tile| tile.place).collect();
    text += &pair.remarks(&places);
    text += pair.doubt();
    let tiles: Vec<Value> = tiles
        .iter()
        .zip(names)
        .map(|(tile, name)| {
            let in_edited = tile.place.edited.clipped(pair.edited.picture.size());
            json!({
                "row": tile.row + 1, "column": tile.column + 1,
                "bbox": tile.place.original, "bbox_edited": in_edited,
                "difference": (tile.residual * 10.0).round() / 10.0, "crop": name,
            })
        })
        .collect();
    let registered = pair.registration.is_reliable();
    let data =
        json!({ "rows": rows, "columns": columns, "tiles": tiles, "registered": registered });
    (text, data)
}
