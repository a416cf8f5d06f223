//! Labels as models write them.
//!
//! Case, markdown, punctuation, hyphens and the British spelling do not matter, nor does a plural
//! where it makes no other label. A negated or doubted label is not read.

use super::sloppy_json;
use crate::answer::AnswerForm;

/// Words that may stand before a label on a line of its own: "Final answer: X", "[Result]: X".
const LEADS: &[&str] = &[
    "start",
    "the",
    "my",
    "final",
    "answer",
    "label",
    "result",
    "verdict",
    "is",
    "judgement",
    "judgment",
    "conclusion",
    "so",
    "therefore",
    "thus",
    "overall",
    "classification",
    "assessment",
    "category",
    "choice",
    "output",
    "boxed",
    "text",
    "textbf",
];
/// Words that with the above make a placeholder: "LABEL", "one of the labels", "your answer here".
const PLACEHOLDERS: &[&str] = &["labels", "your", "one", "of", "here", "exactly", "name"];
/// Words that turn a label that follows within four words of the same clause.
const TURNS_NEXT: &[&str] = &[
    "not",
    "no",
    "never",
    "neither",
    "nor",
    "without",
    "isnt",
    "wasnt",
    "arent",
    "cannot",
    "cant",
    "than",
    "instead",
    "non",
    "hardly",
    "barely",
    "almost",
    "nearly",
    "would",
    "wouldnt",
    "except",
    "excluding",
    "exclude",
    "excludes",
    "either",
    "maybe",
    "perhaps",
    "doesnt",
    "dont",
    "didnt",
    "far",
    "anything",
    "fails",
    "failed",
    "possibly",
    "might",
    "could",
];
/// Words that turn a label that stands before them.
const TURNS_LAST: &[&str] = &[
    "not",
    "isnt",
    "wasnt",
    "doesnt",
    "cannot",
    "cant",
    "wouldnt",
    "ruled",
    "excluded",
    "or",
    "incorrect",
    "unlikely",
];
/// Words that begin a new clause, as a comma does.
const JOINTS: &[&str] = &[
    "so",
    "therefore",
    "thus",
    "hence",
    "but",
    "and",
    "because",
    "as",
    "since",
    "which",
    "making",
    "means",
];
/// Signs that end a clause, as " - " does.
const STOPS: &[char] = &[',', ';', ':', '.', '!', '?', '\n', '(', ')', '—', '–'];
/// Signs that cross a label out.
const CROSSES: &[char] = &['~', '❌', '✗', '✘', '✖', '≠', '¬'];
/// A longer line is not a label.
const LONGEST_LINE: usize = 400;

/// What a text says about labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// No label.
    Nothing,
    /// Exactly one, in its canonical spelling.
    One(&'a str),
    /// Different ones.
    Several(Vec<&'a str>),
    /// One, but negated or in doubt.
    Doubtful(&'a str),
}

/// The labels of a form, prepared for reading.
pub(super) struct Labels<'a> {
    labels: Vec<Label<'a>>,
    /// Whether plural and singular are the same: not if that would make two labels one.
    stem: bool,
}

struct Label<'a> {
    name: &'a str,
    words: Vec<String>,
    joined: String,
}

/// A word of a text, with its place.
#[derive(Debug)]
struct Word {
    /// Its letters and digits, in lower case.
    plain: String,
    /// The same in the spelling in which labels are compared.
    key: String,
    start: usize,
    end: usize,
}

