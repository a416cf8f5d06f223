//! The offline judge's own eyes: pixel by pixel, on crops of a few hundred pixels.

use deeplook_tools::{Picture, Size};

use super::colours::{Rgb, distance};

/// A crop at the size at which it is looked at.
#[derive(Debug, Clone)]
pub(super) struct Patch {
    width: usize,
    height: usize,
    pixels: Vec<Rgb>,
}

impl Patch {
    /// The picture at another size.
    pub(super) fn of(picture: &Picture, size: Size) -> Self {
        let small = picture.resized(size);
        Self {
            width: size.width as usize,
            height: size.height as usize,
            pixels: small.rgb().pixels().map(|p| p.0.map(f32::from)).collect(),
        }
    }

    fn at(&self, x: isize, y: isize) -> Rgb {
        let x = x.clamp(0, self.width as isize - 1) as usize;
        let y = y.clamp(0, self.height as isize - 1) as usize;
        self.pixels[y * self.width + x]
    }

    /// The pixels under a mask.
    pub(super) fn under<'a>(&'a self, mask: &'a Mask) -> impl Iterator<Item = Rgb> + 'a {
        self.pixels.iter().zip(&mask.set).filter(|(_, set)| **set).map(|(rgb, _)| *rgb)
    }

    /// The colour in the middle of those under a mask.
    pub(super) fn median(&self, mask: &Mask) -> Option<Rgb> {
        let mut channels: [Vec<f32>; 3] = Default::default();
        for rgb in self.under(mask) {
            (0..3).for_each(|c| channels[c].push(rgb[c]));
        }
        let middle = channels[0].len() / 2;
        (!channels[0].is_empty()).then(|| {
            channels.map(|mut values| *values.select_nth_unstable_by(middle, f32::total_cmp).1)
        })
    }

    /// This with `f` for every pixel.
    fn mapped(&self, f: impl Fn(usize, usize) -> Rgb) -> Self {
        let pixels = (0..self.width * self.height).map(|i| f(i % self.width, i / self.width));
        Self { pixels: pixels.collect(), ..*self }
    }

    /// This laid onto `other`: moved by a few pixels at most, and with its tone.
    pub(super) fn laid_onto(&self, other: &Self) -> Self {
        const FAR: isize = 3;
        let moves = (-FAR..=FAR).flat_map(|dy| (-FAR..=FAR).map(move |dx| (dx, dy)));
        let cost = |(dx, dy): (isize, isize)| {
            let mut sum = (dx.abs() + dy.abs()) as f32 * 1e-3;
            for y in (FAR..self.height as isize - FAR).step_by(2) {
                for x in (FAR..self.width as isize - FAR).step_by(2) {
                    let (a, b) = (other.at(x, y), self.at(x + dx, y + dy));
                    sum += (0..3).map(|c| (a[c] - b[c]).abs()).sum::<f32>().min(60.0);
                }
            }
            sum
        };
        let best = moves.map(|m| (cost(m), m)).min_by(|a, b| a.0.total_cmp(&b.0));
        let (dx, dy) = best.map_or((0, 0), |(_, m)| m);
        let moved = self.mapped(|x, y| self.at(x as isize + dx, y as isize + dy));
        moved.toned_like(other)
    }

    /// This with the tone of `other`: a line through each channel, fitted where they agree.
    fn toned_like(&self, other: &Self) -> Self {
        let mut lines = [(1.0f32, 0.0f32); 3];
        for near in [40.0, 20.0] {
            for (c, line) in lines.iter_mut().enumerate() {
                let (mut n, mut sx, mut sy, mut sxx, mut sxy) = (0.0f64, 0.0, 0.0, 0.0, 0.0);
                for (a, b) in self.pixels.iter().zip(&other.pixels) {
                    let (x, y) = (f64::from(a[c]), f64::from(b[c]));
                    if (f64::from(line.0) * x + f64::from(line.1) - y).abs() < near {
                        (n, sx, sy) = (n + 1.0, sx + x, sy + y);
                        (sxx, sxy) = (sxx + x * x, sxy + x * y);
                    }
                }
                let spread = sxx - sx * sx / n.max(1.0);
                if n < 0.3 * self.pixels.len() as f64 || spread < n * 25.0 {
                    continue;
                }
                let slope = ((sxy - sx * sy / n) / spread).clamp(0.8, 1.25);
                *line = (slope as f32, ((sy - slope * sx) / n) as f32);
            }
        }
        let toned = |rgb: &Rgb| std::array::from_fn(|c| rgb[c] * lines[c].0 + lines[c].1);
        Self { pixels: self.pixels.iter().map(toned).collect(), ..*self }
    }

