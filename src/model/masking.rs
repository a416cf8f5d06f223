//! Keeping secrets out of texts, in every form in which one can be recognised.
//!
//! A server may repeat what it was sent: as it is, escaped, encoded, cut in half or shortened
//! (`sk-ab***wxyz`). Texts are therefore compared in a plain spelling, in which escapes are resolved
//! and case does not matter, with every spelling of the secret.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Map, Value};

/// What stands in place of a secret.
const MASK: &str = "…";
/// What is shorter may stand anywhere.
const SHORTEST: usize = 6;
/// So many letters in a row of a secret are a piece of it.
const PIECE: usize = 8;
/// Pieces of a shorter secret may be anything.
const WORTH_CUTTING: usize = 12;
/// How much of the beginning or of the end beside dots or stars gives a shortened secret away: of
/// both, of the beginning alone, of the end alone.
const SHORTENED: (usize, usize, usize) = (6, 6, 4);

/// Everything that must not be in a text.
#[derive(Default)]
pub(super) struct Masks {
    forms: Vec<Form>,
    /// Where in which form so many letters begin.
    pieces: HashMap<[u8; PIECE], Vec<(usize, usize)>>,
    /// Whether a piece begins with these two letters: almost no text does.
    begins: Vec<bool>,
}

/// One spelling of a secret.
struct Form {
    written: Vec<u8>,
    plain: Vec<u8>,
    /// Whether people shorten it: not its encodings.
    shown: bool,
}

impl Masks {
    /// Masks for these secrets, and for what a header makes of the `basic` credentials
    /// (`user:password`).
    pub(super) fn new<'a>(secrets: impl Iterator<Item = &'a str>, basic: Option<&str>) -> Self {
        let mut masks = Self { begins: vec![false; 1 << 16], ..Self::default() };
        for secret in secrets {
            masks.add(secret);
        }
        if let Some(basic) = basic {
            masks.add(basic);
        }
        masks
    }

    fn add(&mut self, secret: &str) {
        // What is decoded from a URL and what stands in it are the same when both are plain.
        self.add_form(secret.as_bytes(), true);
        let bytes = decoded(secret);
        // Within a longer text, a secret has one of three spellings in base64; the letters at its
        // edges may be half somebody else's.
        for before in 0..3 {
            let mut text = vec![0; before];
            text.extend_from_slice(&bytes);
            let encoded = STANDARD_NO_PAD.encode(&text);
            let first = if before == 0 { 0 } else { before + 1 };
            let last = encoded.len() - usize::from(!text.len().is_multiple_of(3));
            self.add_form(encoded.get(first..last).unwrap_or_default().as_bytes(), false);
        }
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.add_form(hex.as_bytes(), false);
    }

    fn add_form(&mut self, written: &[u8], shown: bool) {
        let plain = Plain::of(&String::from_utf8_lossy(written)).letters;
        if plain.len() < SHORTEST {
            return;
        }
        let form = self.forms.len();
        if plain.len() >= WORTH_CUTTING {
            for (at, piece) in plain.windows(PIECE).enumerate() {
                let Ok(piece) = <[u8; PIECE]>::try_from(piece) else { continue };
                self.begins[begin(&piece)] = true;
                self.pieces.entry(piece).or_default().push((form, at));
            }
        }
        self.forms.push(Form { written: written.to_vec(), plain, shown });
    }

    /// The text without secrets; `None` if there are none in it.
    pub(super) fn mask(&self, text: &str) -> Option<String> {
        if self.forms.is_empty() {
            return None;
        }
        let plain = Plain::of(text);
        let mut found: Vec<Range<usize>> = Vec::new();
        for form in self.forms.iter().filter(|form| form.plain.len() < WORTH_CUTTING) {
            let first = form.plain.first().copied();
            let starts = plain.letters.iter().enumerate().filter(|(_, c)| Some(**c) == first);
            let whole = starts.filter(|(at, _)| plain.letters[*at..].starts_with(&form.plain));
            found.extend(whole.map(|(at, _)| at..at + form.plain.len()));
        }
        self.find_pieces(&plain.letters, &mut found);
        for form in self.forms.iter().filter(|form| form.shown) {
            form.find_shortened(&plain.letters, &mut found);
        }
        (!found.is_empty()).then(|| plain.without(text, found))
    }

    fn find_pieces(&self, letters: &[u8], found: &mut Vec<Range<usize>>) {
        let mut at = 0;
        while let Some(window) = letters.get(at..at + PIECE) {
            let Ok(window) = <[u8; PIECE]>::try_from(window) else { break };
            let known = self.begins[begin(&window)].then(|| self.pieces.get(&window)).flatten();
            let telling = |&(form, from): &(usize, usize)| {
                let form = &self.forms[form];
                let same = letters[at..].iter().zip(&form.plain[from..]);
                let length = same.take_while(|(a, b)| a == b).count();
                form.is_telling(from..from + length).then_some(length)
            };
            match known.and_then(|known| known.iter().filter_map(telling).max()) {
                Some(length) => {
                    found.push(at..at + length);
                    at += length;
                }
                None => at += 1,
            }
        }
    }

    /// Masks every text in a JSON value; says whether there was something to mask.
    pub(super) fn mask_json(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.mask(text) {
                Some(masked) => {
                    *text = masked;
                    true
                }
                None => false,
            },
            Value::Array(items) => {
                items.iter_mut().fold(false, |any, item| self.mask_json(item) | any)
            }
            Value::Object(fields) => {
                let mut any = false;
                let masked = std::mem::take(fields).into_iter().map(|(name, mut field)| {
                    any |= self.mask_json(&mut field);
                    let hidden = self.mask(&name);
                    any |= hidden.is_some();
                    (hidden.unwrap_or(name), field)
                });
                *fields = masked.collect::<Map<_, _>>();
                any
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masks({})", self.forms.len())
    }
}

