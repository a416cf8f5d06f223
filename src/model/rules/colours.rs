//! Names of colours and materials, and how far colours are apart.

/// Red, green, blue, each 0 to 255.
pub(super) type Rgb = [f32; 3];

/// What people mean by a colour's name, roughly.
const COLOURS: [(&str, Rgb); 11] = [
    ("red", [215.0, 25.0, 30.0]),
    ("orange", [248.0, 130.0, 15.0]),
    ("yellow", [250.0, 220.0, 35.0]),
    ("green", [35.0, 150.0, 52.0]),
    ("blue", [28.0, 85.0, 215.0]),
    ("purple", [125.0, 40.0, 163.0]),
    ("pink", [250.0, 143.0, 190.0]),
    ("brown", [108.0, 62.0, 30.0]),
    ("black", [18.0, 18.0, 20.0]),
    ("white", [245.0, 245.0, 243.0]),
    ("grey", [132.0, 134.0, 137.0]),
];

/// Other words for about the same colours.
const SYNONYMS: [(&str, &str); 10] = [
    ("gray", "grey"),
    ("silver", "grey"),
    ("violet", "purple"),
    ("magenta", "pink"),
    ("crimson", "red"),
    ("scarlet", "red"),
    ("golden", "yellow"),
    ("gold", "yellow"),
    ("navy", "blue"),
    ("lime", "green"),
];

/// How materials look from afar; `None` where they come in any colour.
const MATERIALS: [(&str, Option<Rgb>); 22] = [
    ("wood", Some([172.0, 115.0, 62.0])),
    ("wooden", Some([172.0, 115.0, 62.0])),
    ("metal", Some([168.0, 173.0, 181.0])),
    ("metallic", Some([168.0, 173.0, 181.0])),
    ("steel", Some([168.0, 173.0, 181.0])),
    ("marble", Some([222.0, 221.0, 219.0])),
    ("stone", Some([150.0, 148.0, 144.0])),
    ("concrete", Some([165.0, 163.0, 160.0])),
    ("brick", Some([158.0, 76.0, 56.0])),
    ("glass", Some([160.0, 212.0, 222.0])),
    ("leather", Some([110.0, 66.0, 40.0])),
    ("knitted", None),
    ("wool", None),
    ("woollen", None),
    ("fabric", None),
    ("plastic", None),
    ("paper", None),
    ("ceramic", None),
    ("striped", None),
    ("dotted", None),
    ("checkered", None),
    ("patterned", None),
];

/// The colour that a word names.
pub(super) fn colour(word: &str) -> Option<Rgb> {
    let word = SYNONYMS.iter().find(|(other, _)| *other == word).map_or(word, |(_, name)| name);
    COLOURS.iter().find(|(name, _)| *name == word).map(|(_, rgb)| *rgb)
}

/// The material that a word names: `Some(None)` is one of any colour.
pub(super) fn material(word: &str) -> Option<Option<Rgb>> {
    MATERIALS.iter().find(|(name, _)| *name == word).map(|(_, rgb)| *rgb)
}

/// The name that fits a colour best.
pub(super) fn name(rgb: Rgb) -> &'static str {
    let nearest = COLOURS.iter().min_by(|a, b| distance(a.1, rgb).total_cmp(&distance(b.1, rgb)));
    nearest.map_or("grey", |(name, _)| name)
}

/// How far apart two colours look, in grey levels: brightness counts less than hue, for shadows
/// and vignettes change it.
pub(super) fn distance(a: Rgb, b: Rgb) -> f32 {
    let d: Rgb = std::array::from_fn(|c| a[c] - b[c]);
    let mean = (d[0] + d[1] + d[2]) / 3.0;
    let hue: f32 = d.iter().map(|v| (v - mean) * (v - mean)).sum();
    (hue + 1.6 * mean * mean).sqrt()
}

/// Whether a colour that was seen is the one that is meant.
pub(super) fn fits(seen: Rgb, meant: Rgb) -> bool {
    distance(seen, meant) < 58.0 || (distance(seen, meant) < 110.0 && name(seen) == name(meant))
}