    /// Least and most of each channel around a pixel.
    fn range(&self, x: usize, y: usize) -> (Rgb, Rgb) {
        let (mut low, mut high) = ([f32::MAX; 3], [f32::MIN; 3]);
        for (dx, dy) in (0..9).map(|i| (i % 3 - 1, i / 3 - 1)) {
            let rgb = self.at(x as isize + dx, y as isize + dy);
            low = std::array::from_fn(|c| low[c].min(rgb[c]));
            high = std::array::from_fn(|c| high[c].max(rgb[c]));
        }
        (low, high)
    }

    /// Where two patches differ beyond noise and a pixel's shift.
    pub(super) fn differs_from(&self, other: &Self) -> Mask {
        const VISIBLE: f32 = 20.0;
        const SPECK: usize = 10;
        let beyond = |rgb: Rgb, (low, high): (Rgb, Rgb)| {
            (0..3).map(|c| (low[c] - rgb[c]).max(rgb[c] - high[c])).fold(0.0, f32::max)
        };
        let differs = |i: usize| {
            let (x, y) = (i % self.width, i / self.width);
            let (a, b) = (self.pixels[i], other.pixels[i]);
            if (0..3).all(|c| (a[c] - b[c]).abs() < VISIBLE) {
                return false;
            }
            beyond(a, other.range(x, y)).max(beyond(b, self.range(x, y))) > VISIBLE
        };
        let mask = Mask {
            width: self.width,
            height: self.height,
            set: (0..self.pixels.len()).map(differs).collect(),
        };
        mask.joined(mask.pieces().into_iter().filter(|piece| piece.pixels.len() >= SPECK))
    }
}

/// Some of the pixels of a patch.
#[derive(Debug, Clone)]
pub(super) struct Mask {
    width: usize,
    height: usize,
    set: Vec<bool>,
}

/// Pixels of a mask that touch each other.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// Their indices.
    pub(super) pixels: Vec<usize>,
    /// Left, top, right, bottom; right and bottom exclusive.
    pub(super) bounds: [usize; 4],
}

impl Mask {
    /// Width and height.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// How many pixels.
    pub(super) fn count(&self) -> usize {
        self.set.iter().filter(|set| **set).count()
    }

    /// The part of all pixels.
    pub(super) fn share(&self) -> f32 {
        self.count() as f32 / self.set.len().max(1) as f32
    }

    fn combined(&self, other: &Self, f: impl Fn(bool, bool) -> bool) -> Self {
        let set = self.set.iter().zip(&other.set).map(|(a, b)| f(*a, *b)).collect();
        Self { set, ..*self }
    }

    /// In both.
    pub(super) fn and(&self, other: &Self) -> Self {
        self.combined(other, |a, b| a && b)
    }

    /// In either.
    pub(super) fn or(&self, other: &Self) -> Self {
        self.combined(other, |a, b| a || b)
    }

    /// In this only.
    pub(super) fn minus(&self, other: &Self) -> Self {
        self.combined(other, |a, b| a && !b)
    }

    /// Only the pixels of a patch for which `f` holds.
    pub(super) fn filtered(&self, patch: &Patch, f: impl Fn(Rgb) -> bool) -> Self {
        let set = self.set.iter().zip(&patch.pixels).map(|(set, rgb)| *set && f(*rgb)).collect();
        Self { set, ..*self }
    }

    /// A box of this mask's size, from fractions of its sides.
    pub(super) fn block(&self, [x1, y1, x2, y2]: [f32; 4]) -> Self {
        let inside = |i: usize| {
            let x = ((i % self.width) as f32 + 0.5) / self.width as f32;
            let y = ((i / self.width) as f32 + 0.5) / self.height as f32;
            x >= x1 && x < x2 && y >= y1 && y < y2
        };
        Self { set: (0..self.set.len()).map(inside).collect(), ..*self }
    }

