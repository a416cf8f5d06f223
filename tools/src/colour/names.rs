//! What people call a colour.

use super::lab::Lab;

/// Colours that most people would call so, in sRGB.
const NAMES: [(&str, [u8; 3]); 44] = [
    ("black", [14, 14, 15]),
    ("very dark grey", [48, 48, 50]),
    ("dark grey", [84, 84, 86]),
    ("grey", [130, 130, 131]),
    ("light grey", [183, 184, 184]),
    ("very light grey", [218, 219, 219]),
    ("white", [249, 249, 248]),
    ("dark red", [118, 16, 22]),
    ("red", [208, 28, 34]),
    ("light red", [236, 96, 92]),
    ("pink", [245, 150, 190]),
    ("light pink", [250, 206, 218]),
    ("hot pink", [236, 40, 140]),
    ("magenta", [205, 30, 190]),
    ("salmon", [248, 148, 122]),
    ("dark orange", [196, 84, 16]),
    ("orange", [248, 142, 20]),
    ("peach", [251, 200, 160]),
    ("gold", [196, 156, 56]),
    ("yellow", [250, 222, 38]),
    ("light yellow", [252, 243, 158]),
    ("cream", [247, 238, 208]),
    ("beige", [218, 200, 168]),
    ("tan", [190, 150, 104]),
    ("light brown", [156, 108, 66]),
    ("brown", [110, 66, 36]),
    ("dark brown", [60, 36, 22]),
    ("olive", [112, 112, 36]),
    ("lime green", [150, 214, 42]),
    ("light green", [152, 222, 144]),
    ("green", [44, 150, 56]),
    ("dark green", [20, 72, 32]),
    ("grey green", [122, 140, 118]),
    ("mint", [176, 236, 212]),
    ("turquoise", [48, 198, 190]),
    ("teal", [18, 112, 116]),
    ("light blue", [158, 206, 240]),
    ("sky blue", [82, 164, 226]),
    ("blue", [32, 88, 206]),
    ("dark blue", [20, 34, 98]),
    ("grey blue", [104, 126, 152]),
    ("lavender", [198, 182, 230]),
    ("purple", [124, 52, 160]),
    ("dark purple", [62, 22, 86]),
];

/// The name in the table that is nearest by CIEDE2000.
pub(super) fn name(colour: Lab) -> &'static str {
    let far = |(_, rgb): &(&str, [u8; 3])| Lab::of(*rgb).delta_e(colour);
    let nearest = NAMES.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
    nearest.map_or("grey", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_get_the_names_that_people_use() {
        for (rgb, expected) in [
            ([0, 0, 0], "black"),
            ([255, 255, 255], "white"),
            ([255, 0, 0], "red"),
            ([220, 20, 60], "red"),
            ([0, 128, 0], "green"),
            ([0, 0, 255], "blue"),
            ([255, 255, 0], "yellow"),
            ([255, 165, 0], "orange"),
            ([139, 69, 19], "brown"),
            ([128, 0, 128], "purple"),
            ([255, 192, 203], "light pink"),
            ([255, 105, 180], "pink"),
            ([128, 128, 128], "grey"),
            ([135, 206, 235], "light blue"),
            ([0, 0, 128], "dark blue"),
            ([245, 245, 220], "cream"),
            ([64, 224, 208], "turquoise"),
            ([0, 128, 128], "teal"),
            ([139, 0, 0], "dark red"),
            ([205, 160, 115], "tan"),
            ([128, 128, 0], "olive"),
        ] {
            assert_eq!(name(Lab::of(rgb)), expected, "{rgb:?}");
        }
    }

    #[test]
    fn every_name_is_the_nearest_to_its_own_colour() {
        for (expected, rgb) in NAMES {
            assert_eq!(name(Lab::of(rgb)), expected);
        }
    }
}
