//! A small reading of instructions: what is to be done, to things of which look, and what they
//! are to look like afterwards.

use super::colours::{self, Rgb};

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Another colour.
    Recolour,
    /// Another material.
    Rematerial,
    /// Another word.
    Retext,
    /// Another shape.
    Reshape,
    /// Gone.
    Remove,
    /// Something else in its place.
    Replace,
    /// Another number of them.
    Count {
        /// How many there are.
        from: usize,
        /// How many there should be.
        to: usize,
    },
    /// Nothing is to change.
    Nothing,
    /// Not understood.
    Unknown,
}

impl Action {
    /// For thoughts.
    pub(super) fn in_words(self) -> String {
        let words = match self {
            Self::Recolour => "a change of colour",
            Self::Rematerial => "a change of material",
            Self::Retext => "a change of text",
            Self::Reshape => "a change of shape",
            Self::Remove => "a removal",
            Self::Replace => "a replacement",
            Self::Count { from, to } => return format!("a change of number from {from} to {to}"),
            Self::Nothing => "a wish that nothing changes",
            Self::Unknown => "something that I do not understand",
        };
        words.to_owned()
    }
}

/// What an instruction asks for, as far as it was understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wish {
    /// What is to be done.
    pub(super) action: Action,
    /// The colour of what it is to be done to.
    pub(super) before: Option<Rgb>,
    /// What to call it, e.g. "red star".
    pub(super) name: Option<String>,
    /// The colour that is asked for.
    pub(super) after: Option<Rgb>,
    /// How many things are meant; 0 where the instruction does not say.
    pub(super) targets: usize,
}

const REMOVING: [&str; 4] = ["remove", "erase", "delete", "eliminate"];
const REPLACING: [&str; 3] = ["replace", "swap", "substitute"];
/// Whatever else is asked for, these verbs change what is there.
const CHANGING: [&str; 9] =
    ["change", "make", "turn", "paint", "recolour", "recolor", "dye", "convert", "transform"];
/// These bring something new, of which nothing here knows how it should look.
const ADDING: [&str; 5] = ["add", "insert", "put", "place", "draw"];
const NUMBERS: [&str; 11] =
    ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/// Reads an instruction.
pub(super) fn read(instruction: &str) -> Wish {
    let (plain, quotes) = without_quotes(&instruction.to_lowercase());
    let words: Vec<&str> = plain
        .split(|c: char| !c.is_alphanumeric() && c != '\u{1}')
        .filter(|word| !word.is_empty())
        .collect();
    let has = |word: &str| words.contains(&word);
    let begins = |verbs: &[&str]| words.iter().take(4).any(|word| verbs.contains(word));

    let count = counts(&words);
    let action = if let Some((from, to)) = count.filter(|_| has("number") || has("count")) {
        Action::Count { from, to }
    } else if begins(&REMOVING) {
        Action::Remove
    } else if begins(&ADDING) {
        Action::Unknown
    } else if quotes >= 2 || has("text") || (quotes == 1 && (has("say") || has("write"))) {
        Action::Retext
    } else if begins(&REPLACING) {
        Action::Replace
    } else if words == ["nothing"] || words == ["change", "nothing"] {
        Action::Nothing
    } else {
        Action::Unknown
    };
    let (before, after) = halves(&words, action);
    let made_of = after.iter().rev().find_map(|word| colours::material(word));
    let painted = after.iter().rev().find_map(|word| colours::colour(word));
    let action = match action {
        // What is not asked for in words that are known is not guessed from a colour.
        Action::Unknown if !begins(&CHANGING) || begins(&ADDING) => Action::Unknown,
        Action::Unknown if has("shape") => Action::Reshape,
        Action::Unknown if made_of.is_some() => Action::Rematerial,
        Action::Unknown if has("into") => Action::Reshape,
        Action::Unknown if painted.is_some() => Action::Recolour,
        known => known,
    };
    let asked = match action {
        Action::Rematerial => made_of.flatten(),
        Action::Recolour | Action::Replace | Action::Unknown => painted.or(made_of.flatten()),
        _ => None,
    };
    let look = |word: &&str| colours::colour(word).or_else(|| colours::material(word).flatten());
    let named = |pair: &&[&str]| look(&pair[0]).is_some() || colours::material(pair[0]).is_some();
    Wish {
        action,
        before: before.iter().find_map(look),
        name: before.windows(2).find(named).map(|pair| pair.join(" ")),
        after: asked,
        targets: targets(&words),
    }
}

/// The text with quoted parts replaced by a mark, and how many there were.
fn without_quotes(text: &str) -> (String, usize) {
    let mut plain = String::new();
    let mut quotes = 0;
    for (number, piece) in text.split(['"', '“', '”']).enumerate() {
        if number % 2 == 0 {
            plain.push_str(piece);
        } else {
            plain.push('\u{1}');
            quotes += 1;
        }
    }
    (plain, quotes)
}