impl<'a> Labels<'a> {
    pub(super) fn new(form: &'a AnswerForm) -> Self {
        let prepare = |stem| -> Vec<Label<'a>> {
            let mut labels: Vec<Label<'a>> = Vec::new();
            for name in &form.labels {
                let words: Vec<String> = words(name, stem).into_iter().map(|w| w.key).collect();
                let joined = words.concat();
                if !joined.is_empty() && labels.iter().all(|label| label.name != name) {
                    labels.push(Label { name, words, joined });
                }
            }
            labels
        };
        let labels = prepare(true);
        let clash = |(i, label): (usize, &Label<'_>)| {
            labels[..i].iter().any(|other| other.joined == label.joined)
        };
        if labels.iter().enumerate().any(clash) {
            return Self { labels: prepare(false), stem: false };
        }
        Self { labels, stem: true }
    }

    /// All labels, for a message.
    pub(super) fn names(&self) -> String {
        self.labels.iter().map(|label| label.name).collect::<Vec<_>>().join(", ")
    }

    /// The label of a line that is nothing else, or only led in ("Final answer: X").
    pub(super) fn line(&self, line: &str) -> Option<&'a str> {
        self.led_line(line).map(|(label, _)| label)
    }

    /// The same, and whether words lead it in.
    pub(super) fn led_line(&self, line: &str) -> Option<(&'a str, bool)> {
        if line.len() > LONGEST_LINE || line.contains('?') || line.contains(CROSSES) {
            return None;
        }
        let words = words(line, self.stem);
        let leads = words.iter().take_while(|word| is_lead(&word.plain)).count();
        (0..=leads).find_map(|from| {
            let joined: String = words[from..].iter().map(|word| word.key.as_str()).collect();
            let mut fitting = self.labels.iter().filter(|label| label.joined == joined);
            fitting.next().filter(|_| fitting.next().is_none()).map(|label| (label.name, from > 0))
        })
    }

    /// The label of a text that is a JSON object with an answer in it, and the other texts there.
    pub(super) fn in_json(&self, text: &str) -> Option<(&'a str, String)> {
        if !text.contains('{') {
            return None;
        }
        let object = sloppy_json::read_object(text)?;
        let texts = object.iter().filter_map(|(key, value)| Some((key, value.as_str()?)));
        let is_answer = |key: &str| words(key, false).iter().all(|word| is_lead(&word.plain));
        let (answers, others): (Vec<_>, Vec<_>) =
            texts.partition(|(key, _)| !key.is_empty() && is_answer(key));
        let [(_, answer)] = answers[..] else { return None };
        let others: Vec<&str> = others.into_iter().map(|(_, text)| text).collect();
        self.line(answer).map(|label| (label, others.join("\n")))
    }

    /// The label of a text that is meant as an answer: alone or within a sentence.
    pub(super) fn within(&self, text: &str) -> Found<'a> {
        if let Some(label) = self.line(text) {
            return Found::One(label);
        }
        let words = words(text, self.stem);
        let mut found: Vec<&'a str> = Vec::new();
        let mut doubtful = false;
        let mut at = 0;
        while at < words.len() {
            // The longest label that begins here, so that one within another does not count.
            let here = self
                .labels
                .iter()
                .filter_map(|label| label.at(&words[at..]).map(|n| (n, label.name)));
            let Some((length, name)) = here.max_by_key(|(length, _)| *length) else {
                at += 1;
                continue;
            };
            if !found.contains(&name) {
                found.push(name);
            }
            doubtful |= is_doubtful(text, &words, at, at + length);
            at += length;
        }
        match found[..] {
            [] => Found::Nothing,
            [name] if doubtful => Found::Doubtful(name),
            [name] => Found::One(name),
            _ => Found::Several(found),
        }
    }
}

impl Label<'_> {
    /// How many words it takes if it begins a text. A label of one word ("No") means nothing within
    /// a sentence.
    fn at(&self, words: &[Word]) -> Option<usize> {
        let first = words.first()?;
        if self.words.len() < 2 {
            None
        } else if first.key == self.joined {
            Some(1)
        } else {
            let same = words.len() >= self.words.len()
                && self.words.iter().zip(words).all(|(a, b)| *a == b.key);
            same.then_some(self.words.len())
        }
    }
}

fn is_lead(word: &str) -> bool {
    LEADS.contains(&word)
}

/// Whether a text is empty or only says that a label would stand here.
pub(super) fn is_placeholder(text: &str) -> bool {
    let is =
        |word: Word| [LEADS, PLACEHOLDERS].iter().any(|set| set.contains(&word.plain.as_str()));
    text.len() <= LONGEST_LINE && words(text, false).into_iter().all(is)
}

/// Whether the label in `words[from..to]` is negated, asked or crossed out.
fn is_doubtful(text: &str, words: &[Word], from: usize, to: usize) -> bool {
    // What stands before the word `i`.
    let gap = |i: usize| {
        let start = i.checked_sub(1).map_or(0, |before| words[before].end);
        let end = words.get(i).map_or(text.len(), |word| word.start);
        &text[start..end]
    };
    let parts = |i: usize| gap(i).contains(STOPS) || gap(i).contains(" - ");
    let word = |i: usize| words[i].plain.as_str();
    let anything_but = |i: usize| word(i) == "but" && i > 0 && word(i - 1) == "anything";
    let is_joint = |i: usize| JOINTS.contains(&word(i)) && !anything_but(i);
    let mut before =
        (from.saturating_sub(4)..from).rev().take_while(|i| !parts(i + 1) && !is_joint(*i));
    let mut after = (to..words.len().min(to + 3)).take_while(|i| !parts(*i) && !is_joint(*i));
    gap(from).contains(CROSSES)
        || gap(to).contains(CROSSES)
        || gap(to).contains('?')
        || before.any(|i| TURNS_NEXT.contains(&word(i)))
        || after.any(|i| TURNS_LAST.contains(&word(i)))
}

/// The words of a text. Apostrophes and invisible characters do not part a word.
fn words(text: &str, stem: bool) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut open = false;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        if c.is_alphanumeric() {
            if !open {
                words.push(Word { plain: String::new(), key: String::new(), start: at, end });
                open = true;
            }
            if let Some(word) = words.last_mut() {
                word.plain.extend(c.to_lowercase());
                word.end = end;
            }
        } else if !matches!(c, '\'' | '’' | '\u{AD}' | '\u{200B}'..='\u{200D}' | '\u{FEFF}') {
            open = false;
        }
    }
    for word in &mut words {
        word.key = spelled(word.plain.clone(), stem);
    }
    words
}

/// A word in the spelling in which words are compared.
fn spelled(mut word: String, stem: bool) -> String {
    if let Some(root) = word.strip_suffix("isation") {
        word = format!("{root}ization");
    }
    if !stem {
        return word;
    }
    match word.strip_suffix("ies") {
        Some(root) if !root.is_empty() => format!("{root}y"),
        _ if word.ends_with('s') && !word.ends_with("ss") && word.len() > 3 => {
            word.pop();
            word
        }
        _ => word,
    }
}
