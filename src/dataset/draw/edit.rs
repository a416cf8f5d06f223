//! What is asked: the edit itself and the words for it.

use super::Kind;
use super::colour::{Colour, Material, contrast};
use super::letters::WORDS;
use super::random::Random;
use super::thing::{Look, Thing, Zone};

/// An edit of the target objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edit {
    Material(Material),
    Colour(Colour),
    Word(&'static str),
    Shape(Thing),
    Remove,
    Replace(Look),
    Count { from: usize, to: usize },
}

impl Edit {
    /// An edit of `kind` for `count` objects that look like `look`.
    pub(super) fn asked(kind: Kind, look: Look, count: usize, random: &mut Random) -> Option<Self> {
        match kind {
            Kind::ChangeMaterial => Self::other_material(look, &[look], random).map(Self::Material),
            Kind::ChangeColor => Self::other_colour(&[look.colour], random).map(Self::Colour),
            Kind::ChangeOcr => Self::other_word(&[look.word], random).map(Self::Word),
            Kind::ChangeShape => Self::other_shape(&[look.thing], random).map(Self::Shape),
            Kind::RemovalObject => Some(Self::Remove),
            Kind::ReplaceObject => Self::other_object(&[look], random).map(Self::Replace),
            Kind::ChangeCount => {
                let fewer: Vec<usize> = (1..count).collect();
                let more: Vec<usize> = (count + 1..=count + 3).collect();
                let counts = if random.chance(0.5) { fewer } else { more };
                let to = random.pick(&counts)?;
                Some(Self::Count { from: count, to })
            }
        }
    }

    /// What becomes of a look; `None` where the object goes.
    pub(super) fn applied(self, look: Look) -> Option<Look> {
        match self {
            Self::Material(material) => Some(Look { material: Some(material), ..look }),
            Self::Colour(colour) => Some(Look { colour, ..look }),
            Self::Word(word) => Some(Look { word, ..look }),
            Self::Shape(thing) => Some(Look { thing, ..look }),
            Self::Remove => None,
            Self::Replace(new) => Some(new),
            Self::Count { .. } => Some(look),
        }
    }

    /// A substance that nobody takes for how `known` look, on a thing like `look`.
    pub(super) fn other_material(
        look: Look,
        known: &[Look],
        random: &mut Random,
    ) -> Option<Material> {
        random.pick_where(&Material::SUBSTANCES, |material| {
            known.iter().all(|other| {
                other.material != Some(*material)
                    && (other.material.is_some()
                        || !material.colours(look.colour).contains(&other.colour))
                    && contrast(material.mean(look.colour), other.mean()) > 0.36
            })
        })
    }

    /// A colour that nobody takes for one of `known`.
    pub(super) fn other_colour(known: &[Colour], random: &mut Random) -> Option<Colour> {
        random.pick_where(&Colour::ALL, |c| known.iter().all(|other| other.differs_clearly(*c)))
    }

    /// Another word of about the same length.
    pub(super) fn other_word(known: &[&str], random: &mut Random) -> Option<&'static str> {
        let length = known.first().map_or(4, |word| word.len());
        random.pick_where(&WORDS, |word| !known.contains(word) && word.len().abs_diff(length) <= 1)
    }

    /// A shape of another family than any of `known`.
    pub(super) fn other_shape(known: &[Thing], random: &mut Random) -> Option<Thing> {
        random.pick_where(&Thing::SHAPES, |thing| {
            known.iter().all(|other| other.family() != thing.family())
        })
    }

    /// A plain object unlike any of `known` in thing and colour, at home in the same place as the
    /// first of them.
    pub(super) fn other_object(known: &[Look], random: &mut Random) -> Option<Look> {
        let home = known.first()?.thing.zone();
        let thing = random.pick_where(&Thing::THINGS, |thing| {
            (thing.zone() == home || thing.zone() == Zone::Anywhere || home == Zone::Anywhere)
                && known.iter().all(|other| other.thing.family() != thing.family())
        })?;
        let colour = random.pick_where(&Colour::ALL, |colour| {
            known.iter().all(|other| contrast(other.mean(), colour.rgb()) > 0.3)
        })?;
        Some(Look::plain(thing, colour))
    }
}

/// A number in words, as far as counts go here.
fn number(count: usize) -> &'static str {
    const WORDS: [&str; 9] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"];
    WORDS.get(count).copied().unwrap_or("many")
}

fn with_article(words: &str) -> String {
    let vowel = words.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {words}", if vowel { "an" } else { "a" })
}

/// The instruction for an edit of `count` objects.
pub(super) fn instruction(edit: Edit, look: Look, count: usize, random: &mut Random) -> String {
    let several = count > 1;
    let them = match count {
        1 => format!("the {}", look.phrase()),
        2 => format!("both {}", look.phrases()),
        _ => format!("all {} {}", number(count), look.phrases()),
    };
    let variant = random.below(2);
    match edit {
        Edit::Material(material) if variant == 0 => {
            format!("Change the material of {them} to {}.", material.noun())
        }
        Edit::Material(material) => format!("Make {them} look as if made of {}.", material.noun()),
        Edit::Colour(colour) if variant == 0 => {
            format!("Change the colour of {them} to {}.", colour.name())
        }
        Edit::Colour(colour) => format!("Make {them} {}.", colour.name()),
        Edit::Word(word) => {
            let signs = if several { look.thing.plural() } else { look.thing.name().to_owned() };
            let signs = match count {
                1 => format!("the {signs}"),
                2 => format!("both {signs}"),
                _ => format!("all {} {signs}", number(count)),
            };
            if variant == 0 || several {
                format!("Change the word \"{}\" on {signs} to \"{word}\".", look.word)
            } else {
                format!("Make {signs} that says \"{}\" say \"{word}\" instead.", look.word)
            }
        }
        Edit::Shape(thing) if several => {
            format!("Change the shape of {them}: turn them into {}.", thing.plural())
        }
        Edit::Shape(thing) if variant == 0 => {
            format!("Change the shape of {them} to {}.", with_article(thing.name()))
        }
        Edit::Shape(thing) => format!("Turn {them} into {}.", with_article(thing.name())),
        Edit::Remove if variant == 0 => format!("Remove {them}."),
        Edit::Remove => format!("Erase {them} from the picture."),
        Edit::Replace(new) if several => format!("Replace {them} with {}.", new.phrases()),
        Edit::Replace(new) => format!("Replace {them} with {}.", with_article(&new.phrase())),
        Edit::Count { from, to } => format!(
            "Change the number of {} from {} to {}.",
            look.phrases(),
            number(from),
            number(to)
        ),
    }
}
