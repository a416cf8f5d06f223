//! Where the scenes are set: landscapes here, walls and tables in [`super::surface`].

use deeplook_tools::Size;

use super::canvas::{Canvas, smooth};
use super::colour::{Rgb, mix, shade};
use super::random::{Random, fractal, noise, speck};
use super::surface;

/// The setting of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    Hills,
    Seaside,
    Desert,
    Night,
    Meadow,
    Snow,
    BrickWall,
    WoodenTable,
    TiledFloor,
    Fabric,
    Plaster,
    Stone,
    Cork,
    Room,
}

impl Setting {
    pub(super) const ALL: [Self; 14] = [
        Self::Hills,
        Self::WoodenTable,
        Self::Seaside,
        Self::BrickWall,
        Self::Night,
        Self::TiledFloor,
        Self::Meadow,
        Self::Fabric,
        Self::Desert,
        Self::Plaster,
        Self::Room,
        Self::Stone,
        Self::Snow,
        Self::Cork,
    ];

    pub(super) fn is_landscape(self) -> bool {
        use Setting::{Desert, Hills, Meadow, Night, Seaside, Snow};
        matches!(self, Hills | Seaside | Desert | Night | Meadow | Snow)
    }
}

/// A painted setting.
#[derive(Debug, Clone)]
pub(super) struct Backdrop {
    pub(super) canvas: Canvas,
    /// Where the ground begins, in pixels from the top; `None` where all is one surface.
    pub(super) horizon: Option<f32>,
}

/// Paints a setting.
pub(super) fn paint(setting: Setting, size: Size, random: &mut Random) -> Backdrop {
    if !setting.is_landscape() {
        return surface::paint(setting, size, random);
    }
    let height = size.height as f32;
    let horizon = random.range(0.36, 0.56) * height;
    let land = Land { horizon, height, unit: size.long_side() as f32, seed: random.seed() };
    let canvas = match setting {
        Setting::Seaside => land.seaside(size, random),
        Setting::Meadow => land.meadow(size, random),
        Setting::Desert => land.ridges(size, random, &DESERT),
        Setting::Night => land.ridges(size, random, &NIGHT),
        Setting::Snow => land.ridges(size, random, &SNOW),
        _ => land.ridges(size, random, &HILLS),
    };
    Backdrop { canvas, horizon: Some(horizon) }
}

struct Land {
    horizon: f32,
    height: f32,
    /// The long side: what sizes are measured by.
    unit: f32,
    seed: u32,
}

/// The colours of a landscape of ridges.
struct Palette {
    zenith: Rgb,
    low_sky: Rgb,
    cloud: Rgb,
    clouds: f32,
    far: Rgb,
    near: Rgb,
    /// How rough the ridges are: 0 gives dunes.
    rough: f32,
    /// How coarse the ground is.
    grit: f32,
    stars: bool,
}

const HILLS: Palette = Palette {
    zenith: [0.30, 0.54, 0.84],
    low_sky: [0.78, 0.88, 0.95],
    cloud: [0.98, 0.98, 0.99],
    clouds: 1.0,
    far: [0.55, 0.67, 0.74],
    near: [0.30, 0.44, 0.17],
    rough: 0.6,
    grit: 0.6,
    stars: false,
};
const DESERT: Palette = Palette {
    zenith: [0.42, 0.62, 0.80],
    low_sky: [0.96, 0.88, 0.74],
    cloud: [1.0, 0.97, 0.92],
    clouds: 0.35,
    far: [0.88, 0.74, 0.58],
    near: [0.80, 0.58, 0.34],
    rough: 0.0,
    grit: 0.0,
    stars: false,
};
const NIGHT: Palette = Palette {
    zenith: [0.03, 0.05, 0.14],
    low_sky: [0.16, 0.22, 0.40],
    cloud: [0.20, 0.42, 0.42],
    clouds: 0.5,
    far: [0.15, 0.20, 0.33],
    near: [0.13, 0.17, 0.19],
    rough: 1.0,
    grit: 1.0,
    stars: true,
};
const SNOW: Palette = Palette {
    zenith: [0.50, 0.64, 0.80],
    low_sky: [0.88, 0.90, 0.94],
    cloud: [0.96, 0.96, 0.97],
    clouds: 0.8,
    far: [0.62, 0.70, 0.80],
    near: [0.90, 0.93, 0.97],
    rough: 0.9,
    grit: 0.15,
    stars: false,
};

impl Land {
    /// The sky at a pixel.
    fn sky(&self, palette: &Palette, x: f32, y: f32) -> Rgb {
        let down = (y / self.horizon).clamp(0.0, 1.0);
        let clear = mix(palette.zenith, palette.low_sky, down * down * 0.6 + down * 0.4);
        // Clouds get flatter and closer towards the horizon.
        let depth = 1.6 - down;
        let (u, v) = (x / self.unit * 5.0, y / self.unit * 11.0 / depth);
        let puff = fractal(self.seed, u, v, 5);
        let cover = smooth((puff - 0.50) * 4.5) * palette.clouds;
        let under = fractal(self.seed, u, v - 0.25, 3);
        let lit = shade(palette.cloud, 1.0 - 0.16 * smooth((under - 0.45) * 3.0));
        mix(clear, lit, cover * 0.9)
    }

