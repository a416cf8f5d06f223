//! Properties of the reading of replies.

use std::fmt::Write;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::sloppy_json::{self, Item};
use super::tests::{form, read};
use super::*;
use crate::message::Dialect;

/// A reply before it is written down.
#[derive(Debug, Clone)]
struct Clean {
    thought: String,
    calls: Vec<(String, Value)>,
    answer: Option<&'static str>,
}

const LABELS: [&str; 4] =
    ["Flawless Execution", "Over Modification", "Wrong Action", "Localization Failure"];

/// Words, with apostrophes where people have them.
fn prose() -> impl Strategy<Value = String> {
    vec("[A-Z]?[a-z]{1,6}('s|-like)?", 1..5).prop_map(|words| words.join(" "))
}

/// Arguments as tools take them.
fn arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prose().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<i16>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        Just(Value::Null),
    ];
    let value = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-z]{1,4}_[a-z]{1,4}", inner, 0..3).prop_map(Value::from_iter),
        ]
    });
    btree_map("[a-z]{1,4}_[a-z]{1,4}", value, 0..4).prop_map(Value::from_iter)
}

fn clean() -> impl Strategy<Value = Clean> {
    let calls = vec(("[a-z]{2,6}_[a-z]{2,6}", arguments()), 0..3);
    (prose(), calls, option::of(select(&LABELS[..]))).prop_map(|(thought, calls, answer)| Clean {
        thought,
        calls,
        answer,
    })
}

/// How a model writes.
#[derive(Debug, Clone)]
struct Hand {
    quotes: (char, char),
    arguments: &'static str,
    comma: &'static str,
    python: bool,
    fence: bool,
    braces_missing: bool,
    tags: fn(&str) -> String,
    closes: bool,
    label: fn(&str) -> String,
}

const NEAT: Hand = Hand {
    quotes: ('"', '"'),
    arguments: "parameters",
    comma: "",
    python: false,
    fence: false,
    braces_missing: false,
    tags: |name| format!("<{name}>"),
    closes: true,
    label: str::to_owned,
};

fn hand() -> impl Strategy<Value = Hand> {
    let quotes =
        select(vec![('"', '"'), ('\'', '\''), ('“', '”'), ('”', '”'), ('‘', '’'), ('„', '“')]);
    let arguments = select(vec!["parameters", "arguments", "args", "params", "input"]);
    let comma = select(vec!["", ",", " ,\n", ", // the last\n"]);
    let tags: Vec<fn(&str) -> String> = vec![
        |name| format!("<{name}>"),
        |name| format!("<{}>", name.to_uppercase()),
        |name| format!("< {} >", name.to_lowercase()),
        |name| format!("<{}>", name.replace(' ', "_")),
        |name| format!("<{}>", name.replace(['_', ' '], "-").to_lowercase()),
        |name| format!("&lt;{name}&gt;"),
        |name| format!("**<{name}>**"),
    ];
    let labels: Vec<fn(&str) -> String> = vec![
        str::to_owned,
        |label| format!("**{label}**"),
        |label| format!("\n`{}`.\n", label.to_lowercase()),
        |label| label.to_uppercase().replace(' ', "_"),
        |label| {
            format!("“{}”", label.replace("Local", "local").replace("iz", "is").replace(' ', "-"))
        },
        |label| format!("Final answer: {label}"),
        |label| format!("Nothing else has changed, so the label is {label} here."),
    ];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (quotes, arguments, comma, select(tags), select(labels), flags).prop_map(
        |(quotes, arguments, comma, tags, label, (python, fence, braces_missing, closes))| Hand {
            quotes,
            arguments,
            comma,
            python,
            fence,
            // Without a closing tag as well, the reply would be cut off.
            braces_missing: braces_missing && closes,
            tags,
            closes,
            label,
        },
    )
}

impl Hand {
    fn string(&self, text: &str) -> String {
        format!("{}{text}{}", self.quotes.0, self.quotes.1)
    }