    /// All pixels within the bounds of a piece.
    pub(super) fn within(&self, [x1, y1, x2, y2]: [usize; 4]) -> Self {
        let inside =
            |i: usize| (x1..x2).contains(&(i % self.width)) && (y1..y2).contains(&(i / self.width));
        Self { set: (0..self.set.len()).map(inside).collect(), ..*self }
    }

    /// The pixels of these pieces.
    pub(super) fn joined(&self, pieces: impl Iterator<Item = Piece>) -> Self {
        let mut set = vec![false; self.set.len()];
        pieces.flat_map(|piece| piece.pixels).for_each(|i| set[i] = true);
        Self { set, ..*self }
    }

    /// Grown by a square of `by` pixels on each side.
    pub(super) fn grown(&self, by: usize) -> Self {
        let mut wide = vec![false; self.set.len()];
        for (i, _) in self.set.iter().enumerate().filter(|(_, set)| **set) {
            let (x, row) = (i % self.width, i / self.width * self.width);
            let (from, to) = (x.saturating_sub(by), (x + by + 1).min(self.width));
            wide[row + from..row + to].fill(true);
        }
        let mut set = wide.clone();
        for (i, _) in wide.iter().enumerate().filter(|(_, set)| **set) {
            let (x, y) = (i % self.width, i / self.width);
            for y in y.saturating_sub(by)..(y + by + 1).min(self.height) {
                set[y * self.width + x] = true;
            }
        }
        Self { set, ..*self }
    }

    /// What lies between set pixels both in its row and in its column.
    pub(super) fn hull(&self) -> Self {
        let span = |indices: &mut dyn Iterator<Item = usize>| {
            let set: Vec<usize> = indices.filter(|i| self.set[*i]).collect();
            set.first().copied().zip(set.last().copied())
        };
        let (w, h) = (self.width, self.height);
        let rows: Vec<_> = (0..h).map(|y| span(&mut (0..w).map(|x| y * w + x))).collect();
        let columns: Vec<_> = (0..w).map(|x| span(&mut (0..h).map(|y| y * w + x))).collect();
        let inside = |i: usize| {
            let within = |span: Option<(usize, usize)>| span.is_some_and(|(a, b)| a <= i && i <= b);
            within(rows[i / w]) && within(columns[i % w])
        };
        Self { set: (0..self.set.len()).map(inside).collect(), ..*self }
    }

    /// Pixels that touch each other, diagonally too.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let mut seen = vec![false; self.set.len()];
        let mut pieces = Vec::new();
        for start in 0..self.set.len() {
            if seen[start] || !self.set[start] {
                continue;
            }
            seen[start] = true;
            let (x, y) = (start % self.width, start / self.width);
            let mut piece = Piece { pixels: vec![start], bounds: [x, y, x + 1, y + 1] };
            let mut next = 0;
            while let Some(&at) = piece.pixels.get(next) {
                next += 1;
                let (x, y) = (at % self.width, at / self.width);
                let [x1, y1, x2, y2] = piece.bounds;
                piece.bounds = [x1.min(x), y1.min(y), x2.max(x + 1), y2.max(y + 1)];
                for ny in y.saturating_sub(1)..(y + 2).min(self.height) {
                    for nx in x.saturating_sub(1)..(x + 2).min(self.width) {
                        let i = ny * self.width + nx;
                        if self.set[i] && !seen[i] {
                            seen[i] = true;
                            piece.pixels.push(i);
                        }
                    }
                }
            }
            pieces.push(piece);
        }
        pieces
    }

    /// Those of its pieces that touch `other`.
    pub(super) fn touching(&self, other: &Self) -> Self {
        let touches = |piece: &Piece| piece.pixels.iter().any(|i| other.set[*i]);
        self.joined(self.pieces().into_iter().filter(touches))
    }
}

/// The colours that occur somewhere.
#[derive(Debug, Clone)]
pub(super) struct Palette(Vec<Rgb>);

