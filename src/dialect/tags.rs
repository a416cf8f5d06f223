//! The tags of the text protocol, and the sections that they make of a reply.
//!
//! A tag is read in any case, with spaces, underscores, hyphens or nothing between its words, with
//! or without `Start`, and also where a model escaped it (`&lt;tool_call&gt;`). Typographic
//! brackets (`‹tool_call›`) never make a tag: that is how [`neutralise`] quotes untrusted text.

/// A tag is at most this long, in characters.
const LONGEST: usize = 48;
/// What prompts put around untrusted text: it must not be closed from within.
const OURS: &[&str] = &["instruction", "system"];

/// What a section is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text outside all tags.
    Free,
    /// `<Start Thinking>`, `<think>`.
    Thinking,
    /// `<tool_call>`.
    Call,
    /// `<Start Final Answer>`.
    Answer,
    /// `<Evidence>`.
    Evidence,
    /// `<Observation>`, `<tool_response>`: what only we may write.
    Observation,
}

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// Whether its closing tag is there.
    pub(super) closed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Tag {
    start: usize,
    end: usize,
    kind: Kind,
    closes: bool,
    /// Spelled `<think>`, as reasoning models do before their reply proper.
    reasoning: bool,
}

/// The sections of a text in order. What stands within thinking stays one piece, whatever tags are
/// quoted in it; an answer is followed by the sections that stood within it.
pub(super) fn sections(text: &str) -> Vec<Section> {
    let mut tags = find_tags(text);
    let thinking = thinking(&mut tags, text.len());
    let mut out = Vec::new();
    assemble(&items(text, &tags, &thinking), &mut out);
    out
}

/// Whether a text holds a tag of a call or of an answer.
pub(super) fn holds_calls_or_answers(text: &str) -> bool {
    find_tags(text).iter().any(|tag| !tag.closes && matches!(tag.kind, Kind::Call | Kind::Answer))
}

/// All tags of a text; the asterisks of a tag in bold (`**<tool_call>**`) belong to it.
fn find_tags(text: &str) -> Vec<Tag> {
    let mut tags: Vec<Tag> = Vec::new();
    for (at, _) in text.match_indices(['<', '&']) {
        let Some(mut tag) = tag_at(text, at) else { continue };
        let free = tags.last().map_or(0, |last| last.end);
        if text[free..at].ends_with("**") && text[tag.end..].starts_with("**") {
            tag.start -= 2;
            tag.end += 2;
        }
        tags.push(tag);
    }
    tags
}

/// The tag that begins at this byte.
fn tag_at(text: &str, at: usize) -> Option<Tag> {
    let (name, slash, end) = tag_name(text, at);
    let end = end?;
    let (kind, closes) = kind_of(&name)?;
    Some(Tag { start: at, end, kind, closes: slash || closes, reasoning: name == "think" })
}

/// The letters after an opening bracket, whether a slash stands before them, and where the tag
/// ends, if a closing bracket follows.
fn tag_name(text: &str, at: usize) -> (String, bool, Option<usize>) {
    let (mut name, mut slash) = (String::new(), false);
    let rest = &text[at..];
    let Some(body) = rest.strip_prefix('<').or_else(|| rest.strip_prefix("&lt;")) else {
        return (name, slash, None);
    };
    let begin = text.len() - body.len();
    for (i, c) in body.char_indices().take(LONGEST) {
        match c {
            '>' => return (name, slash, Some(begin + i + 1)),
            '&' if body[i..].starts_with("&gt;") => return (name, slash, Some(begin + i + 4)),
            '/' if name.is_empty() => slash = true,
            _ if c.is_ascii_alphabetic() => name.push(c.to_ascii_lowercase()),
            '_' | '-' | '*' | '\\' | '|' => {}
            _ if c.is_whitespace() => {}
            _ => break,
        }
    }
    (name, slash, None)
}