/// The place of a piece in [`Masks::begins`].
fn begin(piece: &[u8; PIECE]) -> usize {
    usize::from(piece[0]) << 8 | usize::from(piece[1])
}

/// The bytes behind the percent signs of a URL.
fn decoded(secret: &str) -> Vec<u8> {
    let bytes = secret.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' if number(&bytes[at + 1..], 2).is_some() => {
                out.extend(number(&bytes[at + 1..], 2).and_then(|byte| u8::try_from(byte).ok()));
                at += 3;
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

impl Form {
    /// Whether this part of it tells of the secret: a word that anybody may use does not, unless it
    /// is most of it.
    fn is_telling(&self, part: Range<usize>) -> bool {
        let letters = self.written.get(part.clone()).unwrap_or(&self.plain[part.clone()]);
        let is_word = |word: &[u8]| {
            let rest = word.get(1..).unwrap_or_default();
            word.iter().all(u8::is_ascii_alphabetic)
                && (rest.iter().all(u8::is_ascii_lowercase)
                    || !word.iter().any(u8::is_ascii_lowercase))
        };
        let wordy = letters.split(|byte| !byte.is_ascii_alphanumeric()).all(is_word);
        !wordy || part.len() >= WORTH_CUTTING.max(self.plain.len() / 2)
    }

    /// `sk-ab***wxyz`, `sk-abcd…`, `…wxyz`.
    fn find_shortened(&self, letters: &[u8], found: &mut Vec<Range<usize>>) {
        if self.plain.len() < WORTH_CUTTING {
            return;
        }
        let mut at = 0;
        while at < letters.len() {
            let dots = letters[at..].iter().take_while(|c| is_filler(**c)).count();
            if dots == 0 {
                at += 1;
                continue;
            }
            let (before, after) = (&letters[..at], &letters[at + dots..]);
            let head = (1..self.plain.len()).rev().find(|n| before.ends_with(&self.plain[..*n]));
            let tail = (1..self.plain.len())
                .rev()
                .find(|n| after.starts_with(&self.plain[self.plain.len() - n..]));
            let (head, tail) = (head.unwrap_or(0), tail.unwrap_or(0));
            let cut_off = dots >= 3 || letters[at] == ELLIPSIS;
            let ends = after.get(tail).is_none_or(|c| !c.is_ascii_alphanumeric());
            let (both, first, last) = SHORTENED;
            let is_shortened = (dots >= 2 || cut_off)
                && ((head >= 3 && tail >= 2 && head + tail >= both)
                    || head >= first
                    || (cut_off && ends && tail >= last));
            if is_shortened {
                found.push(at - head..at + dots + tail);
            }
            at += dots;
        }
    }
}

/// How `…`, `•` and the like are spelled in a plain text.
const ELLIPSIS: u8 = 1;

fn is_filler(letter: u8) -> bool {
    matches!(letter, b'*' | b'.' | b'#' | ELLIPSIS)
}

/// A text in plain spelling, and where each letter of it stands.
struct Plain {
    letters: Vec<u8>,
    places: Vec<(u32, u32)>,
}

impl Plain {
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut plain = Self { letters: Vec::with_capacity(bytes.len()), places: Vec::new() };
        plain.places.reserve(bytes.len());
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            let (letter, length) = match first {
                '\\' => escape(&bytes[at..]),
                '%' => number(&bytes[at + 1..], 2).map(|code| (code, 3)),
                '&' => entity(&bytes[at..]),
                _ => None,
            }
            .unwrap_or((u32::from(first), first.len_utf8()));
            // An escape may be followed by what is no ASCII.
            let length = (at + length..).find(|end| text.is_char_boundary(*end)).unwrap_or(at) - at;
            if let Some(letter) = spelled(letter) {
                let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
                plain.letters.push(letter);
                plain.places.push((place(at), place(at + length)));
            }
            at += length.max(1);
        }
        plain
    }

    /// The text without these letters.
    fn without(&self, text: &str, mut found: Vec<Range<usize>>) -> String {
        found.sort_by_key(|range| range.start);
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for Range { start, end } in found {
            let (from, to) = (self.places[start].0 as usize, self.places[end - 1].1 as usize);
            if to <= done {
                continue;
            }
            if from >= done {
                out.push_str(&text[done..from]);
                out.push_str(MASK);
            }
            done = to;
        }
        out.push_str(&text[done..]);
        out
    }
}

