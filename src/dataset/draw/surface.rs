//! Walls, floors, tables and cloth: settings that are one surface, and a room that is two.

use deeplook_tools::Size;

use super::background::{Backdrop, Setting};
use super::canvas::{Canvas, smooth};
use super::colour::{Rgb, mix, shade};
use super::random::{Random, floor, fractal, noise, speck};

/// Paints a surface under soft light from one side.
pub(super) fn paint(setting: Setting, size: Size, random: &mut Random) -> Backdrop {
    let unit = size.long_side() as f32;
    let seed = random.seed();
    let (lx, ly) = (random.range(0.15, 0.85), random.range(0.05, 0.45));
    let tone = random.unit();
    let choice = random.below(4);
    let horizon = (setting == Setting::Room).then(|| random.range(0.55, 0.68) * size.height as f32);
    let surface = Surface { seed, tone, choice };
    let canvas = Canvas::filled(size, |x, y| {
        // Sizes in parts of the long side, so that a large picture shows the same scene.
        let (u, v) = (x as f32 / unit, y as f32 / unit);
        let base = match (setting, horizon) {
            (Setting::BrickWall, _) => surface.bricks(u, v),
            (Setting::WoodenTable, _) => surface.boards(u, v, 0.125),
            (Setting::TiledFloor, _) => surface.tiles(u, v),
            (Setting::Fabric, _) => surface.fabric(u, v, x as i32, y as i32),
            (Setting::Stone, _) => surface.stone(u, v, x as i32, y as i32),
            (Setting::Cork, _) => surface.cork(u, v),
            (_, Some(horizon)) if y as f32 >= horizon - unit * 0.012 => {
                let below = (y as f32 - horizon) / unit;
                if below < 0.0 {
                    shade([0.93, 0.92, 0.90], if below < -0.009 { 0.80 } else { 1.0 })
                } else {
                    // The floor's boards are seen at an angle.
                    let depth = 1.0 / (1.0 + below * 3.0);
                    let floor = surface.boards(v * 2.2 * depth, (u - 0.5) * depth + 2.0, 0.10);
                    shade(floor, 0.72 + 0.28 * smooth(below * 9.0))
                }
            }
            _ => surface.plaster(u, v),
        };
        let (dx, dy) = (x as f32 / size.width as f32 - lx, y as f32 / size.height as f32 - ly);
        shade(base, 1.06 - 0.26 * (dx * dx + dy * dy))
    });
    Backdrop { canvas, horizon }
}

struct Surface {
    seed: u32,
    tone: f32,
    choice: usize,
}

impl Surface {
    fn bricks(&self, u: f32, v: f32) -> Rgb {
        let (w, h) = (0.082, 0.030);
        let row = floor(v / h);
        let bond = if row % 2 == 0 { 0.0 } else { 0.5 };
        let wobble = (noise(self.seed ^ 2, u * 60.0, v * 60.0) - 0.5) * 0.10;
        let column = u / w + bond + wobble * 0.4;
        let (a, b) = (column - floor(column) as f32, v / h - row as f32 + wobble);
        let rough = fractal(self.seed, u * 90.0, v * 90.0, 4);
        let (old, new) = match self.choice {
            0 => ([0.72, 0.66, 0.58], [0.58, 0.50, 0.43]),
            1 => ([0.82, 0.80, 0.76], [0.72, 0.70, 0.67]),
            _ => ([0.62, 0.38, 0.30], [0.50, 0.28, 0.22]),
        };
        let each = speck(self.seed ^ 1, floor(column), row);
        let brick = shade(mix(old, new, each), 0.78 + 0.42 * rough);
        let joint = (a.min(1.0 - a) * w / h).min(b.min(1.0 - b));
        let mortar = shade([0.70, 0.67, 0.62], 0.80 + 0.30 * rough);
        let body = mix(mortar, brick, smooth((joint - 0.05) * 14.0));
        // The upper rim of a brick catches light, the lower one lies in shade.
        let rim = smooth((0.22 - joint) * 6.0) * (0.5 - b);
        shade(body, 1.0 + 0.22 * rim)
    }

    fn boards(&self, u: f32, v: f32, width: f32) -> Rgb {
        let row = floor(v / width);
        let b = v / width - row as f32;
        let shift = speck(self.seed, row, 1);
        let seed = self.seed.wrapping_add(row as u32 * 101);
        let bend = fractal(seed, u * 3.0 + shift * 9.0, v * 11.0, 3);
        let rings = libm::sinf(v / width * 13.0 + bend * 20.0 + shift * 6.0);
        let fibre = fractal(seed ^ 7, u * 14.0, v * 420.0, 3);
        let (dark, light) = match self.choice {
            0 => ([0.30, 0.19, 0.12], [0.46, 0.31, 0.20]),
            1 => ([0.66, 0.55, 0.42], [0.82, 0.72, 0.58]),
            2 => ([0.42, 0.40, 0.38], [0.62, 0.60, 0.57]),
            _ => ([0.50, 0.33, 0.19], [0.70, 0.50, 0.31]),
        };
        let wood = mix(dark, light, 0.30 + 0.22 * rings + 0.40 * fibre);
        let gap = smooth((b.min(1.0 - b) - 0.006) * 90.0);
        shade(wood, (0.90 + 0.20 * speck(self.seed ^ 3, row, 2)) * (0.35 + 0.65 * gap))
    }

