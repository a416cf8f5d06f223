//! Objects, not blobs: a large region that holds several separate changes becomes several.

use super::coarse::Coarse;
use super::hills::{Ground, Hill, Landscape};
use super::settings::Settings;
use super::{Part, Region};
use crate::coords::PixelBox;

/// Regions up to this part of the picture stay whole.
const WHOLE: f64 = 0.03;
/// A hill belongs to a large region where this part of its box lies in it.
const BELONGS: f64 = 0.5;
/// Weak hills: they stand out where the whole picture was redrawn.
const WEAK_Z: f32 = 2.0;
const WEAK_PEAK: f32 = 4.0;
/// A weak hill is new where less than this part of its box is covered already.
const COVERED: f64 = 0.3;
/// Hills with less than this part of the greatest mass are not worth a look; and so many are.
const LEAST_SHARE: f64 = 0.0005;
const MOST: usize = 48;
/// Two are one where this part of the smaller lies in the larger, …
const OVERLAP: f64 = 0.6;
/// … or where they touch, are together no more than this part of the picture …
const CROP: f64 = 0.06;
/// … and at most this part of that shows neither.
const DEAD: f64 = 0.5;
/// What a larger union costs beside the space that shows neither.
const UNION: f64 = 0.1;
/// An overview holds neighbours up to this part of the picture, …
const OVERVIEW: f64 = 0.25;
/// … at least two crops, each with this part of it inside, …
const HELD: f64 = 0.8;
/// … and less than this part of its size; there are so many.
const SMALLER: f64 = 0.7;
const OVERVIEWS: usize = 2;
/// Crops above this part of the picture tell their parts; so many in all.
const PARTED: f64 = 0.01;
const PARTS: usize = 24;
/// A side that is nearer to the border, in pixels of the frame, lies on it: the border is blind.
const BORDER: f64 = 12.0;

/// A change before it is put together with others.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// In pixels of the frame.
    area: PixelBox,
    hill: Option<Hill>,
    weak: bool,
    /// The region that it is, where it is a whole one.
    region: Option<usize>,
}

/// Several pieces that are shown together.
#[derive(Debug, Clone)]
struct Group {
    area: PixelBox,
    pieces: Vec<usize>,
}

/// Cuts the large ones of `regions` up; at most `most` come back where anything was cut.
pub(super) fn cut(
    regions: Vec<Region>,
    coarse: &Coarse,
    most: usize,
    settings: &Settings,
) -> Vec<Region> {
    let frame = PixelBox::whole(coarse.size);
    let whole = frame.area();
    let first = PixelBox::whole(coarse.registration.first());
    let on_frame = |region: &Region| region.bbox.mapped(&first, &frame);
    let (large, small): (Vec<usize>, Vec<usize>) =
        (0..regions.len()).partition(|&i| on_frame(&regions[i]).area() > WHOLE * whole);
    if large.is_empty() {
        return regions;
    }
    let large: Vec<PixelBox> = large.into_iter().map(|i| on_frame(&regions[i])).collect();
    let mut pieces: Vec<Piece> = small
        .into_iter()
        .map(|i| Piece { area: on_frame(&regions[i]), hill: None, weak: false, region: Some(i) })
        .collect();
    pieces.extend(hills(coarse, &large, &pieces, settings));

    let seeds = |weak: bool| -> Vec<Group> {
        let chosen = (0..pieces.len()).filter(|&i| weak || !pieces[i].weak);
        chosen.map(|i| Group { area: pieces[i].area, pieces: vec![i] }).collect()
    };
    let crops = joined(seeds(true), CROP * whole, most);
    let overviews: Vec<Group> = joined(seeds(false), OVERVIEW * whole, usize::MAX)
        .into_iter()
        .filter(|group| {
            let holds = |crop: &&Group| {
                crop.area.intersection(&group.area).area() >= HELD * crop.area.area()
                    && crop.area.area() < SMALLER * group.area.area()
            };
            group.area.area() > CROP * whole && crops.iter().filter(holds).count() >= 2
        })
        .take(OVERVIEWS.min(most.saturating_sub(1)))
        .collect();
    let crops = if overviews.is_empty() {
        crops
    } else {
        joined(crops, CROP * whole, most - overviews.len())
    };

    let mut told = parts(&crops, &pieces, whole);
    let shown = |group: &Group, parts: Vec<Part>| {
        let only = match group.pieces.as_slice() {
            [one] => pieces[*one].region,
            _ => None,
        };
        let mut region = only.map_or_else(
            || region(group, &pieces, &regions, coarse, settings),
            |i| regions[i].clone(),
        );
        region.parts = parts;
        region
    };
    let mut cut: Vec<Region> = crops
        .iter()
        .zip(&mut told)
        .map(|(group, parts)| {
            let parts = std::mem::take(parts);
            shown(
                group,
                parts
                    .into_iter()
                    .map(|area| Part { bbox: on_picture(area, coarse, settings) })
                    .collect(),
            )
        })
        .collect();
    cut.sort_by(|a, b| b.mass.total_cmp(&a.mass));
    let mut all: Vec<Region> = overviews
        .iter()
        .map(|group| Region { overview: true, ..shown(group, Vec::new()) })
        .collect();
    all.extend(cut);
    all
}

