//! Every planted fault is found in files of every form, and none in clean ones.

use serde_json::{Value, json};

use super::{Audit, FindingKind as Kind, read};

fn audit(name: &str, text: &str) -> Audit {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    Audit::of(&read(&path, None).unwrap(), None)
}

fn kinds(audit: &Audit) -> Vec<(Kind, usize)> {
    audit.findings.iter().map(|one| (one.kind, one.count)).collect()
}

const GEDIT: &str = "key,edited_image,instruction,sementics_score,quality_score,sc_reasoning,instruction_language\n";

fn gedit(rows: &[(&str, &str, &str, &str)]) -> String {
    let line = |(key, sc, pq, why): &(&str, &str, &str, &str)| {
        format!("{key},out/{key}.png,\"do, this\",{sc},{pq},{why},en\n")
    };
    GEDIT.to_owned() + &rows.iter().map(line).collect::<String>()
}

#[test]
fn tables() {
    let clean =
        [("a", "7", "8", "fine"), ("b", "0", "3", "nothing changed"), ("c", "9", "8", "good")];
    let found = audit("gedit.csv", &gedit(&clean));
    assert!(found.trusted && found.findings.is_empty(), "{:?}", found.findings);
    assert_eq!((found.metrics.len(), found.items, found.scale), (2, 3, Some([0.0, 10.0])));
    let planted = [
        clean[0],
        ("b", "0", "3", ""),
        ("c", "6", "8", "Error: rate limit"),
        ("d", "", "8", "fine"),
        ("e", "-1", "8", "fine"),
        ("a", "7", "8", "fine"),
        ("f", "5", "5", "ok"),
        ("f", "2", "5", "ok"),
    ];
    let found = audit("gedit.csv", &gedit(&planted));
    let of = |kind: Kind| kinds(&found).iter().find(|(own, _)| *own == kind).map_or(0, |(_, n)| *n);
    assert_eq!(of(Kind::FailureScoredLowest), 1, "{:?}", found.findings);
    assert_eq!(of(Kind::FailureScoredAnyhow), 1);
    assert_eq!((of(Kind::MissingScore), of(Kind::OffScale)), (1, 1));
    assert_eq!((of(Kind::Duplicate), of(Kind::Contradiction)), (3, 1));
    let sc = found.metrics.iter().find(|one| one.metric == "sementics_score").unwrap();
    assert_eq!((sc.coverage.answered, sc.coverage.all), (2, 8));
    assert_eq!(sc.mean_of_answers, Some(6.0));
    assert_eq!(sc.bounds, Some([1.5, 9.0]));
}

#[test]
fn answers_by_name() {
    let mut clean = json!({
        "a": {"score": [8, 7], "reasoning": "it wears a hat"},
        "b": {"score": [0, 10], "reasoning": "nothing is done"},
    });
    assert!(audit("SC.json", &clean.to_string()).trusted);
    clean["c"] = json!({"score": [0, 0], "reasoning": ""});
    clean["d"] = json!({"score": [4, 9], "reasoning": "I'm sorry, but I can't help with that."});
    clean["e"] = json!({"score": [], "reasoning": "so so"});
    let found = audit("SC.json", &clean.to_string());
    let expected =
        [(Kind::FailureScoredLowest, 1), (Kind::FailureScoredAnyhow, 1), (Kind::MissingScore, 1)];
    assert_eq!(kinds(&found), expected);
}

#[test]
fn replies_of_imgedit() {
    let reply = "Brief reasoning: it is done.\nPrompt Compliance: 4\nVisual Naturalness: 5\nPhysical Integrity: 3";
    let mut clean = json!({"1": reply, "2": reply});
    let found = audit("result.json", &clean.to_string());
    assert!(found.trusted, "{:?}", found.findings);
    assert_eq!(found.metrics[0].mean, Some(4.0));
    clean["3"] = json!("I cannot rate this.");
    assert_eq!(kinds(&audit("result.json", &clean.to_string())), [(Kind::MissingScore, 1)]);
    // Scores alone: 0 is not on a scale from 1.
    let found = audit("average_score.json", "{\"1\": 4.0, \"2\": null}");
    assert_eq!(kinds(&found), [(Kind::MissingScore, 1)]);
}

