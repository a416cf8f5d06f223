//! What the built-in packs say, and that they say nothing of what is not there.

use deeplook_tools::{BoxConvention, Toolbox};

use super::super::workshop::estimated_tokens;
use super::*;
use crate::message::Said;

/// Every tool that a template speaks of, and one that none does.
const TOOLS: [&str; 8] = [
    "localize_differences",
    "zoom_in",
    "detect_object",
    "enhance",
    "measure_colour",
    "sweep",
    "read_text",
    "another_tool",
];
const REFERENCE: &str = "Reference Image";
const SHOWN: [&str; 2] = ["Original Image", "Edited Image"];

fn only(names: &[&str]) -> Vec<ToolSpec> {
    let tool = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: "What it is for.".to_owned(),
        parameters: json!({"type": "object"}),
    };
    names.iter().map(tool).collect()
}

/// All that a model reads before its first answer.
fn first_words(
    pack: &Pack,
    criterion: &Criterion,
    dialect: Dialect,
    tools: &[ToolSpec],
    pictures: &[&str],
) -> String {
    let facts = &Facts::default();
    let task = TaskText {
        instruction: "Make the boat green.",
        notes: &[],
        question: None,
        pictures,
        facts,
    };
    let may_look = !tools.is_empty();
    let turn = Turn { dialect, tools_allowed: may_look, turns_left: may_look.then_some(8) };
    [
        pack.system(criterion, facts, dialect, tools).unwrap(),
        pack.task(criterion, &task).unwrap(),
        pack.reminder(criterion, turn).unwrap(),
    ]
    .join("\n")
}

/// The packs whose words are ours to mend: v1 stays as it is.
fn packs() -> [Pack; 3] {
    let edits = || Pack::embedded("edits/v1").unwrap();
    let checked = edits().varied(Some("checked")).unwrap();
    [Pack::embedded("dlebench/v2").unwrap(), edits(), checked]
}

#[test]
fn nothing_is_said_of_what_is_not_there() {
    let masks = ["mask", "painted"];
    for pack in packs() {
        for criterion in pack.criteria() {
            let looks = criterion.modes.values().any(|mode| mode.tools);
            for dialect in [Dialect::Native, Dialect::Tags] {
                let said = |tools: &[&str], pictures: &[&str]| {
                    first_words(&pack, criterion, dialect, &only(tools), pictures)
                };
                let bare = said(&[], &SHOWN);
                for word in ["Crop", "tool", "Reference", "reference"].iter().chain(&masks) {
                    assert!(!bare.contains(word), "{} {}: {word:?}", pack.id(), criterion.id);
                }
                for there in TOOLS.iter().filter(|_| looks) {
                    let text = said(&[there], &SHOWN);
                    assert!(!text.contains(REFERENCE));
                    for other in TOOLS.iter().filter(|other| *other != there) {
                        assert!(!text.contains(other), "{there}: {other} in {text}");
                    }
                    for word in masks {
                        assert!(!text.contains(word), "{word:?}: {text}");
                    }
                }
                let with = said(&[], &[SHOWN[0], SHOWN[1], REFERENCE]);
                assert_eq!(with.contains(REFERENCE), pack.name == "dlebench", "{}", pack.id());
            }
        }
    }
}

#[test]
fn labels_are_listed_once() {
    let pack = Pack::embedded("dlebench/v2").unwrap();
    for criterion in pack.criteria() {
        let names: Vec<&str> = criterion.labels().iter().map(|l| l.name.as_str()).collect();
        for dialect in [Dialect::Native, Dialect::Tags] {
            for tools in [Vec::new(), only(&TOOLS)] {
                let text = first_words(&pack, criterion, dialect, &tools, &SHOWN);
                assert_eq!(text.matches(&names.join(", ")).count(), 1, "{text}");
                // Explained where its step fails, and listed.
                for name in &names {
                    assert_eq!(text.matches(name).count(), 2, "{name}: {text}");
                }
                assert!(text.contains("<Evidence>"));
            }
        }
    }
}