    /// Ridges one behind the other, from the haze to the foreground.
    fn ridges(&self, size: Size, random: &mut Random, palette: &Palette) -> Canvas {
        const LAYERS: usize = 5;
        let ground = self.height - self.horizon;
        let mut skyline = Vec::with_capacity(LAYERS);
        for layer in 0..LAYERS {
            let near = layer as f32 / (LAYERS - 1) as f32;
            let seed = random.seed();
            let octaves = 2 + (palette.rough * 4.0) as u32;
            let swing = ground * (0.30 - 0.12 * near) * (0.5 + palette.rough * 0.6);
            let base = self.horizon + ground * 0.62 * near * near;
            let line: Vec<f32> = (0..size.width)
                .map(|x| {
                    let u = x as f32 / self.unit * (3.2 - 1.4 * near) + near * 3.0;
                    base - swing * (fractal(seed, u, 0.5, octaves) - 0.45)
                })
                .collect();
            skyline.push(line);
        }
        let tilt = random.range(-0.6, 0.6);
        let ridge = |layer: usize, x: u32, y: u32| {
            let (px, py) = (x as f32, y as f32);
            let near = layer as f32 / (LAYERS - 1) as f32;
            let line = &skyline[layer];
            let right = line[(x as usize + 3).min(line.len() - 1)];
            let steep = ((right - line[x as usize]) / 3.0 * tilt.signum()).clamp(-1.0, 1.0);
            let below = ((py - line[x as usize]) / ground).clamp(0.0, 1.0);
            let base = mix(palette.far, palette.near, near * 0.75 + 0.25 * near * below);
            let fine = self.unit / (150.0 - 90.0 * near);
            let stretch = 1.0 + 1.5 * (1.0 - near);
            let (u, v) = (px / fine, py * stretch / fine);
            let grit = fractal(self.seed ^ 77, u, v, 4) - 0.5;
            let patch = fractal(self.seed ^ 99, u / 9.0, v / 5.0, 2) - 0.5;
            let fade = 1.0 - smooth(below * 2.2);
            let light = 1.0
                + (0.10 + 0.32 * palette.grit * near) * grit
                + 0.30 * patch * (0.4 + near)
                + 0.30 * steep * fade
                - 0.12 * below;
            let crest = 0.10 * (1.0 - smooth(below * 14.0)) * (1.0 - palette.rough * 0.5);
            shade(base, light + crest)
        };
        let sky = |x: u32, y: u32| {
            let sky = self.sky(palette, x as f32, y as f32);
            if palette.stars { self.starred(sky, x as i32, y as i32) } else { sky }
        };
        Canvas::filled(size, |x, y| {
            let cover = |line: &Vec<f32>| y as f32 + 1.0 - line[x as usize];
            let behind = |end: usize| {
                let layer = skyline[..end].iter().rposition(|line| cover(line) > 0.0);
                layer.map_or_else(|| (sky(x, y), 0), |layer| (ridge(layer, x, y), layer))
            };
            let (colour, layer) = behind(LAYERS);
            let cover = cover(&skyline[layer]);
            // A crest's own pixel shows some of what lies behind.
            if (0.0..1.0).contains(&cover) { mix(behind(layer).0, colour, cover) } else { colour }
        })
    }

    fn starred(&self, sky: Rgb, x: i32, y: i32) -> Rgb {
        let star = speck(self.seed ^ 31, x / 2, y / 2);
        if star > 0.9985 { mix(sky, [0.95, 0.96, 1.0], (star - 0.9985) * 560.0) } else { sky }
    }