fn pica(answer: Value, correct: Value, error: Value) -> Value {
    json!({"question": "Is it?", "answer": "Yes", "model_answer": answer, "is_correct": correct, "error": error})
}

#[test]
fn questions_of_picaeval() {
    let clean = json!([{"index": 0, "annotated_qa_pairs": [
        pica(json!("Yes"), json!(true), Value::Null), pica(json!("No"), json!(false), Value::Null)]}]);
    assert!(audit("out.json", &clean.to_string()).trusted);
    let planted = json!([{"index": 0, "annotated_qa_pairs": [
        pica(json!("Yes"), json!(true), Value::Null),
        pica(json!(""), json!(false), json!("timeout")),
        pica(json!("maybe"), json!(true), Value::Null),
        pica(Value::Null, Value::Null, Value::Null)]}]);
    let found = audit("out.json", &planted.to_string());
    let expected =
        [(Kind::FailureScoredLowest, 1), (Kind::FailureScoredAnyhow, 1), (Kind::MissingScore, 1)];
    assert_eq!(kinds(&found), expected, "{:?}", found.findings);
    assert_eq!(found.metrics[0].bounds, Some([0.25, 1.0]));
}

#[test]
fn results_of_vibe() {
    let part = |score: f64| json!({"Contextual_Preservation": {"reason": "kept", "score": score}, "score": score});
    let item = |id: &str| json!({"id": id, "score": 1.0, "_eval_errors": [], "CP": part(1.0), "IA": part(1.0)});
    let clean = json!([item("a"), item("b")]);
    let found = audit("Addition_results_1.json", &clean.to_string());
    assert!(found.trusted && found.form.contains("VIBE"), "{:?}", found.findings);
    let mut planted = clean;
    planted[1]["_eval_errors"] = json!(["IA: no JSON"]);
    planted[1].as_object_mut().unwrap().remove("IA");
    let found = audit("Addition_results_1.json", &planted.to_string());
    assert_eq!(kinds(&found), [(Kind::FailureScoredAnyhow, 1), (Kind::PartLeftOut, 1)]);
}

#[test]
fn records_whose_replies_are_kept() {
    let record = |key: u32, score: f64, response: &str| json!({"key": key, "score": score, "response": response});
    let lines =
        |records: &[Value]| records.iter().map(|one| format!("{one}\n")).collect::<String>();
    let clean: Vec<Value> = (0..6).map(|key| record(key, 7.0, "{\"score\": [7, 9]}")).collect();
    assert!(audit("scores.jsonl", &lines(&clean)).trusted);
    let mut planted = clean;
    planted.remove(2);
    planted[0] = record(0, 3.0, "The picture is nice.");
    planted[1] = record(1, 3.0, "{\"score\": [8]}");
    planted[3] = record(4, 0.0, "");
    let found = audit("scores.jsonl", &lines(&planted));
    let expected = [
        (Kind::FailureScoredLowest, 1),
        (Kind::FailureScoredAnyhow, 1),
        (Kind::OtherThanReply, 1),
        (Kind::MissingItem, 1),
    ];
    assert_eq!(kinds(&found), expected, "{:?}", found.findings);
}

#[test]
fn raters_that_are_one() {
    let mut table = String::from("uid,rater1,rater2,rater3\n");
    for item in 0..8 {
        table.push_str(&format!("u{item},{},{},{}\n", item % 3, item % 3, (item + item / 4) % 3));
    }
    let found = audit("ratings.csv", &table);
    assert_eq!(kinds(&found), [(Kind::RepeatedRater, 1)], "{:?}", found.findings);
    assert!(found.findings[0].examples[0].contains("rater1 and rater2"));
}

#[test]
fn what_has_no_scores_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in
        [("a.json", "{\"a\": {\"b\": 1}}x"), ("b.csv", "a,b\n1,2\n"), ("c", ""), ("d.json", "7")]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        assert!(read(&path, None).is_err(), "{name}");
    }
}