/// The hills in large regions, and the weak ones that nothing covers yet.
fn hills(coarse: &Coarse, large: &[PixelBox], small: &[Piece], settings: &Settings) -> Vec<Piece> {
    let landscape = Landscape::of(&coarse.measure);
    let size = f64::from(coarse.size.long_side()) / 768.0;
    let ground = Ground {
        z: settings.region_z,
        difference: settings.region_difference,
        peak_z: settings.peak_z,
        peak_difference: settings.peak_difference,
        mass: settings.least_mass * (size * size).min(1.0) as f32,
    };
    let covered = |area: &PixelBox, by: &[PixelBox]| -> f64 {
        by.iter().map(|other| other.intersection(area).area()).sum::<f64>() / area.area().max(1e-9)
    };
    let strong = landscape.hills(&ground);
    let mut found: Vec<(Hill, bool)> = strong
        .into_iter()
        .filter(|hill| covered(&hill.area, large) >= BELONGS)
        .map(|hill| (hill, false))
        .collect();
    let boxes: Vec<PixelBox> = found.iter().map(|(hill, _)| hill.area).collect();
    let small: Vec<PixelBox> = small.iter().map(|piece| piece.area).collect();
    let weak = Ground { z: WEAK_Z, peak_z: WEAK_PEAK, ..ground };
    found.extend(
        landscape
            .hills(&weak)
            .into_iter()
            .filter(|hill| {
                covered(&hill.area, &boxes) < COVERED && covered(&hill.area, &small) <= 0.0
            })
            .map(|hill| (hill, true)),
    );
    found.sort_by(|a, b| b.0.mass.total_cmp(&a.0.mass));
    let least = found.first().map_or(0.0, |(hill, _)| hill.mass * LEAST_SHARE);
    found.retain(|(hill, _)| hill.mass >= least);
    found.truncate(MOST);
    let piece = |(hill, weak): (Hill, bool)| Piece {
        area: hill.area,
        hill: Some(hill),
        weak,
        region: None,
    };
    found.into_iter().map(piece).collect()
}

/// Joins what overlaps or touches and makes a crop together; then, while there are more than `most`,
/// others, always the two that waste least.
fn joined(mut groups: Vec<Group>, largest: f64, most: usize) -> Vec<Group> {
    let cost = |a: &PixelBox, b: &PixelBox| {
        let union = a.union(b).area();
        let dead = (union - a.area() - b.area() + a.intersection(b).area()).max(0.0);
        (dead, union)
    };
    let fits = |a: &PixelBox, b: &PixelBox| {
        let shared = a.intersection(b).area();
        if shared >= OVERLAP * a.area().min(b.area()) && shared > 0.0 {
            return true;
        }
        let (dead, union) = cost(a, b);
        let touch = !a.grown(1.0, 1.0).intersection(b).is_empty();
        touch && union <= largest && dead <= DEAD * union
    };
    loop {
        let crowded = groups.len() > most;
        let mut best: Option<(bool, f64, usize, usize)> = None;
        for i in 0..groups.len() {
            for j in i + 1..groups.len() {
                let (a, b) = (&groups[i].area, &groups[j].area);
                let fit = fits(a, b);
                if !fit && !crowded {
                    continue;
                }
                let (dead, union) = cost(a, b);
                let price = dead + UNION * union;
                // What belongs together comes before what must make room.
                let better = best.is_none_or(|(was, least, ..)| (fit, -price) > (was, -least));
                if better {
                    best = Some((fit, price, i, j));
                }
            }
        }
        let Some((_, _, i, j)) = best else { return groups };
        let other = groups.remove(j);
        groups[i].area = groups[i].area.union(&other.area);
        groups[i].pieces.extend(other.pieces);
    }
}

/// The parts of each crop that has several, as boxes of the frame; the most visible of all.
fn parts(crops: &[Group], pieces: &[Piece], whole: f64) -> Vec<Vec<PixelBox>> {
    let mut all: Vec<(f64, usize, usize)> = Vec::new();
    for (at, crop) in crops.iter().enumerate() {
        if crop.pieces.len() < 2 || crop.area.area() <= PARTED * whole {
            continue;
        }
        for &i in &crop.pieces {
            let rank =
                pieces[i].hill.map_or(f64::INFINITY, |hill| hill.peak_z * hill.pixels.sqrt());
            all.push((rank, at, i));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    all.truncate(PARTS);
    let mut told = vec![Vec::new(); crops.len()];
    for (_, at, i) in all {
        told[at].push(pieces[i].area);
    }
    told
}

/// A box of the frame in pixels of the first picture, with a little around it.
fn on_picture(area: PixelBox, coarse: &Coarse, settings: &Settings) -> PixelBox {
    let frame = PixelBox::whole(coarse.size);
    let near = |edge: f64, end: f64| {
        if edge < BORDER {
            0.0
        } else if edge > end - BORDER {
            end
        } else {
            edge
        }
    };
    let area = area.grown(settings.padding, settings.padding);
    let area = PixelBox::new(
        near(area.x1, frame.x2),
        near(area.y1, frame.y2),
        near(area.x2, frame.x2),
        near(area.y2, frame.y2),
    );
    let first = coarse.registration.first();
    area.mapped(&frame, &PixelBox::whole(first)).whole_pixels(first)
}

/// Several pieces as one region.
fn region(
    group: &Group,
    pieces: &[Piece],
    regions: &[Region],
    coarse: &Coarse,
    settings: &Settings,
) -> Region {
    let mut region = Region::new(on_picture(group.area, coarse, settings), &coarse.registration);
    for &i in &group.pieces {
        let (mass, z, difference) = match (pieces[i].hill, pieces[i].region) {
            (Some(hill), _) => (hill.mass, hill.peak_z, hill.peak_difference),
            (None, Some(i)) => (regions[i].mass, regions[i].significance, regions[i].strength),
            (None, None) => continue,
        };
        region.mass += mass;
        region.significance = region.significance.max(z);
        region.strength = region.strength.max(difference);
    }
    coarse.describe(&mut region, &group.area, settings);
    region
}
