//! Labels as models write them.
//!
//! Case, markdown, punctuation, hyphens and the British spelling do not matter, nor does a plural
//! where it makes no other label. A label counts where it stands alone, behind a few words that lead
//! it in, or before a reason. Whatever else stands beside it may negate it, doubt it or make it
//! conditional: it is asked for again, for no list of such words is ever complete.

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
/// More words that may stand before a label where nothing but an answer is meant, within its tags:
/// "This is a X", "I choose X", "which makes it X". None of them can turn what follows.
const SAYS: &[&str] = &[
    "i", "choose", "pick", "select", "conclude", "it", "this", "there", "edit", "shows", "a", "an",
    "which", "makes", "making", "hence",
];
/// Words that conclude: what follows them is what the sentence says.
const CONCLUDES: &[&str] = &["so", "therefore", "thus", "hence", "which", "making"];
/// Words that make a sentence conditional, so that its conclusion is none.
const CONDITIONS: &[&str] = &[
    "if",
    "unless",
    "whether",
    "when",
    "assuming",
    "suppose",
    "supposing",
    "provided",
    "were",
    "would",
    "could",
    "might",
    "may",
];
/// Words after which only a reason comes.
const REASONS: &[&str] = &["because", "since"];
/// What may stand beside the answer in a JSON object.
const BESIDE: &[&str] = &[
    "analysis",
    "comment",
    "comments",
    "confidence",
    "criterion",
    "description",
    "evidence",
    "explanation",
    "justification",
    "note",
    "notes",
    "observation",
    "observations",
    "rationale",
    "reason",
    "reasoning",
    "reasons",
    "summary",
    "thinking",
    "thought",
    "thoughts",
];
/// Markup around a label that does not cross it out.
const MARKUP: &[&str] = &["b", "strong", "i", "em", "u", "code", "p", "br", "span", "mark", "pre"];
/// Signs that end a clause, as " - " does.
const STOPS: &[char] = &[',', ';', ':', '.', '!', '?', '\n', '(', ')', '—', '–'];
/// Signs that may stand around a label. All others may cross it out or doubt it (`~`, `≠`, `❌`, `?`).
const DECORATIONS: &str = "*_#`<>-–—=:;,.|\"'“”‘’„«»‹›()[]{}\\$/→➜⇒•·…。✅✔✓☑\u{FE0F}";
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
    /// One, but in words that may negate or doubt it.
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
            for name in form.labels() {
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
        self.led(line, &[])
    }

    /// The label of a text that holds it, words that lead it in (ours or `also` these) and signs that
    /// change nothing.
    fn led(&self, text: &str, also: &[&str]) -> Option<(&'a str, bool)> {
        if text.len() > LONGEST_LINE || !is_plain(text) {
            return None;
        }
        let words = words(text, self.stem);
        let is_lead = |word: &Word| is_lead(&word.plain) || also.contains(&word.plain.as_str());
        let leads = words.iter().take_while(|word| is_lead(word)).count();
        let (label, from) = (0..=leads).find_map(|from| {
            let joined: String = words[from..].iter().map(|word| word.key.as_str()).collect();
            let mut fitting = self.labels.iter().filter(|label| label.joined == joined);
            fitting.next().filter(|_| fitting.next().is_none()).map(|label| (label.name, from))
        })?;
        // "Is it X" asks, and "!X" negates.
        let asks = from > 1 && words[0].plain == "is";
        let negates = words.get(from).is_some_and(|word| text[..word.start].contains('!'));
        (!asks && !negates).then_some((label, from > 0))
    }

    /// The label of a text that is a JSON object with an answer in it, and the other texts there.
    pub(super) fn in_json(&self, text: &str) -> Option<(&'a str, String)> {
        if !text.contains('{') {
            return None;
        }
        let object = sloppy_json::read_object(text)?;
        let all_are = |key: &str, known: &dyn Fn(&str) -> bool| {
            let words = words(key, false);
            !words.is_empty() && words.iter().all(|word| known(&word.plain))
        };
        let (answers, others): (Vec<_>, Vec<_>) =
            object.iter().partition(|(key, value)| value.is_string() && all_are(key, &is_lead));
        let [(_, answer)] = answers[..] else { return None };
        // `{"label": "X", "applies": false}` does not say X.
        let beside = |word: &str| BESIDE.contains(&word) || is_lead(word);
        let harmless = |key: &str| all_are(key, &beside) && !all_are(key, &is_lead);
        if !others.iter().all(|(key, _)| harmless(key)) {
            return None;
        }
        let others: Vec<&str> = others.into_iter().filter_map(|(_, text)| text.as_str()).collect();
        self.line(answer.as_str()?).map(|label| (label, others.join("\n")))
    }

    /// The label of a text that is meant as an answer: alone, or in a sentence that can only mean it.
    pub(super) fn within(&self, text: &str) -> Found<'a> {
        if let Some(label) = self.line(text) {
            return Found::One(label);
        }
        match self.named(text)[..] {
            [] => match self.stated(text) {
                Some(label) => Found::One(label),
                None => Found::Nothing,
            },
            [name] => match self.stated(text) {
                Some(label) if label == name => Found::One(label),
                _ => Found::Doubtful(name),
            },
            ref several => Found::Several(several.to_vec()),
        }
    }

    /// All labels that a text names.
    fn named(&self, text: &str) -> Vec<&'a str> {
        let words = words(text, self.stem);
        let mut found: Vec<&'a str> = Vec::new();
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
            at += length;
        }
        found
    }

    /// The label that a text states: "The label is X", "X because …", "…, so X".
    fn stated(&self, text: &str) -> Option<&'a str> {
        let text = bare(text);
        if text.contains('?') {
            return None;
        }
        let words = words(&text, false);
        let is = |word: &Word, list: &[&str]| list.contains(&word.plain.as_str());
        let statement = match words.iter().find(|word| is(word, REASONS)) {
            Some(reason) => &text[..reason.start],
            None => &text[..],
        };
        let says = |part: &str| self.led(without_here(part), SAYS).map(|(label, _)| label);
        says(statement).or_else(|| {
            let conditional = words.iter().any(|word| is(word, CONDITIONS));
            let begins_clause = |at: usize| {
                let before = at.checked_sub(1).map_or(0, |before| words[before].end);
                let gap = &text[before..words[at].start];
                at > 0 && (gap.contains(STOPS) || gap.contains(" - "))
            };
            let mut concluding = (0..words.len())
                .rev()
                .filter(|at| is(&words[*at], CONCLUDES) && begins_clause(*at));
            let concluded = concluding
                .find_map(|at| Some((says(&text[words[at].start..])?, words[at].start)))
                .filter(|_| !conditional);
            // "No, so yes": a short label that another one goes before is no conclusion.
            let before = |at: usize| {
                let other = |label: &Label<'_>| label.words.len() == 1;
                let short: Vec<&str> = self
                    .labels
                    .iter()
                    .filter(|label| other(label))
                    .map(|label| label.joined.as_str())
                    .collect();
                words.iter().any(|word| word.end <= at && short.contains(&word.key.as_str()))
            };
            concluded.filter(|(_, at)| !before(*at)).map(|(label, _)| label)
        })
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

