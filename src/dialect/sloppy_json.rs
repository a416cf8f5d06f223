//! JSON as models write it.
//!
//! Valid JSON is read exactly as `serde_json` reads it. Otherwise a recursive-descent reader of
//! bounded depth forgives smart and single quotes, unescaped quotes within a string, trailing and
//! missing commas, comments, bare keys and words, Python's `True`, `None` and tuples, fences, and
//! closing brackets that are missing at the end. Every character is looked at a bounded number of
//! times.

use serde_json::{Map, Number, Value};

/// How deeply values may be nested.
const DEEPEST: usize = 64;

/// What is said twice, and differently.
const TWICE: &str = "a key is given twice";

/// A longer word is not taken for a key before which a comma is missing.
const LONGEST_KEY: usize = 64;

/// Something found at the top level of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// A JSON value.
    Value(Value),
    /// `name(key=value, …)` or `name {…}`.
    Named(String, Value),
}

/// All values in a text, in order, with the reason why reading stopped early, if it did.
///
/// `complete` says that the text has a visible end (a closing tag). Without one, a text that ends
/// within a list, a number or after a comma was cut off, and is not mended.
pub(super) fn read_all(text: &str, complete: bool) -> (Vec<Item>, Option<&'static str>) {
    let strict: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_str(text).into_iter().collect();
    let mut reader = Reader { text, at: 0, lists: 0, complete };
    let mut items = Vec::new();
    let error = reader.items(&mut items).err();
    match strict {
        // Of a key that is given twice, valid JSON too says only the last.
        Ok(values) if error != Some(TWICE) => (values.into_iter().map(Item::Value).collect(), None),
        _ => (items, error),
    }
}

/// The text as a single object, if it is one.
pub(super) fn read_object(text: &str) -> Option<Map<String, Value>> {
    let (mut items, error) = read_all(text, true);
    match (items.pop(), items.is_empty(), error) {
        (Some(Item::Value(Value::Object(object))), true, None) => Some(object),
        _ => None,
    }
}

/// The objects of a text, wherever they stand.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Those that could be read, in order: where each begins and ends, and what it says.
    pub(super) read: Vec<(usize, usize, Map<String, Value>)>,
    /// Where a bracket opens that begins none, and why.
    pub(super) broken: Vec<(usize, &'static str)>,
}

/// How often a text is gone over, looking for objects, before the rest of it is left unread.
const PATIENCE: usize = 16;

/// The objects of a text.
pub(super) fn objects(text: &str, complete: bool) -> Objects {
    let mut objects = Objects::default();
    let (mut looked, mut at) = (0, 0);
    while let Some(start) = text[at..].find('{').map(|next| at + next) {
        let mut reader = Reader { text, at: start, lists: 0, complete };
        let why = match reader.value(0) {
            Ok(Value::Object(object)) => {
                objects.read.push((start, reader.at, object));
                at = reader.at;
                continue;
            }
            Ok(_) => "it is no object",
            Err(why) => why,
        };
        objects.broken.push((start, why));
        looked += reader.at - start;
        at = start + 1;
        if looked > PATIENCE * text.len() {
            objects.broken.push((at, "there are too many brackets that nothing closes"));
            break;
        }
    }
    objects
}

/// A number as a model writes it: `4`, `+4`, `.5`, `4.`
pub(super) fn number(word: &str) -> Option<Number> {
    if let Ok(number) = serde_json::from_str(word) {
        return Some(number);
    }
    let plain = word.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let value: f64 = if plain { word.parse().ok()? } else { return None };
    Number::from_f64(value)
}