    fn json(&self, value: &Value) -> String {
        let comma = |empty: bool| if empty { "" } else { self.comma };
        match value {
            Value::String(text) => self.string(text),
            Value::Bool(true) if self.python => "True".to_owned(),
            Value::Bool(false) if self.python => "False".to_owned(),
            Value::Null if self.python => "None".to_owned(),
            Value::Array(list) => {
                let inner: Vec<_> = list.iter().map(|value| self.json(value)).collect();
                format!("[{}{}]", inner.join(", "), comma(list.is_empty()))
            }
            Value::Object(map) => {
                let pair = |(key, value): (&String, &Value)| {
                    format!("{}: {}", self.string(key), self.json(value))
                };
                let inner: Vec<_> = map.iter().map(pair).collect();
                format!("{{{}{}}}", inner.join(", "), comma(map.is_empty()))
            }
            other => other.to_string(),
        }
    }

    fn section(&self, name: &str, text: &str) -> String {
        let close = if self.closes { (self.tags)(&format!("/{name}")) } else { "\n".to_owned() };
        format!("{}{text}{close}", (self.tags)(name))
    }

    fn write(&self, reply: &Clean) -> String {
        let mut text = self.section("Start Thinking", &reply.thought);
        if !reply.calls.is_empty() {
            let mut calls = String::new();
            for (name, arguments) in &reply.calls {
                let (name, arguments) = (self.string(name), self.json(arguments));
                let keys = (self.string("name"), self.string(self.arguments));
                let _ = writeln!(calls, "{{{}: {name}, {}: {arguments}}}", keys.0, keys.1);
            }
            if self.braces_missing {
                calls = calls.trim_end().trim_end_matches('}').to_owned() + "\n";
            }
            if self.fence {
                calls = format!("\n```json\n{calls}```\n");
            }
            text += &self.section("tool_call", &calls);
        }
        if let Some(label) = reply.answer {
            text += &self.section("Start Final Answer", &(self.label)(label));
        }
        text
    }
}

fn native(reply: &Clean) -> Value {
    let call = |(i, (name, arguments)): (usize, &(String, Value))| {
        json!({"id": format!("call_{i}"), "type": "function",
               "function": {"name": name, "arguments": arguments.to_string()}})
    };
    let calls: Vec<_> = reply.calls.iter().enumerate().map(call).collect();
    let answer =
        reply.answer.map(|label| format!("\n<Start Final Answer>{label}</Start Final Answer>"));
    json!({"role": "assistant", "content": reply.thought.clone() + &answer.unwrap_or_default(), "tool_calls": calls})
}

fn check(reading: &Reading, reply: &Clean, form: Dialect) -> Result<(), TestCaseError> {
    let calls: Vec<_> =
        reading.calls.iter().map(|c| (c.name.clone(), c.arguments.clone())).collect();
    prop_assert_eq!(&reading.problems, &Vec::<String>::new());
    prop_assert_eq!(&calls, &reply.calls);
    prop_assert!(reading.calls.iter().all(|call| call.form == form));
    prop_assert_eq!(reading.label(), reply.answer);
    prop_assert_eq!(reading.thought_source, ThoughtSource::Text);
    prop_assert_eq!(reading.thought.as_deref(), Some(reply.thought.as_str()));
    Ok(())
}