impl Palette {
    /// The colours of these pixels, without the rare ones.
    pub(super) fn of(pixels: impl Iterator<Item = Rgb>) -> Self {
        const RARE: f32 = 0.015;
        let mut bins = vec![(0.0f32, [0.0f32; 3]); 512];
        let mut all = 0.0f32;
        for rgb in pixels {
            let bin = |c: usize| (rgb[c].clamp(0.0, 255.0) as usize) >> 5;
            let entry = &mut bins[bin(0) << 6 | bin(1) << 3 | bin(2)];
            entry.0 += 1.0;
            (0..3).for_each(|c| entry.1[c] += rgb[c]);
            all += 1.0;
        }
        let common = bins.into_iter().filter(|(count, _)| *count > (RARE * all).max(0.5));
        Self(common.map(|(count, sum)| sum.map(|v| v / count)).collect())
    }

    /// Whether a colour is one of them.
    pub(super) fn has(&self, rgb: Rgb) -> bool {
        self.0.iter().any(|own| distance(*own, rgb) < 34.0)
    }
}

/// What is seen at a place that differs: a thing before, a thing after.
#[derive(Debug, Clone)]
pub(super) struct Sight {
    /// The colour of the thing that was there.
    pub(super) before: Option<Rgb>,
    /// The colour of the thing that is there.
    pub(super) after: Option<Rgb>,
    /// How far the outlines agree, 0 to 1.
    pub(super) outline: f32,
    /// The part of the thing (before and after) whose pixels changed.
    pub(super) changed: f32,
    /// The part of what is there that has neither the thing's former colour nor its new one.
    pub(super) motley: f32,
    /// The pixels of what is there.
    pub(super) shown: Vec<Rgb>,
    /// Whether it touches a white block, the same in both pictures, as is painted over targets.
    pub(super) beside_paint: bool,
}

/// The side at which a crop is looked at.
const SIDE: u32 = 192;

/// Looks at a place in both pictures; `None` where nothing differs in the middle.
pub(super) fn sight(first: &Picture, second: &Picture) -> Option<Sight> {
    let size = first.size().with_long_side(first.size().long_side().min(SIDE));
    let one = Patch::of(first, size);
    let two = Patch::of(second, size).laid_onto(&one);
    let differs = one.differs_from(&two);
    let changed = differs.touching(&differs.block([0.22, 0.22, 0.78, 0.78]));
    if changed.count() == 0 {
        return None;
    }
    let hull = changed.hull();
    let ring = hull.grown(4).minus(&hull.grown(2));
    let ground = [Palette::of(one.under(&ring)), Palette::of(two.under(&ring))];
    let figure = |patch: &Patch, ground: &Palette| hull.filtered(patch, |rgb| !ground.has(rgb));
    let (was, is) = (figure(&one, &ground[0]), figure(&two, &ground[1]));
    let both = was.or(&is);
    let present = |mask: &Mask| mask.count() * 6 > both.count() && mask.count() > 12;
    let colour = |patch: &Patch, mask: &Mask| patch.median(mask).filter(|_| present(mask));
    let share = |part: &Mask, whole: &Mask| part.count() as f32 / whole.count().max(1) as f32;
    let (before, after) = (colour(&one, &was), colour(&two, &is));
    let motley = is.filtered(&two, |rgb| after.is_some_and(|own| distance(own, rgb) > 60.0));
    Some(Sight {
        outline: share(&was.and(&is), &both),
        changed: share(&changed.and(&both), &both),
        motley: share(&motley, &is),
        shown: two.under(&is).collect(),
        beside_paint: changed.grown(9).and(&painted(&one, &two, &differs)).count() > 0,
        before,
        after,
    })
}

/// The white blocks that both show.
fn painted(one: &Patch, two: &Patch, like: &Mask) -> Mask {
    let white = |rgb: Rgb| rgb.iter().all(|v| *v > 252.0);
    // The second has the tone of the first by now, so that white may have changed a little.
    let pale = |rgb: Rgb| rgb.iter().all(|v| *v > 238.0);
    let both = like.block([0.0, 0.0, 1.0, 1.0]).filtered(one, white).filtered(two, pale);
    let is_block = |piece: &Piece| {
        let [x1, y1, x2, y2] = piece.bounds;
        piece.pixels.len() >= 25 && piece.pixels.len() * 10 >= (x2 - x1) * (y2 - y1) * 7
    };
    both.joined(both.pieces().into_iter().filter(is_block))
}
