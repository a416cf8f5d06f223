use std::sync::Arc;

use deeplook_tools::Toolbox;

use super::*;
use crate::case::EditCase;
use crate::dataset::draw::{self, DrawnCase, Editor};
use crate::judge::{Judge, JudgeSettings};
use crate::prompt::{self, Mode, Pack};
use crate::trace::{Judgement, RunFolder};

fn judge(mode: Mode, dialect: Dialect) -> Judge<Rules> {
    let pack = Pack::embedded(prompt::DEFAULT).unwrap();
    let settings = JudgeSettings { mode, ..JudgeSettings::default() };
    Judge::new(Rules::default(), Rules::record(dialect), pack, Toolbox::standard(), settings)
}

fn case(drawn: &DrawnCase, editor: Editor) -> EditCase {
    let edit = drawn.edits.iter().find(|edit| edit.editor == editor).unwrap();
    EditCase::new(drawn.source.clone(), edit.picture.clone(), &drawn.instruction)
        .with_reference(drawn.reference.clone())
        .with_fact("type", drawn.kind.name())
        .with_targets(drawn.boxes.clone())
}

fn judgement(judge: &Judge<Rules>, case: &EditCase, criterion: &str) -> Judgement {
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::new(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(judge.judge(case, criterion, &run, &|_| {})).unwrap().judgement
}

fn label(judge: &Judge<Rules>, drawn: &DrawnCase, editor: Editor, criterion: &str) -> String {
    let judgement = judgement(judge, &case(drawn, editor), criterion);
    let part = judgement.deciding_part().unwrap();
    assert!(part.reasoning.as_ref().unwrap().contains("offline judge, a baseline"));
    assert_eq!(part.unknown_evidence, Vec::<String>::new());
    assert_eq!(judgement.cost, Some(0.0));
    judgement.label().unwrap().to_owned()
}

#[test]
fn clear_edits_get_their_labels() {
    // A removal.
    let drawn = draw::case(1, 4).unwrap();
    let oracle = judge(Mode::Oracle, Dialect::Native);
    assert_eq!(label(&oracle, &drawn, Editor::Perfect, "if"), label::FLAWLESS);
    assert_eq!(label(&oracle, &drawn, Editor::NoOp, "if"), label::NOT_LOCALISED);
    assert_eq!(label(&oracle, &drawn, Editor::WrongAction, "if"), label::WRONG_ACTION);
    let tool = judge(Mode::Tool, Dialect::Tags);
    assert_eq!(label(&tool, &drawn, Editor::Collapses, "vc"), label::COLLAPSE);
    assert_eq!(label(&tool, &drawn, Editor::NoOp, "vc"), label::PERFECT);
    assert_eq!(label(&tool, &drawn, Editor::NoOp, "if"), label::NOT_LOCALISED);
    let plain = judge(Mode::Plain, Dialect::Native);
    assert_eq!(label(&plain, &drawn, Editor::NoOp, "vc"), label::PERFECT);
}

#[test]
fn added_things_are_seen_wherever_they_are() {
    let drawn = draw::case(1, 6).unwrap();
    let oracle = judge(Mode::Oracle, Dialect::Native);
    assert_eq!(label(&oracle, &drawn, Editor::Perfect, "if"), label::FLAWLESS);
    assert_eq!(label(&oracle, &drawn, Editor::NoOp, "if"), label::NOT_LOCALISED);
}

/// Neither the worst label nor the best one: it does not know what was asked.
#[test]
fn what_it_does_not_understand_it_does_not_judge() {
    let drawn = draw::case(1, 4).unwrap();
    for (mode, criterion) in
        [(Mode::Plain, "if"), (Mode::Tool, "if"), (Mode::Plain, "vc"), (Mode::Tool, "vc")]
    {
        for editor in [Editor::NoOp, Editor::Perfect] {
            let mut case = case(&drawn, editor);
            case.instruction = "Add a small green ball.".to_owned();
            case.others.clear();
            let judgement = judgement(&judge(mode, Dialect::Native), &case, criterion);
            let outcome = judgement.outcome.unwrap();
            assert_eq!(outcome.name(), "abstained", "{mode} {criterion}: {outcome:?}");
            assert!(outcome.reason().unwrap().contains("does not understand"), "{outcome:?}");
        }
    }
}

#[test]
fn a_reference_that_changes_nothing_is_no_reason_for_a_label() {
    let drawn = draw::case(1, 4).unwrap();
    let case = case(&drawn, Editor::Perfect).with_reference(drawn.source.clone());
    let judgement = judgement(&judge(Mode::Oracle, Dialect::Native), &case, "if");
    let outcome = judgement.outcome.unwrap();
    assert_eq!(outcome.name(), "abstained", "{outcome:?}");
    assert!(outcome.reason().unwrap().contains("reference changes nothing"), "{outcome:?}");
}

#[test]
fn a_request_without_pictures_or_data_is_answered_or_refused() {
    let request = |data: Value| Request {
        messages: vec![Arc::new(Message::User { parts: Vec::new(), data })],
        tools: Arc::new([]),
        tool_choice: ToolChoice::None,
        dialect: Dialect::Native,
    };
    assert_eq!(decide(&request(Value::Null)), None);
    assert_eq!(decide(&request(json!({ "criterion": "beauty" }))), None);
    for (criterion, mode) in [("if", "oracle"), ("if", "plain"), ("vc", "oracle"), ("vc", "tool")] {
        let reply = decide(&request(json!({ "criterion": criterion, "mode": mode }))).unwrap();
        assert!(reply["refusal"].as_str().unwrap().contains("could not see"), "{reply}");
    }
}