/// What a tag of this name opens, or closes if the name itself says so (`<End Final Answer>`).
fn kind_of(name: &str) -> Option<(Kind, bool)> {
    let plain = |name: &str| {
        Some(match name {
            "thinking" | "think" | "thought" | "thoughts" => Kind::Thinking,
            "toolcall" | "toolcalls" | "functioncall" | "functioncalls" => Kind::Call,
            "finalanswer" | "answer" | "label" | "verdict" => Kind::Answer,
            "evidence" => Kind::Evidence,
            "observation" | "observations" | "toolresponse" | "toolresult" | "tooloutput" => {
                Kind::Observation
            }
            _ => return None,
        })
    };
    let opened =
        ["start", "begin"].iter().find_map(|w| name.strip_prefix(w).or(name.strip_suffix(w)));
    let ended = name.strip_prefix("end").or(name.strip_suffix("end"));
    let open = |name| plain(name).map(|kind| (kind, false));
    open(name)
        .or_else(|| opened.and_then(open))
        .or_else(|| ended.and_then(plain).map(|kind| (kind, true)))
}

/// A stretch of thinking: the tags `first..=last`, the text of the thought, and where it ends.
#[derive(Debug)]
struct Thinking {
    first: usize,
    last: usize,
    text: (usize, usize),
    end: usize,
}

/// Finds the thinking. A closing tag makes thought of all that stands before it up to the end of
/// what is known to be something else, so a quoted answer is never read; thinking that nobody
/// closed ends at the next tag and is left to [`assemble`], except `<think>`, which was cut off.
fn thinking(tags: &mut [Tag], length: usize) -> Vec<Thinking> {
    let mut found: Vec<Thinking> = Vec::new();
    let mut opened: Option<usize> = None;
    // Opening tags since the last closing one, and how many of the last run are still unanswered.
    let (mut depth, mut spare) = (0_usize, 0_usize);
    for i in 0..tags.len() {
        let tag = tags[i];
        if tag.kind != Kind::Thinking {
            continue;
        }
        if !tag.closes {
            opened.get_or_insert(i);
            depth += 1;
            continue;
        }
        if let Some(first) = opened.take() {
            let text = (tags[first].end, tag.start);
            found.push(Thinking { first, last: i, text, end: tag.end });
            spare = depth - 1;
            depth = 0;
            continue;
        }
        let before = i.checked_sub(1).map(|before| tags[before]);
        if let Some(before) = before
            && spare == 0
            && !tag.reasoning
            && !before.closes
            && matches!(before.kind, Kind::Answer | Kind::Call)
        {
            // `<Start Final Answer>X</Start Thinking>`: the wrong closing tag.
            tags[i].kind = before.kind;
        } else if let Some(last) = found.last_mut() {
            (last.last, last.text.1, last.end) = (i, tag.start, tag.end);
            spare = spare.saturating_sub(1);
        } else {
            found.push(Thinking { first: 0, last: i, text: (0, tag.start), end: tag.end });
        }
    }
    if let Some(first) = opened
        && tags[first].reasoning
    {
        let text = (tags[first].end, length);
        found.push(Thinking { first, last: tags.len() - 1, text, end: length });
    }
    found
}

#[derive(Debug, Clone, Copy)]
enum Item<'a> {
    Text(&'a str),
    Thought(&'a str),
    Tag(Tag, &'a str),
}

fn items<'a>(text: &'a str, tags: &[Tag], thinking: &[Thinking]) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    let mut thinking = thinking.iter().peekable();
    let (mut at, mut i) = (0, 0);
    while let Some(tag) = tags.get(i) {
        if let Some(thought) = thinking.next_if(|thought| thought.first <= i) {
            let (from, to) = thought.text;
            if from > 0 {
                items.push(Item::Text(&text[at..tag.start]));
            }
            items.push(Item::Thought(&text[from..to]));
            (at, i) = (thought.end, thought.last + 1);
        } else {
            items.push(Item::Text(&text[at..tag.start]));
            items.push(Item::Tag(*tag, &text[tag.start..tag.end]));
            (at, i) = (tag.end, i + 1);
        }
    }
    items.push(Item::Text(&text[at..]));
    items.retain(|item| !matches!(item, Item::Text(text) if text.is_empty()));
    items
}