/// Texts made of what the readers look for.
fn soup() -> impl Strategy<Value = String> {
    let pieces = "<Start Thinking>|</Start Thinking>|<think>|</think>|<tool_call>|</tool_call>|<Start Final Answer>|\
        </Start Final Answer>|<Evidence>|</Evidence>|<Observation>|&lt;tool_call&gt;|<|>|&lt;|&gt;|/|start|_|{|}|[|]|(|)|\"|'|“|”|\\|\
        \\u12|\\ud83d|:|,|=|```json|```|//|/*|#|name|\"name\": \"a\"|parameters|zoom_in|zoom_in(|Flawless Execution|Wrong Action|not |\
        Crop 1|crops 1-|3|-1.5e|True|é|\u{200b}|\u{0}|?|.";
    let pieces: Vec<String> =
        pieces.split('|').map(str::to_owned).chain(["\n".into(), " ".into(), "|".into()]).collect();
    prop_oneof![
        3 => vec(select(pieces), 0..40).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}

/// Any JSON, with the keys of a message more often than others.
fn message() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        soup().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null)
    ];
    let keys = vec![
        "content",
        "tool_calls",
        "function_call",
        "function",
        "name",
        "arguments",
        "type",
        "text",
        "thinking",
        "id",
        "reasoning",
        "reasoning_content",
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(select(keys.clone()).prop_map(str::to_owned), inner, 0..6)
                .prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_panics_on_text(text in soup()) {
        let reading = read(&json!({"content": text}), &form());
        prop_assert!(reading.label().is_none_or(|label| LABELS.contains(&label)));
        prop_assert_eq!(reading.thought.is_none(), reading.thought_source == ThoughtSource::Absent);
    }

    #[test]
    fn never_panics_on_json(message in message()) {
        let _ = read(&message, &form());
        let _ = read(&message, &AnswerForm::new([""; 2]));
    }

    #[test]
    fn neat_replies_are_read_back(reply in clean()) {
        check(&read(&json!({"content": NEAT.write(&reply)}), &form()), &reply, Dialect::Tags)?;
        check(&read(&native(&reply), &form()), &reply, Dialect::Native)?;
    }

    #[test]
    fn sloppiness_changes_nothing(reply in clean(), hand in hand()) {
        let text = hand.write(&reply);
        check(&read(&json!({"content": text}), &form()), &reply, Dialect::Tags)?;
    }

    #[test]
    fn two_labels_are_none(labels in Just(LABELS.to_vec()).prop_shuffle(), hand in hand(), between in prose()) {
        let (a, b) = (labels[0], labels[1]);
        let inside = hand.section("Start Final Answer", &format!("{} {between} {}", (hand.label)(a), (hand.label)(b)));
        let apart = hand.section("Start Final Answer", a) + &between + &hand.section("Start Final Answer", b);
        let plain = format!("{a}\n{between}\nFinal answer: {b}");
        for text in [inside, apart, plain] {
            let reading = read(&json!({"content": text}), &form());
            prop_assert_eq!(&reading.answer, &None, "{}", text);
            prop_assert!(!reading.problems.is_empty());
        }
    }

    #[test]
    fn neutralised_text_is_inert(text in soup()) {
        let safe = neutralise(&text);
        prop_assert_eq!(&neutralise(&safe), &safe);
        let alone = read(&json!({"content": safe}), &form());
        prop_assert_eq!(&alone.calls, &vec![]);
        let last = safe.lines().rfind(|line| line.contains(char::is_alphanumeric) && !line.trim_start().starts_with("```"));
        let form = form();
        let label = last.and_then(|line| Labels::new(&form).line(line));
        prop_assert!(alone.answer.is_none() || alone.label() == label);
        for thinking in [format!("<Start Thinking>{safe}</Start Thinking>"), format!("<think>{safe}</think>"), format!("<Start Thinking>{safe}")] {
            let reading = read(&json!({"content": thinking}), &form);
            prop_assert_eq!((reading.calls, reading.answer), (vec![], None));
        }
        let quoted = format!("<Start Thinking>{safe}</Start Thinking><Start Final Answer>Wrong Action</Start Final Answer>");
        let reading = read(&json!({"content": quoted}), &form);
        prop_assert_eq!(reading.label(), Some("Wrong Action"));
    }

    #[test]
    fn neutralising_changes_only_tags(text in "[a-zA-Z0-9 .,'\n\t\"&;é<>=]{0,60}") {
        let shown = neutralise(&text);
        let back = shown.replace('‹', "<").replace('›', ">");
        let same = text.replace("&lt;", "<").replace("&gt;", ">") == back.replace("&lt;", "<").replace("&gt;", ">");
        prop_assert!(same, "{} → {}", text, shown);
    }

    /// The forgiving reader agrees with the strict one on JSON that is valid but for its end.
    #[test]
    fn valid_json_is_read_exactly(value in message().prop_filter("a container", |v| v.is_object() || v.is_array())) {
        let text = value.to_string() + "\n}";
        prop_assert_eq!(sloppy_json::read_all(&text, true), (vec![Item::Value(value)], None));
    }
}