    fn tiles(&self, u: f32, v: f32) -> Rgb {
        let side = 0.105;
        let (column, row) = (floor(u / side), floor(v / side));
        let (a, b) = (u / side - column as f32, v / side - row as f32);
        let each = speck(self.seed, column, row);
        let cloud = fractal(self.seed.wrapping_add((each * 999.0) as u32), u * 22.0, v * 22.0, 4);
        let (one, two) = match self.choice {
            0 => ([0.84, 0.86, 0.85], [0.48, 0.60, 0.63]),
            1 => ([0.80, 0.68, 0.55], [0.72, 0.58, 0.46]),
            2 => ([0.88, 0.87, 0.84], [0.78, 0.77, 0.74]),
            _ => ([0.76, 0.80, 0.72], [0.56, 0.64, 0.56]),
        };
        let tile = if (column + row) % 2 == 0 { one } else { two };
        let tile = shade(tile, 0.86 + 0.16 * cloud + 0.08 * each);
        let joint = a.min(1.0 - a).min(b.min(1.0 - b));
        let glaze = 0.05 * smooth((0.10 - joint) * 12.0) * (1.0 - a - b);
        mix([0.62, 0.60, 0.57], shade(tile, 1.0 + glaze), smooth((joint - 0.012) * 70.0))
    }

    fn fabric(&self, u: f32, v: f32, x: i32, y: i32) -> Rgb {
        let dye = match self.choice {
            0 => [0.80, 0.76, 0.68],
            1 => [0.34, 0.44, 0.55],
            2 => [0.55, 0.60, 0.50],
            _ => [0.66, 0.52, 0.50],
        };
        let drape = fractal(self.seed, u * 2.4 + v * 1.1, v * 1.6 - u * 0.7, 3);
        let fold = libm::sinf(drape * 17.0 + u * 5.0) * 0.5 + 0.5;
        let (warp, weft) = (x.rem_euclid(4), y.rem_euclid(4));
        let over = (warp < 2) == (weft < 2);
        let thread = if over {
            noise(self.seed ^ 1, x as f32 * 0.5, y as f32 * 0.06)
        } else {
            noise(self.seed ^ 2, x as f32 * 0.06, y as f32 * 0.5)
        };
        let weave = if over { 0.03 } else { -0.03 };
        shade(dye, 0.80 + 0.22 * fold + 0.12 * (thread - 0.5) + weave)
    }

    fn plaster(&self, u: f32, v: f32) -> Rgb {
        let paint = match self.choice {
            0 => [0.86, 0.82, 0.74],
            1 => [0.66, 0.76, 0.78],
            2 => [0.80, 0.68, 0.62],
            _ => [0.72, 0.76, 0.68],
        };
        let height = |u: f32, v: f32| fractal(self.seed, u * 46.0, v * 46.0, 4);
        let relief = height(u, v) - height(u - 0.004, v - 0.004);
        let stain = fractal(self.seed ^ 9, u * 3.0, v * 3.0, 3) - 0.5;
        shade(paint, 1.0 + 0.30 * relief + 0.14 * stain)
    }

    fn stone(&self, u: f32, v: f32, x: i32, y: i32) -> Rgb {
        let cloud = fractal(self.seed, u * 9.0, v * 9.0, 5);
        let (dark, light) = if self.tone < 0.5 {
            ([0.34, 0.36, 0.39], [0.56, 0.57, 0.58])
        } else {
            ([0.62, 0.60, 0.57], [0.86, 0.84, 0.81])
        };
        let ground = mix(dark, light, smooth((cloud - 0.25) * 1.8));
        let fleck = speck(self.seed ^ 1, x / 2, y / 2);
        let fleck = if fleck > 0.93 {
            0.16
        } else if fleck < 0.07 {
            -0.20
        } else {
            0.0
        };
        let vein = (fractal(self.seed ^ 6, u * 3.0, v * 3.0, 5) - 0.5).abs();
        let vein = 1.0 - smooth(vein * 28.0);
        mix(shade(ground, 1.0 + fleck), [0.92, 0.91, 0.88], vein * 0.35)
    }

    fn cork(&self, u: f32, v: f32) -> Rgb {
        let crumb = fractal(self.seed, u * 120.0, v * 120.0, 3);
        let clump = fractal(self.seed ^ 4, u * 40.0, v * 40.0, 3);
        let ground = mix([0.62, 0.44, 0.27], [0.84, 0.66, 0.45], crumb * 0.6 + clump * 0.4);
        let dark = smooth((0.36 - crumb) * 9.0);
        mix(ground, [0.40, 0.26, 0.15], dark * 0.6)
    }
}
