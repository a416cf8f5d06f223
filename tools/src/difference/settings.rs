//! Every threshold of the method, with its reason.

use serde::{Deserialize, Serialize};

use crate::bounds::within;

/// How differences are found. Lengths are parts of the frame's long side (768 pixels at most);
/// brightness is 0 to 255; `z` is a difference in units of what the pair itself shows as noise.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Smoothing of both pictures before they are compared, in pixels of the frame: what is finer
    /// is regenerated at will by editors.
    pub smoothing: f32,
    /// σ of the windows in which relighting is estimated.
    pub relighting: f32,
    /// Noise that any pair has, even where its noise floor says less.
    pub least_noise: f32,
    /// How far above the median difference noise reaches.
    pub noise_reach: f32,
    /// Noise grows at most this much with each grey level of gradient, from [`Self::noise_cap`]
    /// on: a large edit must not become its own noise floor.
    pub noise_slope: f32,
    /// The most noise on flat ground.
    pub noise_cap: f32,
    /// How well the frames can be registered at best, in their pixels, where the picture moved: an
    /// edge differs by its slope times this.
    pub misplacement: f32,
    /// σ over which `z` and the difference are pooled, in pixels of the frame.
    pub pooling: f32,
    /// A region holds pixels above this `z` …
    pub region_z: f32,
    /// … and this difference.
    pub region_difference: f32,
    /// Somewhere in it `z` exceeds this …
    pub peak_z: f32,
    /// … and the difference this: less is not visible.
    pub peak_difference: f32,
    /// Regions that are nearer than this are one.
    pub gap: f32,
    /// A region whose mass (the sum of `z` above [`Self::region_z`]) is less, in pixels of a frame
    /// of 768, is a speck.
    pub least_mass: f32,
    /// A region that has less than this part of the strongest one's mass is not worth a look.
    pub least_share: f32,
    /// Pixels of the frame that are added around a region.
    pub padding: f64,
    /// Pixels of the frame at its border that are not compared where the picture moved.
    pub border: usize,
    /// The picture changed everywhere where more than this part of it differs.
    pub everywhere: f64,
    /// Pictures that cannot be laid onto each other show other things where more than this part
    /// differs.
    pub another: f64,
    /// The second look, at the pictures' own resolution.
    pub native: Native,
}

/// How small differences are found at the pictures' own resolution, in its pixels.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Native {
    /// Pictures with a shorter long side have hardly more detail than the coarse frame.
    pub least_side: u32,
    /// No finer than this long side.
    pub longest: u32,
    /// A component holds pixels above [`Settings::region_z`] and this difference …
    pub region_difference: f32,
    /// … and somewhere exceeds this in units of noise, …
    pub peak_z: f32,
    /// … this in grey levels …
    pub peak_difference: f32,
    /// … and has this mass.
    pub least_mass: f32,
    /// So much of its mass must be left when its surroundings are laid onto each other anew.
    pub kept: f32,
    /// At most this many components are looked at closer.
    pub most: usize,
    /// What is lower than this part of the long side can be lettering, …
    pub line: f64,
    /// … whose characters are at most this many heights apart.
    pub line_gap: f64,
    /// A region that has less than this part of the strongest one's mass is not worth a look.
    pub least_share: f32,
}

impl Default for Native {
    fn default() -> Self {
        Self {
            least_side: 960,
            longest: 4096,
            region_difference: 8.0,
            peak_z: 7.5,
            peak_difference: 12.0,
            least_mass: 20.0,
            kept: 0.3,
            most: 60,
            line: 0.03,
            line_gap: 6.0,
            least_share: 0.003,
        }
    }
}

impl Native {
    fn check(&self) -> Result<(), String> {
        within("settings.native.least_side", self.least_side, 1..=65_535)?;
        within("settings.native.longest", self.longest, 1..=8192)?;
        within("settings.native.region_difference", self.region_difference, 0.0..=1e6)?;
        within("settings.native.peak_z", self.peak_z, 0.0..=1e6)?;
        within("settings.native.peak_difference", self.peak_difference, 0.0..=1e6)?;
        within("settings.native.least_mass", self.least_mass, 0.0..=1e9)?;
        within("settings.native.kept", self.kept, 0.0..=1.0)?;
        within("settings.native.most", self.most, 1..=1000)?;
        within("settings.native.line", self.line, 0.0..=1.0)?;
        within("settings.native.line_gap", self.line_gap, 0.0..=100.0)?;
        within("settings.native.least_share", self.least_share, 0.0..=1.0)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            smoothing: 0.8,
            relighting: 0.058,
            least_noise: 1.6,
            noise_reach: 1.2,
            noise_slope: 0.5,
            noise_cap: 5.0,
            misplacement: 0.1,
            pooling: 1.2,
            region_z: 3.0,
            region_difference: 5.0,
            peak_z: 7.5,
            peak_difference: 10.0,
            gap: 0.01,
            least_mass: 225.0,
            least_share: 0.003,
            padding: 2.0,
            border: 3,
            everywhere: 0.5,
            another: 0.1,
            native: Native::default(),
        }
    }
}

impl Settings {
    /// What cannot be meant, if anything: the bounds are far from everything that is useful.
    pub fn check(&self) -> Result<(), String> {
        within("settings.smoothing", self.smoothing, 0.0..=20.0)?;
        within("settings.relighting", self.relighting, 0.001..=1.0)?;
        // Everything is divided by the noise.
        within("settings.least_noise", self.least_noise, 0.01..=255.0)?;
        within("settings.noise_reach", self.noise_reach, 0.0..=100.0)?;
        within("settings.noise_slope", self.noise_slope, 0.0..=100.0)?;
        within("settings.noise_cap", self.noise_cap, 0.0..=255.0)?;
        within("settings.misplacement", self.misplacement, 0.0..=100.0)?;
        within("settings.pooling", self.pooling, 0.0..=20.0)?;
        within("settings.region_z", self.region_z, 0.0..=1e6)?;
        within("settings.region_difference", self.region_difference, 0.0..=1e6)?;
        within("settings.peak_z", self.peak_z, 0.0..=1e6)?;
        within("settings.peak_difference", self.peak_difference, 0.0..=1e6)?;
        within("settings.gap", self.gap, 0.0..=1.0)?;
        within("settings.least_mass", self.least_mass, 0.0..=1e9)?;
        within("settings.least_share", self.least_share, 0.0..=1.0)?;
        within("settings.padding", self.padding, 0.0..=1000.0)?;
        within("settings.border", self.border, 0..=1000)?;
        within("settings.everywhere", self.everywhere, 0.0..=1.0)?;
        within("settings.another", self.another, 0.0..=1.0)?;
        self.native.check()
    }
}
