use std::collections::BTreeMap;
use std::sync::Arc;

use deeplook_tools::{BoxConvention, Toolbox};

use super::*;
use crate::case::EditCase;
use crate::dataset::draw::{self, DrawnCase, Editor};
use crate::judge::{Judge, JudgeSettings};
use crate::prompt::{Mode, Pack};
use crate::trace::{ModelRecord, RunFolder};

fn judge(mode: Mode, dialect: Dialect) -> Judge<Rules> {
    let record = ModelRecord {
        id: "rules".to_owned(),
        base_url: None,
        profile: Value::Null,
        params: BTreeMap::new(),
        dialect,
        boxes: BoxConvention::PIXELS,
    };
    let pack = Pack::embedded("dlebench/v1").unwrap();
    let settings = JudgeSettings { mode, ..JudgeSettings::default() };
    Judge::new(Rules::default(), record, pack, Toolbox::standard(), settings)
}

fn label(judge: &Judge<Rules>, drawn: &DrawnCase, editor: Editor, criterion: &str) -> String {
    let edit = drawn.edits.iter().find(|edit| edit.editor == editor).unwrap();
    let case = EditCase {
        reference: Some(drawn.reference.clone().into()),
        kind: Some(drawn.kind.name().to_owned()),
        boxes: drawn.boxes.clone(),
        ..EditCase::new(drawn.source.clone(), edit.picture.clone(), &drawn.instruction)
    };
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::new(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let judged = runtime.block_on(judge.judge(&case, criterion, &run, &|_| {})).unwrap();
    let part = judged.judgement.deciding_part().unwrap();
    assert!(part.reasoning.as_ref().unwrap().contains("offline judge, a baseline"));
    assert_eq!(part.unknown_evidence, Vec::<String>::new());
    judged.judgement.label().unwrap().to_owned()
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