type Read<T> = Result<T, &'static str>;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How many lists are open around the place we are at.
    lists: usize,
    complete: bool,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Goes on while `keep` holds and returns what was passed.
    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let word = rest[..rest.find(|c| !keep(c)).unwrap_or(rest.len())].to_owned();
        self.at += word.len();
        word
    }

    /// Passes white space and comments.
    fn blank(&mut self) {
        loop {
            let rest = self.rest();
            let end = if rest.starts_with("//") || rest.starts_with('#') {
                rest.find('\n')
            } else if rest.starts_with("/*") {
                rest.find("*/").map(|end| end + 2)
            } else {
                match rest.find(|c: char| !is_blank(c)) {
                    Some(0) => return,
                    end => end,
                }
            };
            let passed = end.unwrap_or(rest.len());
            self.at += passed;
            if passed == 0 || self.at >= self.text.len() {
                return;
            }
        }
    }

    /// Values one after the other; prose and fences around them are passed over.
    fn items(&mut self, items: &mut Vec<Item>) -> Read<()> {
        let mut first = true;
        loop {
            self.blank();
            let Some(c) = self.peek() else { return Ok(()) };
            if c == '{' || c == '[' || (first && is_quote(c) && c != '`') {
                items.push(Item::Value(self.value(0)?));
            } else if self.rest().starts_with("```") {
                self.take_while(|c| c == '`');
                let language = self.rest().find(|c: char| !is_word(c)).unwrap_or(self.rest().len());
                if !self.rest()[language..].starts_with(['(', '.']) {
                    self.at += language;
                }
                continue;
            } else if is_word(c) {
                let name = self.take_while(|c| is_word(c) || c == '.' || c == '\'');
                if self.peek() == Some('(') {
                    self.next();
                    items.push(Item::Named(name, self.python_arguments()?));
                } else if first {
                    self.blank();
                    if self.peek() == Some(':') {
                        self.next();
                        self.blank();
                    }
                    if self.peek() == Some('{') {
                        items.push(Item::Named(name, self.value(0)?));
                    }
                }
            } else {
                self.next();
            }
            first = false;
        }
    }

    /// What stands between the brackets of `name(…)`: keywords, or one object.
    fn python_arguments(&mut self) -> Read<Value> {
        self.blank();
        if self.peek() != Some('{') {
            return self.object(')', 0).map(Value::Object);
        }
        let object = self.value(0)?;
        self.take_while(|c| is_blank(c) || c == ',');
        if self.peek() == Some(')') {
            self.next();
        }
        Ok(object)
    }

    fn value(&mut self, depth: usize) -> Read<Value> {
        if depth >= DEEPEST {
            return Err("it is nested too deeply");
        }
        self.blank();
        match self.peek() {
            Some('{') => {
                self.next();
                self.object('}', depth).map(Value::Object)
            }
            Some('[' | '(') => {
                self.next();
                self.lists += 1;
                let list = self.list(depth);
                self.lists -= 1;
                list.map(Value::Array)
            }
            Some(c) if is_quote(c) => self.string().map(Value::String),
            _ => self.bare().and_then(|word| bare_value(&word)),
        }
    }

    /// The pairs of an object whose opening bracket has been read.
    fn object(&mut self, close: char, depth: usize) -> Read<Map<String, Value>> {
        let mut object = Map::new();
        loop {
            match self.peek_in_brackets() {
                None => return self.ends_whole().map(|()| object),
                Some(c) if c == close => {
                    self.next();
                    return Ok(object);
                }
                // The list around it ends, and this object's own bracket was forgotten.
                Some(']' | ')') if self.lists > 0 => return Ok(object),
                Some(',' | ';' | ']' | ')' | '}') => {
                    self.next();
                }
                Some(_) => {
                    let key = self.key()?;
                    let value = self.value(depth + 1)?;
                    if object.get(&key).is_some_and(|other| *other != value) {
                        return Err(TWICE);
                    }
                    object.insert(key, value);
                }
            }
        }
    }

    fn list(&mut self, depth: usize) -> Read<Vec<Value>> {
        let mut list = Vec::new();
        loop {
            match self.peek_in_brackets() {
                None if self.complete => return Ok(list),
                None => return Err("it is cut off within a list"),
                Some(']' | ')') => {
                    self.next();
                    return Ok(list);
                }
                // The object around it ends, and this list's own bracket was forgotten.
                Some('}') => return Ok(list),
                Some(',' | ';') => {
                    self.next();
                }
                Some(c) if c == '{' || c == '[' || c == '(' || is_quote(c) => {
                    list.push(self.value(depth + 1)?);
                }
                Some(_) => {
                    let word = self.bare()?;
                    let numbers: Option<Vec<_>> = word.split_whitespace().map(number).collect();
                    match numbers {
                        Some(numbers) => list.extend(numbers.into_iter().map(Value::Number)),
                        None => list.push(bare_value(&word)?),
                    }
                }
            }
        }
    }

    /// The next sign within an object or a list, which a fence ends as the end of the text does.
    fn peek_in_brackets(&mut self) -> Option<char> {
        self.blank();
        self.peek().filter(|_| !self.rest().starts_with("```"))
    }

    /// Whether a text that ends within an object lacks only brackets.
    fn ends_whole(&self) -> Read<()> {
        let whole = self.text.trim_end().ends_with(|c| c == '}' || c == ']' || is_quote(c));
        if self.complete || whole { Ok(()) } else { Err("it is cut off") }
    }

    /// A key and the sign after it.
    fn key(&mut self) -> Read<String> {
        let key = match self.peek() {
            Some(c) if is_quote(c) => self.string()?,
            _ => self.take_while(|c| is_word(c) || c == ' ').trim().to_owned(),
        };
        self.blank();
        match self.peek() {
            Some(':' | '=' | '：') if !key.is_empty() => {
                self.next();
                if self.peek() == Some('>') {
                    self.next();
                }
                Ok(key)
            }
            _ => Err("a value stands without its key"),
        }
    }

    fn string(&mut self) -> Read<String> {
        let closing: &[char] = match self.next() {
            Some('"') => &['"'],
            Some('\'') => &['\''],
            Some('`') => &['`', '\''],
            Some('‘' | '’' | '‚' | '‛') => &['’', '‘', '‛', '\''],
            _ => &['”', '“', '‟', '"'],
        };
        let mut string = String::new();
        loop {
            match self.next() {
                None => return Err("a quote is not closed"),
                Some('\\') => self.escape(&mut string),
                Some(c) if closing.contains(&c) && self.string_may_end() => return Ok(string),
                Some(c) => string.push(c),
            }
        }
    }

    /// Whether what follows a quote shows that it closes the string: in "woman's" it does not.
    fn string_may_end(&self) -> bool {
        let rest = self.rest();
        let after = rest.trim_start();
        let new_line = rest[..rest.len() - after.len()].contains('\n');
        match after.chars().next() {
            None | Some(',' | ';' | '}' | ']' | ')' | ':' | '：') => true,
            Some('/') => after.starts_with("//") || after.starts_with("/*"),
            Some('#') => true,
            Some(c) if is_quote(c) => {
                new_line || after.starts_with("```") || begins_with_key(after)
            }
            Some(_) => false,
        }
    }

    fn escape(&mut self, string: &mut String) {
        match self.next() {
            None => {}
            Some('n') => string.push('\n'),
            Some('t') => string.push('\t'),
            Some('r') => string.push('\r'),
            Some('b') => string.push('\u{8}'),
            Some('f') => string.push('\u{c}'),
            Some('u') => {
                let unit = self.hex();
                let low = match unit {
                    Some(0xD800..0xDC00) if self.rest().starts_with("\\u") => {
                        self.at += 2;
                        self.hex()
                    }
                    _ => None,
                };
                let units = unit.into_iter().chain(low);
                string.extend(char::decode_utf16(units).map(|c| c.unwrap_or('\u{FFFD}')));
            }
            Some(c) => string.push(c),
        }
    }

    fn hex(&mut self) -> Option<u16> {
        let unit = u16::from_str_radix(self.rest().get(..4)?, 16).ok()?;
        self.at += 4;
        Some(unit)
    }

    /// A value without quotes, up to the next sign that ends it.
    fn bare(&mut self) -> Read<String> {
        let rest = self.rest();
        let end = rest.find([',', '}', ']', ')', '\n', ';']).unwrap_or(rest.len());
        let word = &rest[..end];
        let word = word.split("//").next().unwrap_or(word);
        let word = word.split(" #").next().unwrap_or(word);
        let passed = word.len();
        let word = word.trim().to_owned();
        self.at += passed;
        if word.is_empty() {
            Err("a value is missing")
        } else if self.at == self.text.len() && !self.complete {
            Err("it is cut off")
        } else {
            Ok(word)
        }
    }
}

fn bare_value(word: &str) -> Read<Value> {
    Ok(match word.to_ascii_lowercase().as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" | "none" | "nil" | "undefined" => Value::Null,
        _ => match number(word) {
            Some(number) => Value::Number(number),
            None if word.starts_with(char::is_alphanumeric)
                && !word.contains(['"', '{', '[', '(', ':', '=']) =>
            {
                Value::String(word.to_owned())
            }
            None => return Err("a value cannot be read"),
        },
    })
}

/// Whether a text begins with `"key":`, so that a comma was forgotten before it.
fn begins_with_key(text: &str) -> bool {
    let mut rest = text.chars().take(LONGEST_KEY).skip(1).skip_while(|c| is_word(*c));
    rest.next().is_some_and(is_quote) && rest.find(|c| !is_blank(*c)) == Some(':')
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{FEFF}' | '\u{200B}')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '$')
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '“' | '”' | '„' | '‟' | '‘' | '’' | '‚' | '‛')
}
