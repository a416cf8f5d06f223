//! Answers with several keys, as models write them.

use serde_json::{Value, json};

use super::super::{Reading, ThoughtSource};
use super::read;
use crate::answer::{AnswerForm, Answered, KeyForm};

fn key(name: &str, values: Value) -> KeyForm {
    let Value::Array(values) = values else { panic!("a list of values") };
    KeyForm { name: name.to_owned(), at: Vec::new(), values }
}

fn form() -> AnswerForm {
    AnswerForm::Keys(vec![
        key("Style_Consistency", json!([0, 1])),
        key("Visual_Seamlessness", json!([0, 0.5, 1])),
        key("Left_Arm", json!(["MATCH", "MISMATCH", "N/A"])),
    ])
}

fn reading(text: &str) -> Reading {
    read(&json!({ "role": "assistant", "content": text }), &form())
}

fn values(reading: &Reading) -> Option<Value> {
    match reading.answer.as_ref()? {
        Answered::Values(values) => Some(json!(values)),
        Answered::Label(label) => panic!("a label: {label}"),
    }
}

#[test]
fn objects_are_found_wherever_they_stand_and_however_they_are_spelled() {
    let right = json!({"Style_Consistency": 1, "Visual_Seamlessness": 0.5, "Left_Arm": "N/A"});
    for text in [
        // Bare, fenced, in tags, after them, in both dialects' tags.
        r#"{"Style_Consistency": 1, "Visual_Seamlessness": 0.5, "Left_Arm": "N/A"}"#,
        "I looked.\n```json\n{\"Style_Consistency\": 1, \"Visual_Seamlessness\": 0.5, \"Left_Arm\": \"N/A\"}\n```",
        "<Start Thinking>Look.</Start Thinking><Start Final Answer>{\"Style_Consistency\": 1, \"Visual_Seamlessness\": 0.5, \"Left_Arm\": \"N/A\"}</Start Final Answer>",
        "<Final Answer>\n```\n{\"Style_Consistency\": 1, \"Visual_Seamlessness\": 0.5, \"Left_Arm\": \"N/A\"}\n```\n</Final Answer>",
        "<Start Final Answer></Start Final Answer>\n{\"Style_Consistency\": 1, \"Visual_Seamlessness\": 0.5, \"Left_Arm\": \"N/A\"}",
        "<Start Final Answer>LABEL</Start Final Answer> {\"Style_Consistency\": 1, \"Visual_Seamlessness\": 0.5, \"Left_Arm\": \"N/A\"}",
        "The result is {\"Style_Consistency\": 1, \"Visual_Seamlessness\": 0.5, \"Left_Arm\": \"N/A\"}. That is all.",
        // Keys in any spelling.
        r#"{"style consistency": 1, "VISUAL-SEAMLESSNESS": 0.5, "leftArm": "N/A"}"#,
        r#"{"Style-Consistency": 1.0, "visual_seamlessness": 0.50, "LEFT ARM": "n/a"}"#,
        // Values beside reasons, and in words.
        r#"{"Style_Consistency": {"reason": "the same", "score": 1}, "Visual_Seamlessness": {"score": 0.5, "reason": ""}, "Left_Arm": {"reason": "hidden", "score": "N/A"}}"#,
        r#"{"Style_Consistency": "1", "Visual_Seamlessness": "0.5", "Left_Arm": "NA"}"#,
        // Under a roof.
        r#"{"evaluation": {"Style_Consistency": 1, "Visual_Seamlessness": 0.5, "Pose": {"Left_Arm": "N/A"}}}"#,
        r#"[{"Style_Consistency": 1, "Visual_Seamlessness": 0.5, "Left_Arm": "N/A"}]"#,
        // Said twice in the same way.
        r#"{"Style_Consistency": 1, "style consistency": 1, "Visual_Seamlessness": 0.5, "Left_Arm": "N/A"}"#,
        // The last object wins, and others do not matter.
        "First {\"Style_Consistency\": 0, \"Visual_Seamlessness\": 0, \"Left_Arm\": \"MATCH\"}, but no: {\"Style_Consistency\": 1, \"Visual_Seamlessness\": 0.5, \"Left_Arm\": \"N/A\"}",
        "{\"Style_Consistency\": 1, \"Visual_Seamlessness\": 0.5, \"Left_Arm\": \"N/A\"}\n{\"done\": true}",
        "{see below} {\"Style_Consistency\": 1, \"Visual_Seamlessness\": 0.5, \"Left_Arm\": \"N/A\"} {as said}",
        "<Start Thinking>{\"Style_Consistency\": 0}</Start Thinking>{\"Style_Consistency\": 1, \"Visual_Seamlessness\": 0.5, \"Left_Arm\": \"N/A\"}",
        // Sloppy.
        "{'Style_Consistency': 1, 'Visual_Seamlessness': .5, 'Left_Arm': 'N/A',}",
        "{“Style_Consistency”: 1, “Visual_Seamlessness”: 0.5, “Left_Arm”: “N/A”}",
        "{Style_Consistency: 1, Visual_Seamlessness: 0.5, Left_Arm: N/A}",
        "{\"Style_Consistency\": 1, // the same\n \"Visual_Seamlessness\": 0.5\n \"Left_Arm\": \"N/A\"",
        "{\"Style_Consistency\": {\"reason\": \"the \"same\" style\", \"score\": 1}, \"Visual_Seamlessness\": 0.5, \"Left_Arm\": \"N/A\"}",
    ] {
        let reading = reading(text);
        assert_eq!(values(&reading), Some(right.clone()), "{text}\n{:?}", reading.problems);
        assert_eq!(reading.problems, [""; 0], "{text}");
        assert!(reading.calls.is_empty(), "{text}");
    }
}