/// What is said of the target, and of what it is to become.
fn halves<'a>(words: &'a [&'a str], action: Action) -> (&'a [&'a str], &'a [&'a str]) {
    let at = |connective: &str| words.iter().rposition(|word| *word == connective);
    let split = match action {
        Action::Remove | Action::Nothing | Action::Count { .. } => None,
        Action::Replace => at("with").or_else(|| at("for")).or_else(|| at("by")),
        _ => at("into")
            .or_else(|| at("to"))
            .or_else(|| at("of").filter(|i| words[..*i].contains(&"made"))),
    };
    match split {
        Some(at) => (&words[..at], &words[at + 1..]),
        // "Make the red star blue."
        None if action == Action::Unknown && !words.is_empty() => {
            words.split_at(words.len().saturating_sub(1))
        }
        None => (words, &[]),
    }
}

/// "from two to five".
fn counts(words: &[&str]) -> Option<(usize, usize)> {
    let after =
        |key: &str| words.windows(2).filter(|pair| pair[0] == key).find_map(|pair| number(pair[1]));
    Some((after("from")?, after("to")?))
}

fn number(word: &str) -> Option<usize> {
    NUMBERS.iter().position(|name| *name == word).or_else(|| word.parse().ok())
}

fn targets(words: &[&str]) -> usize {
    let many = |pair: &[&str]| match *pair {
        ["both", _] => Some(2),
        ["all" | "the", next] => number(next),
        _ => None,
    };
    if let Some(count) = words.windows(2).find_map(many) {
        return count;
    }
    let vague = ["all", "every", "each", "them"];
    if words.iter().any(|word| vague.contains(word)) { 0 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read() {
        use Action::*;
        let table = [
            ("Change the colour of the red star to blue.", Recolour, "red", "blue", 1),
            ("Make both red stars blue.", Recolour, "red", "blue", 2),
            ("Make the wooden star pink.", Recolour, "brown", "pink", 1),
            (
                "Change the material of all three green mugs to brushed metal.",
                Rematerial,
                "green",
                "grey",
                3,
            ),
            ("Make the white fish look as if made of wood.", Rematerial, "white", "brown", 1),
            ("Make the white fish look as if made of knitted wool.", Rematerial, "white", "", 1),
            ("Change the word \"OPEN\" on the sign to \"EXIT\".", Retext, "", "", 1),
            ("Make the sign that says \"RED\" say \"BLUE\" instead.", Retext, "", "", 1),
            ("Change the shape of the black circle to a cross.", Reshape, "black", "", 1),
            ("Turn the black circle into a star.", Reshape, "black", "", 1),
            (
                "Change the shape of both pink hearts: turn them into circles.",
                Reshape,
                "pink",
                "",
                2,
            ),
            ("Remove the yellow balloon.", Remove, "yellow", "", 1),
            ("Erase the sign with the word \"TEA\" from the picture.", Remove, "", "", 1),
            ("Replace the sign with the word \"TEA\" with a red mug.", Replace, "", "red", 1),
            ("Replace both grey boats with purple kites.", Replace, "grey", "purple", 2),
            (
                "Change the number of blue cars from two to 5.",
                Count { from: 2, to: 5 },
                "blue",
                "",
                1,
            ),
            ("Do something nice.", Unknown, "", "", 1),
            ("Add a small green ball.", Unknown, "green", "", 1),
            ("Add a ball to the green table.", Unknown, "", "green", 1),
            ("Insert the text \"SALE\" into the red sign.", Unknown, "", "red", 1),
            ("Move the red star to the blue box.", Unknown, "red", "blue", 1),
            ("Change nothing.", Nothing, "", "", 1),
            ("", Unknown, "", "", 1),
        ];
        for (text, action, before, after, targets) in table {
            let wish = read(text);
            assert_eq!((wish.action, wish.targets), (action, targets), "{text}");
            let named = |rgb: Option<Rgb>| rgb.map_or("", colours::name);
            assert_eq!(named(wish.after), after, "{text}");
            assert_eq!(named(wish.before), before, "{text}");
        }
    }

    #[test]
    fn what_is_meant_has_a_name() {
        let name = |text: &str| read(text).name.unwrap_or_default();
        assert_eq!(name("Change the colour of the red star to blue."), "red star");
        assert_eq!(name("Replace both wooden boats with purple kites."), "wooden boats");
        assert_eq!(name("Change the number of blue cars from two to 5."), "blue cars");
        assert_eq!(name("Erase the sign with the word \"TEA\" from the picture."), "");
    }
}