fn assemble(items: &[Item<'_>], out: &mut Vec<Section>) {
    let mut i = 0;
    while let Some(item) = items.get(i) {
        i += 1;
        match *item {
            Item::Text(text) => push(out, Kind::Free, text, true),
            Item::Thought(text) => push(out, Kind::Thinking, text, true),
            Item::Tag(tag, _) if tag.closes => {
                if tag.kind == Kind::Call {
                    open_forgotten_call(out);
                }
            }
            Item::Tag(tag, _) => {
                let after = &items[i..];
                let (inner, passed, closed) = extent(tag.kind, after);
                let inner = &after[..inner];
                i += passed;
                section(tag.kind, inner, closed, out);
            }
        }
    }
}

/// How many items belong to a section, how many are passed with its end, and whether it is closed:
/// up to its closing tag, or if that is missing up to any tag.
fn extent(kind: Kind, after: &[Item<'_>]) -> (usize, usize, bool) {
    let of_kind = |item: &Item<'_>| matches!(item, Item::Tag(tag, _) if tag.kind == kind);
    if let Some(end) = after.iter().position(of_kind)
        && matches!(after[end], Item::Tag(tag, _) if tag.closes)
    {
        return (end, end + 1, true);
    }
    match after.iter().position(|item| matches!(item, Item::Tag(..))) {
        Some(end) if matches!(after[end], Item::Tag(tag, _) if tag.closes) => (end, end + 1, true),
        Some(end) => (end, end, false),
        None => (after.len(), after.len(), false),
    }
}

fn section(kind: Kind, inner: &[Item<'_>], closed: bool, out: &mut Vec<Section>) {
    let mut text = String::new();
    let mut nested = Vec::new();
    if kind == Kind::Answer {
        assemble(inner, &mut nested);
        for part in nested.extract_if(.., |part| part.kind == Kind::Free) {
            text += &part.text;
        }
    } else {
        for item in inner {
            match item {
                Item::Text(piece) | Item::Tag(_, piece) => text += piece,
                Item::Thought(piece) => push(&mut nested, Kind::Thinking, piece, true),
            }
        }
    }
    push(out, kind, &text, closed);
    out.append(&mut nested);
}

/// A closing `</tool_call>` without its opening tag: the call is the JSON on the lines before it.
fn open_forgotten_call(out: &mut Vec<Section>) {
    let Some(before) = out.last_mut().filter(|before| before.kind == Kind::Free) else { return };
    let mut at = 0;
    let json = before.text.split_inclusive('\n').find_map(|line| {
        let start = at;
        at += line.len();
        line.trim_start().starts_with(['{', '[']).then_some(start)
    });
    if let Some(start) = json {
        let call = before.text.split_off(start);
        push(out, Kind::Call, &call, true);
    }
}

fn push(out: &mut Vec<Section>, kind: Kind, text: &str, closed: bool) {
    out.push(Section { kind, text: text.to_owned(), closed });
}

/// Untrusted text (an instruction, a name, a field of a file) as it may stand in a prompt.
///
/// The angle brackets of whatever looks like one of our tags, or like a mark of a chat template
/// (`<|im_start|>`), become `‹ ›`, also where the tag is unfinished; control characters except
/// newline and tab are removed; all else stays as it is.
///
/// A reply that consists of such text holds no tool call in tags, and no answer unless the text
/// itself ends in a line that is nothing but a label: that is how people answer without tags. Within
/// thinking it is never read.
pub fn neutralise(text: &str) -> String {
    let text: String =
        text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (open, bracket) in text.match_indices(['<', '&']) {
        let bracket = if bracket == "<" { 1 } else { "&lt;".len() };
        let (name, _, end) = tag_name(&text, open);
        let template = text[open..].starts_with("<|");
        if open < at || !(template || OURS.contains(&name.as_str()) || kind_of(&name).is_some()) {
            continue;
        }
        out += &text[at..open];
        out.push('‹');
        at = open + bracket;
        if let Some(end) = end {
            let closing = if text[..end].ends_with('>') { 1 } else { "&gt;".len() };
            out += &text[at..end - closing];
            out.push('›');
            at = end;
        }
    }
    out + &text[at..]
}
