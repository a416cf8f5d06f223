//! What can be drawn: plain shapes, composed things and signs, each as a few coloured parts.

use super::colour::{Colour, Material, Rgb, contrast, mix};
use super::letters::{board_aspect, lettering};
use super::shape::{Point, Shape, arc, around};

/// The sort of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Thing {
    Circle,
    Square,
    Triangle,
    Star,
    Heart,
    Hexagon,
    Diamond,
    Crescent,
    Cross,
    Ring,
    Mug,
    Flower,
    Balloon,
    House,
    Boat,
    Car,
    Umbrella,
    Kite,
    Fish,
    Mushroom,
    Sign,
}

/// Where a thing belongs in a landscape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zone {
    Ground,
    Sky,
    Anywhere,
}

impl Thing {
    /// The plain shapes.
    pub const SHAPES: [Self; 10] = [
        Self::Circle,
        Self::Square,
        Self::Triangle,
        Self::Star,
        Self::Heart,
        Self::Hexagon,
        Self::Diamond,
        Self::Crescent,
        Self::Cross,
        Self::Ring,
    ];
    /// The composed things.
    pub const THINGS: [Self; 10] = [
        Self::Mug,
        Self::Flower,
        Self::Balloon,
        Self::House,
        Self::Boat,
        Self::Car,
        Self::Umbrella,
        Self::Kite,
        Self::Fish,
        Self::Mushroom,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Circle => "circle",
            Self::Square => "square",
            Self::Triangle => "triangle",
            Self::Star => "star",
            Self::Heart => "heart",
            Self::Hexagon => "hexagon",
            Self::Diamond => "diamond",
            Self::Crescent => "crescent",
            Self::Cross => "cross",
            Self::Ring => "ring",
            Self::Mug => "mug",
            Self::Flower => "flower",
            Self::Balloon => "balloon",
            Self::House => "house",
            Self::Boat => "boat",
            Self::Car => "car",
            Self::Umbrella => "umbrella",
            Self::Kite => "kite",
            Self::Fish => "fish",
            Self::Mushroom => "mushroom",
            Self::Sign => "sign",
        }
    }

    /// Several of them.
    pub fn plural(self) -> String {
        match self {
            Self::Fish => "fish".to_owned(),
            Self::Cross => "crosses".to_owned(),
            _ => format!("{}s", self.name()),
        }
    }

    /// Things of one family could be taken for each other at a glance.
    pub(super) fn family(self) -> Self {
        match self {
            Self::Ring | Self::Balloon | Self::Hexagon => Self::Circle,
            Self::Kite => Self::Diamond,
            other => other,
        }
    }

    pub(super) fn zone(self) -> Zone {
        match self {
            Self::Balloon | Self::Kite => Zone::Sky,
            Self::Mug | Self::Flower | Self::House | Self::Boat | Self::Car | Self::Mushroom => {
                Zone::Ground
            }
            _ => Zone::Anywhere,
        }
    }
}

/// How an object looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) thing: Thing,
    pub(super) colour: Colour,
    /// `None` is smooth paint.
    pub(super) material: Option<Material>,
    /// What stands on a sign.
    pub(super) word: &'static str,
    /// For how many letters the sign's board is made.
    pub(super) letters: usize,
}

impl Look {
    pub(super) fn plain(thing: Thing, colour: Colour) -> Self {
        Self { thing, colour, material: None, word: "", letters: 0 }
    }

    pub(super) fn made_of(thing: Thing, material: Material, colour: Colour) -> Self {
        Self { material: Some(material), ..Self::plain(thing, colour) }
    }

    pub(super) fn sign(word: &'static str, colour: Colour) -> Self {
        Self { word, letters: word.len(), ..Self::plain(Thing::Sign, colour) }
    }

    /// The phrase that fits it.
    pub(super) fn phrase(&self) -> String {
        match (self.thing, self.material) {
            (Thing::Sign, _) => format!("sign with the word \"{}\"", self.word),
            (thing, Some(material)) => format!("{} {}", material.name(), thing.name()),
            (thing, None) => format!("{} {}", self.colour.name(), thing.name()),
        }
    }

    /// The phrase for several of them.
    pub(super) fn phrases(&self) -> String {
        match (self.thing, self.material) {
            (Thing::Sign, _) => format!("signs with the word \"{}\"", self.word),
            (thing, Some(material)) => format!("{} {}", material.name(), thing.plural()),
            (thing, None) => format!("{} {}", self.colour.name(), thing.plural()),
        }
    }