#[test]
fn what_is_missing_forbidden_or_doubtful_is_a_problem_and_never_a_value() {
    for (text, problem) in [
        (
            "",
            "there is no JSON object with the keys Style_Consistency, Visual_Seamlessness, Left_Arm",
        ),
        ("All is well.", "there is no JSON object"),
        ("{}", "there is no JSON object"),
        (r#"{"score": 1}"#, "there is no JSON object"),
        (r#"{"Style_Consistency": 1, "Visual_Seamlessness": 1}"#, "Left_Arm is missing"),
        (r#"{"Style_Consistency": 1, "Left_Arm": "MATCH"}"#, "Visual_Seamlessness is missing"),
        (
            r#"{"Style_Consistency": 0.5, "Visual_Seamlessness": 1, "Left_Arm": "MATCH"}"#,
            "Style_Consistency is 0.5, and must be one of 0, 1",
        ),
        (
            r#"{"Style_Consistency": true, "Visual_Seamlessness": 1, "Left_Arm": "MATCH"}"#,
            "Style_Consistency is true, and must be one of 0, 1",
        ),
        (
            r#"{"Style_Consistency": null, "Visual_Seamlessness": 1, "Left_Arm": "MATCH"}"#,
            "Style_Consistency is null",
        ),
        (
            r#"{"Style_Consistency": [1], "Visual_Seamlessness": 1, "Left_Arm": "MATCH"}"#,
            "Style_Consistency is [1]",
        ),
        (
            r#"{"Style_Consistency": 1, "Visual_Seamlessness": 1, "Left_Arm": "unsure"}"#,
            "Left_Arm is unsure, and must be one of MATCH, MISMATCH, N/A",
        ),
        (
            r#"{"Style_Consistency": 1, "Visual_Seamlessness": 1, "Left_Arm": "MATCH or MISMATCH"}"#,
            "Left_Arm is MATCH or MISMATCH",
        ),
        (
            r#"{"Style_Consistency": {"reason": "none"}, "Visual_Seamlessness": 1, "Left_Arm": "MATCH"}"#,
            "Style_Consistency is missing",
        ),
        (
            r#"{"Style_Consistency": 1, "style-consistency": 0, "Visual_Seamlessness": 1, "Left_Arm": "MATCH"}"#,
            "Style_Consistency is given twice, differently",
        ),
        (
            r#"{"Style_Consistency": 1, "Style_Consistency": 0, "Visual_Seamlessness": 1, "Left_Arm": "MATCH"}"#,
            "a key is given twice",
        ),
        // A broken last word is not replaced by an earlier one.
        (
            "{\"Style_Consistency\": 1, \"Visual_Seamlessness\": 1, \"Left_Arm\": \"MATCH\"} or rather {\"Style_Consistency\": 0, \"Visual",
            "the last JSON object cannot be read",
        ),
        (
            "{\"Style_Consistency\": 1, \"Visual_Seamlessness\": 1, \"Left_Arm\": \"MATCH\"}<Start Final Answer>I am not sure</Start Final Answer>",
            "the final answer holds no JSON object",
        ),
        (
            "<Start Thinking>{\"Style_Consistency\": 1, \"Visual_Seamlessness\": 1, \"Left_Arm\": \"MATCH\"}</Start Thinking>",
            "there is no JSON object",
        ),
    ] {
        let reading = reading(text);
        assert_eq!(values(&reading), None, "{text}");
        assert!(
            reading.problems.iter().any(|p| p.contains(problem)),
            "{text}\n{:?}",
            reading.problems
        );
    }
}

#[test]
fn a_key_can_stand_in_another_one() {
    let flagged = KeyForm {
        name: "Yaw flagged".to_owned(),
        at: vec!["Yaw".to_owned(), "needs_modification".to_owned()],
        values: vec![json!(true), json!(false)],
    };
    let form = AnswerForm::Keys(vec![key("Yaw", json!([0, 1])), flagged]);
    let text = r#"{"yaw": {"reason": "x", "score": 0, "Needs modification": true}}"#;
    let reading = read(&json!({ "content": text }), &form);
    assert_eq!(
        values(&reading),
        Some(json!({"Yaw": 0, "Yaw flagged": true})),
        "{:?}",
        reading.problems
    );
    let text = r#"{"yaw": {"reason": "x", "score": 0}}"#;
    assert_eq!(read(&json!({ "content": text }), &form).problems, ["Yaw flagged is missing"]);
}

#[test]
fn calls_and_thoughts_are_read_as_ever() {
    let call =
        r#"<tool_call>{"name": "zoom_in", "parameters": {"bbox": [1, 2, 3, 4]}}</tool_call>"#;
    let looked = reading(call);
    assert_eq!((looked.calls.len(), looked.answer.is_none(), looked.problems.len()), (1, true, 0));
    let untagged =
        reading("Let me look.\n{\"name\": \"zoom_in\", \"parameters\": {\"bbox\": [1, 2, 3, 4]}}");
    assert_eq!((untagged.calls.len(), untagged.answer.is_none()), (1, true));

    let object = r#"{"Style_Consistency": {"reason": "alike", "score": 1}, "Visual_Seamlessness": 1, "Left_Arm": "MATCH"}"#;
    let thinking = reading(&format!("<Start Thinking>Both are drawn.</Start Thinking>\n{object}"));
    assert_eq!(thinking.thought.as_deref(), Some("Both are drawn."));
    let prose = reading(&format!("Both are drawn in ink.\n```json\n{object}\n```"));
    assert_eq!(prose.thought.as_deref().map(str::trim), Some("Both are drawn in ink."));
    let alone = reading(object);
    assert_eq!(
        (alone.thought.as_deref(), alone.thought_source),
        (Some("alike"), ThoughtSource::Text)
    );
    let evidence = reading(&format!("<Evidence>Crop 1</Evidence>{object}"));
    assert_eq!(evidence.evidence, ["Crop 1"]);
}

#[test]
fn hostile_objects_end() {
    for hostile in [
        "{".repeat(200_000),
        "{\"".repeat(100_000),
        "{\"Style_Consistency\":".repeat(20_000),
        "[{".repeat(100_000),
        format!("{}1{}", "{\"a\":".repeat(60_000), "}".repeat(60_000)),
    ] {
        let start = std::time::Instant::now();
        assert_eq!(values(&reading(&hostile)), None);
        assert!(start.elapsed().as_secs() < 20, "{}", &hostile[..40]);
    }
}

#[test]
fn one_word_labels_are_read_only_where_they_can_mean_nothing_else() {
    let form = AnswerForm::new(["Yes", "No"]);
    let label = |text: &str| {
        let text = format!("<Start Final Answer>{text}</Start Final Answer>");
        let reading = read(&json!({ "content": text }), &form);
        assert_eq!(reading.answer.is_none(), !reading.problems.is_empty(), "{text}");
        reading.label().map(str::to_owned)
    };
    for (text, expected) in [
        ("Yes", "Yes"),
        ("**NO.**", "No"),
        ("Answer: no", "No"),
        ("The answer is yes.", "Yes"),
        ("Yes because the cup is gone", "Yes"),
        ("The cup is gone, so yes", "Yes"),
        (r#"{"answer": "Yes", "explanation": "There is no cup."}"#, "Yes"),
    ] {
        assert_eq!(label(text).as_deref(), Some(expected), "{text}");
    }
    for text in [
        "Yes or no",
        "Not yes",
        "No, wait: yes",
        "There is no cup",
        "yes and no",
        "It depends",
        "No cup can be seen, so the answer to no question is yes",
        "No, so yes",
        r#"{"answer": "Yes", "other": "No"}"#,
        r#"{"answer": "Yes", "answer": "No"}"#,
    ] {
        assert_eq!(label(text), None, "{text}");
    }
}
