//! Templates: what they may do, and rendering them within bounds.
//!
//! A template places texts: `{{ variable }}`, `{{ rule("id") }}`, `if`, `for` and `include`, and
//! nothing else. There is no way in it to build up data, so a hostile pack can at worst write a
//! long text, and that is bounded. So is what the engine gets to read: it recurses into whatever is
//! chained or nested, and a stack that overflows ends the process.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Object;
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, Value};

use crate::case::Facts;

/// Steps that rendering one prompt may take; ours take a few hundred.
const FUEL: u64 = 50_000;
/// Bytes that one prompt may have; ours have some 10,000.
const LONGEST: usize = 1 << 20;
/// Words and signs that a tag may have; ours have nine at most.
const LONGEST_TAG: usize = 200;
/// How deep `if` and `for` may lie in each other, where every `elif` lies in the one before it; ours
/// are four deep.
const DEEPEST: usize = 50;
const STATEMENTS: [&str; 7] = ["if", "elif", "else", "endif", "for", "endfor", "include"];

/// An environment in which an undefined variable is an error and nothing is escaped.
pub(super) fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    Ok(environment)
}

/// Renders a template; the error is the innermost, in the file where it happened.
pub(super) fn render(
    environment: &Environment<'_>,
    template: &str,
    context: Value,
) -> Result<String, Fault> {
    let mut text = Bounded(Vec::new());
    let rendered = environment
        .get_template(template)
        .and_then(|template| template.render_captured_to(context, &mut text).map(drop));
    match rendered {
        Ok(()) => Ok(String::from_utf8_lossy(&text.0).trim().to_owned()),
        Err(error) => Err(Fault::of(&error, template)),
    }
}

/// Memory that refuses to grow beyond [`LONGEST`].
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST {
            return Err(io::Error::other("the prompt is longer than 1 MB; shorten it"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is wrong in a template, and where.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) file: String,
    pub(super) line: Option<usize>,
    pub(super) message: String,
    /// A variable was not there.
    pub(super) undefined: bool,
}

impl Fault {
    /// The innermost error of the engine: an include wraps the error of what it includes.
    pub(super) fn of(error: &Error, template: &str) -> Self {
        let mut innermost = error;
        let mut message = None;
        while let Some(source) = std::error::Error::source(innermost) {
            match source.downcast_ref::<Error>() {
                Some(error) => innermost = error,
                None => {
                    message = Some(source.to_string());
                    break;
                }
            }
        }
        let message = message.unwrap_or_else(|| match (innermost.kind(), innermost.detail()) {
            (ErrorKind::OutOfFuel, _) => "the template takes too many steps; loop less".to_owned(),
            (ErrorKind::InvalidOperation, Some(detail)) if detail.contains("recursion") => {
                "templates include each other without end; break the circle".to_owned()
            }
            (_, Some(detail)) => detail.to_owned(),
            (kind, None) => kind.to_string(),
        });
        Self {
            file: innermost.name().unwrap_or(template).to_owned(),
            line: innermost.line(),
            message,
            undefined: innermost.kind() == ErrorKind::UndefinedError,
        }
    }
}

/// The function `rule("id")` of one rendering: it gives the rule's text and remembers the id.
#[derive(Debug)]
pub(super) struct RuleFunction {
    criterion: String,
    texts: Arc<BTreeMap<String, String>>,
    placed: Mutex<BTreeSet<String>>,
}

impl RuleFunction {
    pub(super) fn new(criterion: &str, texts: Arc<BTreeMap<String, String>>) -> Arc<Self> {
        Arc::new(Self { criterion: criterion.to_owned(), texts, placed: Mutex::default() })
    }

    /// The ids of the rules that were rendered.
    pub(super) fn placed(&self) -> BTreeSet<String> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Object for RuleFunction {
    fn call(self: &Arc<Self>, _state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let refuse = |why: String| Error::new(ErrorKind::InvalidOperation, why);
        let [id] = args else {
            return Err(refuse("rule() takes one id; write rule(\"id\")".to_owned()));
        };
        let id = id.as_str().unwrap_or_default();
        let text = self.texts.get(id).ok_or_else(|| {
            refuse(format!(
                "the criterion {:?} has no rule {id:?}; add it to rules.toml or take it out here",
                self.criterion
            ))
        })?;
        self.placed.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        Ok(Value::from(text))
    }
}

/// What is known of a case. A fact that it does not have is empty.
#[derive(Debug)]
pub(super) struct KnownFacts(BTreeMap<String, String>);

impl KnownFacts {
    pub(super) fn of(facts: &Facts) -> Value {
        let known = facts.iter().map(|(name, fact)| (name.to_owned(), fact.to_string()));
        Value::from_object(Self(known.collect()))
    }
}

impl Object for KnownFacts {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        Some(Value::from(self.0.get(key.as_str()?).map_or("", String::as_str)))
    }
}

/// What a template refers to by name, each with its line.
#[derive(Debug, Default)]
pub(super) struct Uses {
    pub(super) includes: Vec<(String, usize)>,
    pub(super) rules: Vec<(String, usize)>,
}

/// Reads the tags of a template and refuses what a pack may not do; the error has its line.
pub(super) fn scan(source: &str) -> Result<Uses, (usize, String)> {
    let mut uses = Uses::default();
    let mut blocks = Blocks::default();
    let (mut rest, mut line) = (source, 1);
    while let Some(start) = next_tag(rest) {
        line += newlines(&rest[..start]);
        let (open, body) = rest[start..].split_at(2);
        let close = match open {
            "{%" => "%}",
            "{{" => "}}",
            _ => "#}",
        };
        let end = if open == "{#" { body.find(close) } else { end_of_tag(body, close) };
        let end =
            end.ok_or_else(|| (line, format!("{open} is never closed; end it with {close}")))?;
        if open != "{#" {
            let tag = body[..end].trim_matches(['-', '+']).trim();
            check_tag(tag, open == "{%", line, &mut uses, &mut blocks)
                .map_err(|message| (line, message))?;
        }
        line += newlines(&body[..end]);
        rest = &body[end + 2..];
    }
    Ok(uses)
}

/// Where the next tag or comment begins.
fn next_tag(text: &str) -> Option<usize> {
    let begins = |at: &usize| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'));
    text.match_indices('{').map(|(at, _)| at).find(begins)
}

fn newlines(text: &str) -> usize {
    text.matches('\n').count()
}

/// How deep each open block lies.
#[derive(Debug, Default)]
struct Blocks(Vec<usize>);

impl Blocks {
    fn enter(&mut self, statement: &str) -> Result<(), String> {
        let depth = self.0.last().copied().unwrap_or(0) + 1;
        match statement {
            "if" | "for" => self.0.push(depth),
            "elif" => {
                self.0.pop();
                self.0.push(depth);
            }
            // What does not belong together is the engine's to say: it reads no further.
            "endif" | "endfor" => drop(self.0.pop()),
            _ => {}
        }
        if self.0.last().is_some_and(|depth| *depth > DEEPEST) {
            return Err(format!(
                "more than {DEEPEST} if, elif and for lie in each other; nest them less"
            ));
        }
        Ok(())
    }
}

/// How many words and signs there are; a text in quotes is one.
fn words(tag: &str) -> usize {
    let (mut count, mut in_word) = (0, false);
    for (_, c) in unquoted(tag) {
        let of_word = c.is_ascii_alphanumeric() || c == '_';
        count += usize::from(!(c.is_whitespace() || of_word && in_word));
        in_word = of_word;
    }
    count
}

/// Where a tag ends; what stands in quotes does not end it.
fn end_of_tag(body: &str, close: &str) -> Option<usize> {
    unquoted(body).find(|&(at, _)| body[at..].starts_with(close)).map(|(at, _)| at)
}

/// The characters that are not in quotes, with their places.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut escaped) = (None, false);
    text.char_indices().filter(move |&(_, c)| match quote {
        Some(_) if escaped => {
            escaped = false;
            false
        }
        Some(open) => {
            escaped = c == '\\';
            if c == open {
                quote = None;
            }
            false
        }
        None => {
            if matches!(c, '"' | '\'') {
                quote = Some(c);
            }
            true
        }
    })
}