/// A letter as it is compared; `None` for what does not part a word: ends of lines, invisible signs.
fn spelled(letter: u32) -> Option<u8> {
    Some(match char::from_u32(letter)? {
        '\n' | '\r' | '\u{AD}' | '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}' => return None,
        // The two alphabets of base64 differ in these.
        '-' | '+' => b'+',
        '_' | '/' => b'/',
        '…' | '•' | '·' | '●' | '∙' | '█' | '■' => ELLIPSIS,
        wide @ '\u{FF01}'..='\u{FF5E}' => {
            u8::try_from(u32::from(wide) - 0xFEE0).unwrap_or(0).to_ascii_lowercase()
        }
        c => u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(0).to_ascii_lowercase(),
    })
}

/// `\u0073`, `\x73`, or any other sign behind backslashes, however often it was escaped: the letter,
/// and how many bytes it takes.
fn escape(bytes: &[u8]) -> Option<(u32, usize)> {
    let slashes = bytes.iter().take_while(|byte| **byte == b'\\').count();
    let rest = &bytes[slashes..];
    let coded = match rest.first()? {
        b'u' if rest.get(1) == Some(&b'{') => {
            let digits = rest[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let closed = rest.get(2 + digits) == Some(&b'}');
            number(&rest[2..], digits).filter(|_| closed).map(|code| (code, digits + 3))
        }
        b'u' => number(&rest[1..], 4).map(|code| (code, 5)),
        b'x' => number(&rest[1..], 2).map(|code| (code, 3)),
        _ => None,
    };
    let (code, length) = coded.unwrap_or((u32::from(rest[0]), 1));
    Some((code, slashes + length))
}

/// `&#115;`, `&#x73;`, `&amp;`.
fn entity(bytes: &[u8]) -> Option<(u32, usize)> {
    let end = bytes.iter().take(10).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&bytes[1..end]).ok()?;
    let code = match name {
        "amp" => u32::from('&'),
        "lt" => u32::from('<'),
        "gt" => u32::from('>'),
        "quot" => u32::from('"'),
        "apos" => u32::from('\''),
        _ => match name.strip_prefix('#')? {
            hex if hex.starts_with(['x', 'X']) => u32::from_str_radix(&hex[1..], 16).ok()?,
            decimal => decimal.parse().ok()?,
        },
    };
    Some((code, end + 1))
}