    /// True where a phrase for one could be taken to mean the other.
    pub(super) fn clashes(&self, other: &Self) -> bool {
        if self.thing.family() != other.thing.family() {
            return false;
        }
        if self.thing == Thing::Sign {
            return self.word == other.word;
        }
        let names = other.colours();
        self.colours().iter().any(|colour| names.contains(colour))
            || (self.material.is_some() && self.material == other.material)
    }

    fn colours(&self) -> Vec<Colour> {
        self.material.map_or_else(|| vec![self.colour], |material| material.colours(self.colour))
    }

    /// The colour that the eye makes of it from afar.
    pub(super) fn mean(&self) -> Rgb {
        self.material.map_or(self.colour.rgb(), |material| material.mean(self.colour))
    }

    /// True where a change from one look to the other cannot be missed.
    pub(super) fn differs_clearly(&self, other: &Self) -> bool {
        self.thing.family() != other.thing.family() || contrast(self.mean(), other.mean()) > 0.42
    }
}

/// What a part of an object is painted with.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ink {
    /// The object's colour or material, lighter or darker.
    Body(f32),
    /// Its own.
    Own(Rgb),
}

/// A part of an object; later parts lie over earlier ones.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) shape: Shape,
    pub(super) ink: Ink,
}

const BODY: Ink = Ink::Body(1.0);
const WOOD: Ink = Ink::Own([0.36, 0.22, 0.12]);
const LEAF: Ink = Ink::Own([0.22, 0.45, 0.16]);
const CREAM: Ink = Ink::Own([0.93, 0.90, 0.82]);
const DARK: Ink = Ink::Own([0.10, 0.10, 0.12]);

/// The parts of a look, within about −1 to 1 in x and y.
pub(super) fn parts(look: &Look) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |ink: Ink, shape: Shape| parts.push(Part { shape, ink });
    match look.thing {
        Thing::Circle => add(BODY, Shape::disc([0.0, 0.0], 0.95)),
        Thing::Square => add(BODY, Shape::Block([0.0, 0.0], [0.88, 0.88], 0.06)),
        Thing::Triangle => {
            add(BODY, Shape::Poly(vec![[0.0, -0.86], [0.92, 0.78], [-0.92, 0.78]], 0.05));
        }
        Thing::Star => add(BODY, Shape::Poly(star(), 0.05)),
        Thing::Heart => add(BODY, Shape::Poly(heart(), 0.02)),
        Thing::Hexagon => {
            let corners = (0..6u8).map(|i| around([0.0, 0.0], 0.95, f32::from(i) / 6.0 + 0.25));
            add(BODY, Shape::Poly(corners.collect(), 0.03));
        }
        Thing::Diamond => {
            add(
                BODY,
                Shape::Poly(vec![[0.0, -0.95], [0.62, 0.0], [0.0, 0.95], [-0.62, 0.0]], 0.04),
            );
        }
        Thing::Crescent => {
            let whole = Shape::disc([0.0, 0.0], 0.95);
            add(BODY, whole.without(Shape::disc([0.48, -0.16], 0.78)));
        }
        Thing::Cross => add(
            BODY,
            Shape::Join(vec![
                Shape::Block([0.0, 0.0], [0.92, 0.31], 0.06),
                Shape::Block([0.0, 0.0], [0.31, 0.92], 0.06),
            ]),
        ),
        Thing::Ring => add(BODY, Shape::Ring([0.0, 0.0], 0.70, 0.24)),
        Thing::Sign => sign(look, &mut add),
        _ => composed(look, &mut add),
    }
    parts
}

fn star() -> Vec<Point> {
    (0..10u8)
        .map(|i| around([0.0, 0.06], if i % 2 == 0 { 0.97 } else { 0.42 }, f32::from(i) / 10.0))
        .collect()
}

fn heart() -> Vec<Point> {
    (0..40u8)
        .map(|i| {
            let t = f32::from(i) / 40.0 * std::f32::consts::TAU;
            let s = libm::sinf(t);
            let y = 13.0 * libm::cosf(t)
                - 5.0 * libm::cosf(2.0 * t)
                - 2.0 * libm::cosf(3.0 * t)
                - libm::cosf(4.0 * t);
            [s * s * s * 0.95, -y / 16.5 - 0.12]
        })
        .collect()
}