fn check_tag(
    tag: &str,
    statement: bool,
    line: usize,
    uses: &mut Uses,
    blocks: &mut Blocks,
) -> Result<(), String> {
    if words(tag) > LONGEST_TAG {
        return Err(format!(
            "a tag has more than {LONGEST_TAG} words and signs; write several of them"
        ));
    }
    if statement {
        let word = tag.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if !STATEMENTS.contains(&word) {
            return Err(format!("{word:?} cannot be used here; use {}", STATEMENTS.join(", ")));
        }
        blocks.enter(word)?;
        if word == "include" {
            let name = quoted_alone(tag["include".len()..].trim())
                .ok_or("include takes one quoted file name; write {% include \"file.j2\" %}")?;
            uses.includes.push((name.to_owned(), line));
            return Ok(());
        }
    }
    // Inside of braces the engine would not see the end of the tag that we see.
    let refused = |c: char| matches!(c, '*' | '~' | '+' | '{' | '}');
    if let Some((_, operator)) = unquoted(tag).find(|(_, c)| refused(*c)) {
        return Err(format!("{operator:?} cannot be used here; write the text out instead"));
    }
    let mut calls = tag;
    while let Some(at) = calls.find("rule(") {
        calls = &calls[at + "rule(".len()..];
        let id = calls.find(')').and_then(|end| quoted_alone(calls[..end].trim()));
        let id = id.ok_or("rule() takes one quoted id; write rule(\"id\")")?;
        uses.rules.push((id.to_owned(), line));
    }
    Ok(())
}

/// What is in the quotes, if `text` is one quoted string and nothing else.
fn quoted_alone(text: &str) -> Option<&str> {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .filter(|inside| !inside.contains(['"', '\'', '\\']))
}