#[test]
fn v2_is_shorter_than_v1_in_every_mode() {
    let (old, new) = (pack(), Pack::embedded("dlebench/v2").unwrap());
    let tools = Toolbox::standard().specs(BoxConvention::PIXELS);
    for (before, after) in old.criteria().iter().zip(new.criteria()) {
        for (mode, view) in &after.modes {
            for dialect in [Dialect::Native, Dialect::Tags] {
                for pictures in [&SHOWN[..], &[SHOWN[0], SHOWN[1], REFERENCE]] {
                    let tools = if view.tools { &tools[..] } else { &[] };
                    let tokens = |pack: &Pack, criterion: &Criterion| {
                        estimated_tokens(&first_words(pack, criterion, dialect, tools, pictures))
                    };
                    let [before, after] = [tokens(&old, before), tokens(&new, after)];
                    assert!(after < before, "{mode} {dialect:?}: {before}, then {after}");
                }
            }
        }
    }
}

#[test]
fn an_answer_of_the_general_rubric_is_worth_the_worse_of_its_keys() {
    let pack = Pack::embedded("edits/v1").unwrap();
    let answer = |values: &[(&str, &str)]| {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), json!(value)));
        crate::answer::Answered::Values(values.collect())
    };
    let worth = |id: &str, values: &[(&str, &str)]| {
        pack.criterion(id).unwrap().worth(&answer(values), None).unwrap()
    };
    let sc = worth("sc", &[("success", "Fully Done"), ("preservation", "Heavily Changed")]);
    let pq = worth("pq", &[("naturalness", "Natural"), ("artefacts", "Clean")]);
    assert_eq!((sc, pq), (0.25, 1.0));
    assert_eq!(worth("sc", &[("success", "Not Done"), ("preservation", "Well Kept")]), 0.0);
    let overall = &pack.rubric().composites[0];
    let score = |id: &str| Some(if id == "sc" { sc } else { pq });
    assert_eq!(overall.formulas[0].worth(&overall.scale, pack.criteria(), score), Some(0.5));
}

/// Replies built like those that the paper prints in its Tables 7 to 14, in words of ours.
#[test]
fn replies_as_the_paper_prints_them_have_its_labels() {
    let look = "<Start Thinking> 1. **Localization**: I look for the small pan. </Start Thinking> <tool_call> { \"name\": \
        \"localize_differences\", \"parameters\": { \"comparison_image_1\": \"Original Image\", \
        \"comparison_image_2\": \"Edited Image\" } } { \"name\": \"detect_object\", \"parameters\": { \
        \"target_image\": \"Original Image\", \"detect_object_name\": \"yellow bicycle\" } } </tool_call>";
    let listed = "<Start Thinking> 1. **Scene:** No Scene Collapse. 2. **Error 1:** in **Crop 1** a thing was added. \
        **Error 2:** as **Crop 2** shows, a man is blurred: not a Single Anomaly. </Start Thinking>";
    let table = [
        ("if", "<Start Thinking>\n1. **Occurred**: yes. 2. **Shape**: another.\n</Start Thinking>\n<Start Final Answer>\nOver Modification\n</Start Final Answer>".to_owned(), "Over Modification"),
        ("if", "<Start Thinking> Based on Crop 1, the black part became red.</Start Thinking><br/>\n<Start Final Answer> Over Modification </Start Final Answer>".to_owned(), "Over Modification"),
        ("if", "<Start Thinking> First, I compare. The edit is clean. </Start Thinking>\n<Start Final Answer> Flawless Execution </Start Final Answer>".to_owned(), "Flawless Execution"),
        ("vc", format!("{listed}\n<Start Final Answer> Multiple Anomalies </Start Final Answer>"), "Multiple Anomalies"),
        ("vc", "<Start Thinking> **Count**: exactly 1. </Start Thinking> <Start Final Answer>Single Anomaly</Start Final Answer>".to_owned(), "Single Anomaly"),
        ("vc", "<Start Thinking> Step 3: 0 errors. </Start Thinking><br/><Start Final Answer> Perfect Consistency</Start Final Answer>".to_owned(), "Perfect Consistency"),
    ];
    for id in ["dlebench/v1", "dlebench/v2"] {
        let pack = Pack::embedded(id).unwrap();
        let read = |criterion: &str, reply: &str| {
            let form = pack.criterion(criterion).unwrap().form();
            let said = Said { text: reply.to_owned(), ..Said::default() };
            crate::dialect::read(&said, &form)
        };
        for (criterion, reply, label) in &table {
            let reading = read(criterion, reply);
            assert_eq!(reading.label(), Some(*label), "{id}: {reply}\n{:?}", reading.problems);
        }
        let calls: Vec<String> = read("vc", look).calls.into_iter().map(|call| call.name).collect();
        assert_eq!(calls, ["localize_differences", "detect_object"]);
    }
}