    /// Evening light over water, sand in front.
    fn seaside(&self, size: Size, random: &mut Random) -> Canvas {
        let warm = random.range(0.0, 1.0);
        let palette = Palette {
            zenith: mix([0.28, 0.50, 0.78], [0.32, 0.36, 0.58], warm),
            low_sky: mix([0.84, 0.90, 0.94], [0.98, 0.76, 0.56], warm),
            cloud: mix([0.98, 0.98, 0.98], [0.98, 0.82, 0.74], warm),
            clouds: 0.8,
            far: [0.0; 3],
            near: [0.0; 3],
            rough: 0.0,
            grit: 0.0,
            stars: false,
        };
        let glow = random.range(0.2, 0.8) * size.width as f32;
        let ground = self.height - self.horizon;
        let shore = self.horizon + ground * random.range(0.46, 0.62);
        let deep = mix([0.10, 0.34, 0.48], [0.22, 0.28, 0.42], warm);
        Canvas::filled(size, |x, y| {
            let (px, py) = (x as f32, y as f32);
            let away = (px - glow) / self.unit;
            let sun = 1.0 / (1.0 + away * away * 40.0);
            if py < self.horizon {
                let sky = self.sky(&palette, px, py);
                let down = py / self.horizon;
                return mix(sky, [1.0, 0.90, 0.72], sun * down * down * 0.55 * (0.4 + 0.6 * warm));
            }
            let wash = fractal(self.seed ^ 8, px / self.unit * 4.0, 0.0, 3) - 0.5;
            let edge = shore + wash * ground * 0.16;
            let depth = (py - self.horizon) / (edge - self.horizon).max(1.0);
            if depth < 1.0 {
                let scale = 0.012 + 0.05 * depth;
                let (u, v) = (px / self.unit / scale * 0.28, py / self.unit / scale * 1.2);
                let wave = fractal(self.seed ^ 4, u, v, 3);
                let water = mix(deep, [0.36, 0.62, 0.66], depth * 0.7);
                let water = shade(water, 0.80 + 0.42 * wave);
                let glint = smooth((wave - 0.56) * 6.0) * sun * (1.0 - depth * 0.6);
                let foam = smooth((depth - 0.93) * 14.0) * smooth((wave - 0.25) * 4.0);
                mix(mix(water, [1.0, 0.93, 0.80], glint * 0.8), [0.94, 0.96, 0.96], foam * 0.8)
            } else {
                let wet = 1.0 - smooth((py - edge) / (ground * 0.10));
                let grit = speck(self.seed ^ 6, x as i32, y as i32) - 0.5;
                let ripple =
                    fractal(self.seed ^ 2, px / self.unit * 14.0, py / self.unit * 40.0, 3);
                let sand = mix([0.86, 0.76, 0.58], [0.94, 0.86, 0.70], ripple);
                shade(sand, (1.0 - 0.32 * wet) * (1.0 + 0.05 * grit) * (0.92 + 0.12 * ripple))
            }
        })
    }

    /// Tall grass under a summer sky.
    fn meadow(&self, size: Size, random: &mut Random) -> Canvas {
        let dry = random.range(0.0, 0.7);
        let woods = random.seed();
        let blossom = random.pick(&[[0.95, 0.93, 0.90], [0.95, 0.85, 0.45], [0.80, 0.62, 0.85]]);
        let blossom = blossom.unwrap_or([0.95; 3]);
        Canvas::filled(size, |x, y| {
            let (px, py) = (x as f32, y as f32);
            let tree = fractal(woods, px / self.unit * 16.0, 0.5, 4) * 0.09 * self.height;
            if py < self.horizon - tree {
                return self.sky(&HILLS, px, py);
            }
            if py < self.horizon {
                let leaf = fractal(woods, px / self.unit * 70.0, py / self.unit * 70.0, 3);
                let rise = (self.horizon - py) / tree.max(1.0);
                let wood = mix([0.16, 0.27, 0.14], [0.32, 0.44, 0.24], leaf * 0.7 + rise * 0.4);
                return mix(wood, [0.62, 0.74, 0.80], 0.22);
            }
            let depth = (py - self.horizon) / (self.height - self.horizon);
            // Grass of a few sizes, each fading into the next towards the viewer.
            let size = depth * 2.999;
            let (step, fade) = (size as u32, smooth((size - size.floor()) * 1.6 - 0.3));
            let (one, two) = (self.grass(step, px, py), self.grass(step + 1, px, py));
            let grass = one + (two - one) * fade;
            let patch = fractal(self.seed ^ 5, px / self.unit * 7.0, py / self.unit * 20.0, 3);
            let green = mix([0.20, 0.34, 0.09], [0.54, 0.64, 0.24], grass * 0.9 + patch * 0.3);
            let green = mix(green, [0.78, 0.72, 0.44], dry * smooth(patch * 2.0 - 0.5));
            let light = shade(green, 0.66 + 0.56 * grass - 0.10 * depth);
            let far = mix([0.55, 0.66, 0.36], light, smooth(depth * 4.0 + 0.25));
            let cell = self.unit * 0.0028;
            let here = speck(self.seed ^ 21, (px / cell) as i32, (py / cell) as i32);
            if here > 0.997 && patch > 0.5 { mix(far, blossom, 0.75) } else { far }
        })
    }

    /// Blades of one of a few sizes, 0 to 1.
    fn grass(&self, step: u32, px: f32, py: f32) -> f32 {
        let blade = self.unit * (0.0018 + 0.0016 * step as f32);
        let seed = self.seed ^ step;
        let lean = (noise(seed ^ 3, px / blade / 12.0, py / blade / 12.0) - 0.5) * 5.0;
        fractal(seed, px / blade + lean, py / blade / 5.0, 3)
    }
}