/// The number that the first so many digits write.
fn number(bytes: &[u8], digits: usize) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(..digits)?).ok()?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    all_digits.then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use serde_json::json;

    use super::*;

    const KEY: &str = "sk-aB3dE6gH9jK2mN5pQ8";

    fn masks() -> Masks {
        Masks::new([KEY, "hunter2"].into_iter(), Some("me:hunter2"))
    }

    #[test]
    fn a_secret_is_recognised_in_every_form() {
        let escaped: String = KEY.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        let twice: String = KEY.chars().map(|c| format!("\\\\u{:04X}", u32::from(c))).collect();
        let percent: String = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let html: String = KEY.bytes().map(|byte| format!("&#{byte};")).collect();
        let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
        let forms = [
            KEY.to_owned(),
            KEY.to_uppercase(),
            escaped,
            twice,
            percent,
            html,
            hex.to_uppercase(),
            hex,
            KEY.replace('-', "\\-"),
            format!("{}\u{200b}{}", &KEY[..9], &KEY[9..]),
            format!("{}\n{}", &KEY[..9], &KEY[9..]),
            KEY[..12].to_owned(),
            KEY[9..].to_owned(),
            KEY[KEY.len() - 8..].to_owned(),
            format!("{}…{}", &KEY[..5], &KEY[KEY.len() - 4..]),
            format!("{}***{}", &KEY[..5], &KEY[KEY.len() - 4..]),
            format!("{}{}{}", &KEY[..7], "*".repeat(30), &KEY[KEY.len() - 4..]),
            format!("{}...", &KEY[..7]),
            format!("***{}", &KEY[KEY.len() - 4..]),
            STANDARD.encode(KEY),
            URL_SAFE.encode(format!("Bearer {KEY}")),
            STANDARD.encode(format!("a {KEY} b")),
            STANDARD.encode("me:hunter2"),
            "me:hunter2".to_owned(),
            "HUNTER2".to_owned(),
            "hunter%32".to_owned(),
        ];
        for form in forms {
            let text = format!("You sent {form} to us, é.");
            let masked = masks().mask(&text).unwrap_or_else(|| panic!("{form} is not recognised"));
            assert!(masked.starts_with("You sent ") && masked.ends_with(" to us, é."), "{masked}");
            let left = masked.trim_start_matches("You sent ").trim_end_matches(" to us, é.");
            assert!(left.chars().count() <= 16, "{form} leaves {left}");
        }
    }

    #[test]
    fn honest_text_stays() {
        let wordy = "local-server-for-everyone";
        let masks = Masks::new([KEY, wordy].into_iter(), None);
        for text in [
            "The scarf is green; everyone sees it...",
            "A local server for everyone, sk-… is how keys begin.",
            "sk-*** is hidden already",
            "See Crop 3 … Wrong Action",
            "",
            "100%, \\ and %2 \\u12 &#; &#xZZ; &amp",
        ] {
            assert_eq!(masks.mask(text), None, "{text}");
        }
        assert_eq!(masks.mask("is it local-server-for-everyone?").as_deref(), Some("is it …?"));
    }

    #[test]
    fn names_and_texts_of_json_are_masked() {
        let mut value = json!({KEY: [1, {"a": format!("x {KEY}")}], "b": "fine"});
        assert!(masks().mask_json(&mut value));
        assert_eq!(value, json!({"…": [1, {"a": "x …"}], "b": "fine"}));
        assert!(!masks().mask_json(&mut json!({"b": ["fine", 1, null]})));
    }
}
