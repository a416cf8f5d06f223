//! `deeplook agree` and `deeplook compare` as a user types them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::command::{json, run, stderr, stdout};

const IF: [&str; 4] =
    ["Localization Failure", "Wrong Action", "Over Modification", "Flawless Execution"];

/// A file of results of one editor: case by case the rank of the label, 0 where there is no verdict.
fn results(folder: &Path, name: &str, ranks: &[usize]) {
    let mut text = String::new();
    for (i, &rank) in ranks.iter().enumerate() {
        let mut line = json!({
            "case": format!("c{i:02}"), "editor": "e", "criterion": "IF", "type": "Change Color",
            "trace": format!("judgements/c{i:02}"),
        });
        match rank.checked_sub(1) {
            Some(label) => line["label"] = IF[label].into(),
            None => line["outcome"] = "abstained".into(),
        }
        writeln!(text, "{line}").unwrap();
    }
    fs::write(folder.join(name), text).unwrap();
}

/// Labels of two annotators who say the same.
fn labels(folder: &Path, ranks: &[usize]) {
    let mut text = "case,editor,criterion,annotator,label\n".to_owned();
    for (i, rank) in ranks.iter().enumerate() {
        for annotator in ["ann", "bob"] {
            writeln!(text, "c{i:02},e,if,{annotator},{}", IF[rank - 1]).unwrap();
        }
    }
    fs::write(folder.join("labels.csv"), text).unwrap();
}