fn sign(look: &Look, add: &mut impl FnMut(Ink, Shape)) {
    let half = [1.0, 1.0 / board_aspect(look.letters.max(2))];
    let board = look.mean();
    let bright = contrast(board, [0.0; 3]) > contrast(board, [1.0; 3]) * 1.15;
    let ink = if bright { [0.06, 0.06, 0.10] } else { [0.98, 0.97, 0.93] };
    let inner = |by: f32| {
        let by = by * half[1];
        Shape::Block([0.0, 0.0], [half[0] - by, half[1] - by], 0.10 * half[1])
    };
    add(Ink::Own(mix(board, ink, 0.75)), Shape::Block([0.0, 0.0], half, 0.14 * half[1]));
    add(BODY, inner(0.10));
    add(Ink::Own(ink), lettering(look.word, [half[0] - 0.20 * half[1], half[1] * 0.80]));
}

fn composed(look: &Look, add: &mut impl FnMut(Ink, Shape)) {
    match look.thing {
        Thing::Mug => {
            add(Ink::Body(0.82), Shape::Ring([0.50, 0.05], 0.33, 0.10));
            add(BODY, Shape::Block([-0.14, 0.05], [0.62, 0.80], 0.16));
            add(Ink::Body(1.08), Shape::Oval([-0.14, -0.70], [0.62, 0.17]));
            add(Ink::Own([0.24, 0.13, 0.07]), Shape::Oval([-0.14, -0.69], [0.52, 0.11]));
        }
        Thing::Flower => {
            add(LEAF, Shape::Line(vec![[0.0, -0.1], [0.05, 0.5], [0.0, 0.96]], 0.055));
            add(LEAF, Shape::Oval([0.27, 0.62], [0.25, 0.10]));
            add(LEAF, Shape::Oval([-0.22, 0.74], [0.22, 0.09]));
            let petals =
                (0..6u8).map(|i| Shape::disc(around([0.0, -0.36], 0.36, f32::from(i) / 6.0), 0.25));
            add(BODY, Shape::Join(petals.collect()));
            let heart = match look.colour {
                Colour::Yellow | Colour::Orange | Colour::White => [0.45, 0.25, 0.08],
                _ => [0.98, 0.80, 0.18],
            };
            add(Ink::Own(heart), Shape::disc([0.0, -0.36], 0.20));
        }
        Thing::Balloon => {
            let string = vec![[0.0, 0.42], [0.07, 0.6], [-0.05, 0.78], [0.03, 0.97]];
            add(Ink::Own([0.30, 0.28, 0.28]), Shape::Line(string, 0.026));
            add(Ink::Body(0.8), Shape::Poly(vec![[0.0, 0.36], [0.1, 0.5], [-0.1, 0.5]], 0.01));
            add(BODY, Shape::Oval([0.0, -0.27], [0.58, 0.69]));
        }
        Thing::House => {
            add(Ink::Own([0.34, 0.30, 0.28]), Shape::Block([0.46, -0.52], [0.11, 0.30], 0.01));
            add(BODY, Shape::Block([0.0, 0.38], [0.72, 0.56], 0.02));
            let roof = vec![[0.0, -0.92], [0.94, -0.14], [-0.94, -0.14]];
            add(Ink::Body(0.58), Shape::Poly(roof, 0.03));
            add(WOOD, Shape::Block([0.0, 0.60], [0.16, 0.34], 0.02));
            for x in [-0.43, 0.43] {
                add(CREAM, Shape::Block([x, 0.30], [0.17, 0.17], 0.02));
                add(Ink::Own([0.45, 0.62, 0.74]), Shape::Block([x, 0.30], [0.13, 0.13], 0.01));
            }
        }
        Thing::Boat => {
            add(WOOD, Shape::Line(vec![[0.0, -0.92], [0.0, 0.4]], 0.04));
            add(CREAM, Shape::Poly(vec![[0.08, -0.86], [0.74, 0.24], [0.08, 0.24]], 0.01));
            let jib = vec![[-0.09, -0.6], [-0.09, 0.24], [-0.62, 0.24]];
            add(Ink::Own([0.84, 0.80, 0.70]), Shape::Poly(jib, 0.01));
            let hull = vec![[-0.92, 0.36], [0.92, 0.36], [0.60, 0.86], [-0.56, 0.86]];
            add(BODY, Shape::Poly(hull, 0.05));
        }
        Thing::Car => {
            let cabin = vec![[-0.56, 0.0], [-0.34, -0.44], [0.28, -0.44], [0.56, 0.0]];
            add(BODY, Shape::Poly(cabin, 0.06));
            add(BODY, Shape::Block([0.0, 0.17], [0.96, 0.25], 0.14));
            let glass = Ink::Own([0.66, 0.82, 0.90]);
            let rear = vec![[-0.42, -0.05], [-0.27, -0.35], [-0.05, -0.35], [-0.05, -0.05]];
            let front = vec![[0.05, -0.05], [0.05, -0.35], [0.22, -0.35], [0.40, -0.05]];
            add(glass, Shape::Poly(rear, 0.01));
            add(glass, Shape::Poly(front, 0.01));
            add(Ink::Own([0.99, 0.93, 0.62]), Shape::Oval([0.87, 0.10], [0.07, 0.08]));
            for x in [-0.52, 0.52] {
                add(DARK, Shape::disc([x, 0.40], 0.22));
                add(Ink::Own([0.70, 0.71, 0.73]), Shape::disc([x, 0.40], 0.10));
            }
        }
        Thing::Umbrella => {
            add(WOOD, Shape::Line(vec![[0.0, -0.94], [0.0, 0.76]], 0.045));
            add(WOOD, Shape::Line(arc([0.13, 0.76], 0.13, 0.75, 0.25, 10), 0.045));
            let dome = Shape::disc([0.0, 0.04], 0.92);
            let below = Shape::Block([0.0, 1.04], [2.0, 1.0], 0.0);
            let bays = [-0.61f32, 0.0, 0.61].map(|x| Shape::Oval([x, 0.06], [0.30, 0.14]));
            let mut holes = vec![below];
            holes.extend(bays);
            add(BODY, dome.without(Shape::Join(holes)));
            for x in [-0.30f32, 0.30] {
                let rib = vec![[0.0, -0.86], [x * 0.75, -0.5], [x, 0.0]];
                add(Ink::Body(0.68), Shape::Line(rib, 0.022));
            }
        }
        Thing::Kite => {
            let tail = vec![[0.0, 0.3], [0.12, 0.46], [-0.06, 0.64], [0.10, 0.80], [0.0, 0.97]];
            add(Ink::Own([0.30, 0.28, 0.28]), Shape::Line(tail, 0.026));
            for [x, y] in [[0.05, 0.55], [0.03, 0.78]] {
                let bow = vec![
                    [x - 0.15, y - 0.07],
                    [x + 0.15, y + 0.07],
                    [x + 0.15, y - 0.07],
                    [x - 0.15, y + 0.07],
                ];
                add(BODY, Shape::Poly(bow, 0.015));
            }
            let sail = vec![[0.0, -0.95], [0.60, -0.38], [0.0, 0.38], [-0.60, -0.38]];
            add(BODY, Shape::Poly(sail, 0.02));
            add(Ink::Body(0.62), Shape::Line(vec![[0.0, -0.93], [0.0, 0.36]], 0.03));
            add(Ink::Body(0.62), Shape::Line(vec![[-0.58, -0.38], [0.58, -0.38]], 0.03));
        }
        Thing::Fish => {
            add(Ink::Body(0.78), Shape::Poly(vec![[0.42, 0.0], [0.94, -0.44], [0.94, 0.44]], 0.03));
            add(
                Ink::Body(0.72),
                Shape::Poly(vec![[-0.2, -0.3], [0.16, -0.62], [0.3, -0.25]], 0.03),
            );
            add(BODY, Shape::Oval([-0.15, 0.0], [0.80, 0.48]));
            add(Ink::Body(0.66), Shape::Poly(vec![[0.0, 0.08], [0.30, 0.26], [0.02, 0.32]], 0.03));
            add(CREAM, Shape::disc([-0.58, -0.12], 0.125));
            add(DARK, Shape::disc([-0.60, -0.12], 0.068));
        }
        Thing::Mushroom => {
            let stem = vec![[-0.20, 0.0], [0.20, 0.0], [0.27, 0.88], [-0.27, 0.88]];
            add(CREAM, Shape::Poly(stem, 0.05));
            let cap = Shape::Oval([0.0, 0.12], [0.92, 0.98]);
            add(BODY, cap.without(Shape::Block([0.0, 1.14], [2.0, 1.0], 0.0)));
            let spot = match look.colour {
                Colour::White | Colour::Yellow => [0.55, 0.40, 0.28],
                _ => [0.96, 0.94, 0.88],
            };
            for ([x, y], r) in [
                ([-0.45, -0.22], 0.13),
                ([0.06, -0.48], 0.16),
                ([0.52, -0.14], 0.12),
                ([0.05, -0.05], 0.10),
            ] {
                add(Ink::Own(spot), Shape::disc([x, y], r));
            }
        }
        _ => {}
    }
}