/// Whether a text has no signs but those that change nothing; `!` only with them.
fn is_plain(text: &str) -> bool {
    let invisible = |c: char| matches!(c, '\u{AD}' | '\u{200B}'..='\u{200D}' | '\u{FEFF}');
    let harmless = |c: char| {
        c.is_alphanumeric()
            || c.is_whitespace()
            || c == '!'
            || invisible(c)
            || DECORATIONS.contains(c)
    };
    // A box that is not ticked.
    let unticked =
        |open: &str| text.split(open).skip(1).any(|rest| rest.trim_start().starts_with([']', ')']));
    text.chars().all(harmless) && !unticked("[") && !unticked("(")
}

/// A text without markup, without the number of a list before it and a rank behind it, and without
/// the beginning of a closing tag.
fn bare(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        plain.push_str(before);
        let name = |tag: &str| tag.trim_matches(|c: char| c == '/' || c.is_whitespace()).to_owned();
        match tag.split_once('>') {
            Some((tag, after))
                if MARKUP.contains(&name(tag).to_ascii_lowercase().as_str())
                    || tag.len() > 2 && tag.starts_with('|') && tag.ends_with('|') =>
            {
                rest = after;
            }
            None if tag.starts_with('/') && is_placeholder(tag) => rest = "",
            _ => {
                plain.push('<');
                rest = tag;
            }
        }
    }
    plain.push_str(rest);
    let mut text = plain.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if (1..=2).contains(&digits) && text[digits..].starts_with(['.', ')']) {
        text = &text[digits + 1..];
    }
    let end = text.trim_end_matches(|c: char| c.is_whitespace() || c == '.');
    if let [.., open @ (b'(' | b'['), b'1'..=b'9', close] = end.as_bytes()
        && matches!((open, close), (b'(', b')') | (b'[', b']'))
    {
        text = &end[..end.len() - 3];
    }
    text.to_owned()
}

/// A text without the word "here" at its end.
fn without_here(text: &str) -> &str {
    let end = text.trim_end_matches(|c: char| c.is_whitespace() || STOPS.contains(&c));
    end.strip_suffix("here").filter(|rest| rest.ends_with(' ')).unwrap_or(text)
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