#[test]
fn a_table_gives_every_measure_or_null() {
    let folder = tempfile::tempdir().unwrap();
    let table = |text: &str| {
        fs::write(folder.path().join("t.csv"), text).unwrap();
        json(&run(folder.path(), &["agree", "--table", "t.csv", "--json"]))
    };
    let found = table("item,a,b\n1,1,1\n2,2,3\n3,3,2\n4,4,4\n5,,4\n");
    assert_eq!(found["n"], 4);
    assert!((found["spearman"]["value"].as_f64().unwrap() - 0.8).abs() < 1e-12);
    assert!(found["exact"]["low"].as_f64() < found["exact"]["high"].as_f64());
    let constant = table("a,b\n2,2\n2,2\n");
    for key in [
        "spearman",
        "pearson",
        "kappa_quadratic",
        "alpha_nominal",
        "alpha_ordinal",
        "alpha_interval",
    ] {
        assert_eq!(constant[key], Value::Null, "{key}");
        assert!(constant["undefined"][key].is_string(), "{key}");
    }
    let text = stdout(&run(folder.path(), &["agree", "--table", "t.csv"]));
    assert!(text.contains("one side is constant") && !text.contains("NaN"), "{text}");
    fs::write(folder.path().join("t.csv"), "a,b\n1,2\n1,x\n").unwrap();
    let refused = run(folder.path(), &["agree", "--table", "t.csv"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("t.csv, line 3"), "{}", stderr(&refused));
}

#[test]
fn a_judge_beside_people_with_gates() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    labels(folder, &[1, 2, 3, 4, 1, 2, 3, 4]);
    results(folder, "run.jsonl", &[1, 2, 3, 4, 1, 2, 3, 0]);
    let agree = |more: &[&str]| {
        let args = [&["agree", "run.jsonl", "--labels", "labels.csv"], more].concat();
        run(folder, &args)
    };
    let found = json(&agree(&["--json"]));
    assert_eq!(found["truth"], "mean");
    let cell = &found["judges"][0]["cells"][0];
    assert_eq!(cell["coverage"], json!({"answered": 7, "all": 8}));
    assert_eq!(found["exact"], cell["agreement"]["exact"]);
    assert_eq!(found["judges"][0]["confusion"][0]["counts"][3], json!([0, 0, 0, 1, 1]));
    let text = stdout(&agree(&["--truth", "majority"]));
    assert!(text.contains("87.50 % of 8") && text.contains("the majority of"), "{text}");
    assert_eq!(stdout(&agree(&[])), stdout(&agree(&[])));

    assert_eq!(agree(&["--min-agreement", "1", "--min-coverage", "0.8"]).status.code(), Some(0));
    let failed = agree(&["--min-coverage", "95%"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(stderr(&failed).contains("87.50 %"), "{}", stderr(&failed));
    results(folder, "run.jsonl", &[4, 3, 2, 1, 4, 3, 2, 1]);
    let failed = agree(&["--min-agreement", "kappa_quadratic=0.5", "--json"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(stderr(&failed).contains("below --min-agreement"), "{}", stderr(&failed));
    results(folder, "run.jsonl", &[4; 8]);
    let failed = agree(&["--min-agreement", "0"]);
    assert!(stderr(&failed).contains("undefined"), "{}", stderr(&failed));
}

#[test]
fn two_judges_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    labels(folder, &[1, 2, 3, 4, 1, 2, 3, 4]);
    results(folder, "good.jsonl", &[1, 2, 3, 4, 1, 2, 3, 4]);
    results(folder, "bad.jsonl", &[2, 2, 2, 4, 1, 3, 3, 3]);
    let args = ["agree", "good.jsonl", "bad.jsonl", "--labels", "labels.csv"];
    let found = json(&run(folder, &[&args[..], &["--json"]].concat()));
    assert_eq!(found["differences"][0]["judges"], json!([0, 1]));
    assert_eq!(found["differences"][0]["difference"]["mae"]["value"], json!(-0.5));
    let text = stdout(&run(folder, &args));
    for part in ["Side by side", "Paired differences", "1 − 2", "2: bad.jsonl"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn labels_that_do_not_exist_are_named_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    results(folder, "run.jsonl", &[1, 2]);
    let wrong = "case,editor,criterion,annotator,label\nc00,e,if,ann,Splendid\n";
    fs::write(folder.join("labels.csv"), wrong).unwrap();
    let refused = run(folder, &["agree", "run.jsonl", "--labels", "labels.csv"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = stderr(&refused);
    assert!(text.contains("line 2") && text.contains("Flawless Execution"), "{text}");
    let elsewhere = wrong.replace("Splendid", "Wrong Action").replace("c00", "another");
    fs::write(folder.join("labels.csv"), elsewhere).unwrap();
    let refused = run(folder, &["agree", "run.jsonl", "--labels", "labels.csv"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = stderr(&refused);
    assert!(text.contains("\"c00\"") && text.contains("\"another\""), "{text}");
    fs::write(folder.join("run.jsonl"), "{\"case\": \"c\"}\n").unwrap();
    let refused = run(folder, &["compare", "run.jsonl", "run.jsonl"]);
    assert!(stderr(&refused).contains("run.jsonl, line 1"), "{}", stderr(&refused));
}

#[test]
fn a_comparison_across_prompts_is_said_and_passes_no_gate() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, prompts) in [("a", "dlebench/v1@111111111111"), ("b", "dlebench/v2@222222222222")] {
        let file = folder.join(name);
        results(folder, name, &[3; 6]);
        let lines = fs::read_to_string(&file).unwrap();
        let named = lines.replace("{\"case\"", &format!("{{\"prompts\":\"{prompts}\",\"case\""));
        assert_ne!(named, lines);
        fs::write(&file, named).unwrap();
    }
    let compare = |args: &[&str]| run(folder, &[&["compare"], args].concat());
    let text = stdout(&compare(&["a", "b"]));
    assert!(
        text.contains("judged by different prompts") && text.contains("dlebench/v1@"),
        "{text}"
    );
    let found = json(&compare(&["a", "b", "--json"]));
    assert_eq!(found["different_prompts"][1], json!(["dlebench/v2@222222222222"]));
    let failed = compare(&["a", "b", "--max-regression", "50"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(stderr(&failed).contains("different prompts"), "{}", stderr(&failed));
    let same = json(&compare(&["a", "a", "--json"]));
    assert_eq!(same.get("different_prompts"), None);
    assert_eq!(compare(&["a", "a", "--max-regression", "50"]).status.code(), Some(0));
}

#[test]
fn compare_says_better_worse_or_cannot_tell() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    results(folder, "low.jsonl", &[1; 20]);
    results(folder, "high.jsonl", &[[4; 10], [1; 10]].concat());
    results(folder, "mixed.jsonl", &[[4; 3], [1; 3], [0; 3], [1; 3]].concat());
    let compare = |args: &[&str]| run(folder, &[&["compare"], args].concat());
    let text = stdout(&compare(&["low.jsonl", "high.jsonl"]));
    assert!(text.contains("if: B is better") && text.contains("10 flips"), "{text}");
    assert!(text.contains("A: judgements/c00") && text.contains("+100.00"), "{text}");
    assert!(stdout(&compare(&["high.jsonl", "low.jsonl"])).contains("if: B is worse"));
    let text = stdout(&compare(&["low.jsonl", "mixed.jsonl"]));
    assert!(text.contains("no evidence either way") && text.contains("more cases"), "{text}");
    let found = json(&compare(&["low.jsonl", "mixed.jsonl", "--json"]));
    assert_eq!(found["only_in"], json!([8, 0]));
    assert_eq!(found["lost_and_won"], json!([3, 0]));
    assert_eq!(found["criteria"][0]["finding"], "no_evidence");

    assert_eq!(
        compare(&["high.jsonl", "low.jsonl", "--max-regression", "50"]).status.code(),
        Some(0)
    );
    let failed = compare(&["high.jsonl", "low.jsonl", "--max-regression", "49.9"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(stderr(&failed).contains("falls by 50.00 points"), "{}", stderr(&failed));
    let failed = compare(&["low.jsonl", "mixed.jsonl", "--min-coverage", "0.8"]);
    assert_eq!(failed.status.code(), Some(1));
}
