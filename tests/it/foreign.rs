//! Data sets of others, where they lie and in the form that they have.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{json, run, stderr, stdout};

fn picture(path: &Path, shade: u8) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    image::RgbImage::from_pixel(32, 24, image::Rgb([shade, 80, 9])).save(path).unwrap();
}

fn write(path: &Path, text: impl AsRef<str>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text.as_ref()).unwrap();
}

/// What was printed, whatever the exit code.
fn printed(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// ImagenHub's layout with two tasks, two editors in the first and one in the second, three raters
/// and a judge. One answer has no score, and one rating is missing.
fn imagenhub() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join("set").join(name);
    let ids = ["a_1.png", "a_2.png", "b_1.png", "c_1.png", "d_1.png"];
    for (task, editors) in [("Text_IE", &["Pix", "Magic"][..]), ("Mask_IE", &["Glide"])] {
        let records: Vec<String> = ids
            .iter()
            .map(|id| format!("{:?}: {{\"instruction\": \"What about {id}?\"}}", id))
            .collect();
        write(
            &at(&format!("{task}/dataset_lookup.json")),
            format!("{{\n{}\n}}", records.join(",\n")),
        );
        for (place, id) in ids.iter().enumerate() {
            picture(&at(&format!("{task}/input/{id}")), place as u8);
            picture(&at(&format!("{task}/GroundTruth/{id}")), 40 + place as u8);
            for editor in editors {
                picture(&at(&format!("{task}/{editor}/{id}")), 90 + place as u8);
            }
        }
        for rater in 1..=3 {
            let mut table = format!("uid\t{}\n", editors.join("\t"));
            for (place, id) in ids.iter().enumerate() {
                let sc = ["0", "0.5", "1", "0.5", "1"][(place + rater / 3) % 5];
                let cell = |_: &&str| match (rater, place) {
                    (2, 4) => String::new(),
                    _ => format!("[{sc}, {}]", if place % 2 == 0 { "1" } else { "0.5" }),
                };
                let cells: Vec<String> = editors.iter().map(cell).collect();
                table.push_str(&format!("{id}\t{}\n", cells.join("\t")));
            }
            write(&at(&format!("human/{task}/{task}_rater{rater}.tsv")), table);
        }
        for editor in editors {
            for criterion in ["SC", "PQ"] {
                let mut answers: Value = ids
                    .iter()
                    .zip([[2, 9], [6, 5], [8, 9], [4, 7], [10, 9]])
                    .map(|(id, score)| {
                        ((*id).to_owned(), json!({"score": score, "reasoning": "…"}))
                    })
                    .collect::<serde_json::Map<_, _>>()
                    .into();
                answers["d_1.png"]["score"] = json!([]);
                write(
                    &at(&format!("answers/gpt/{task}/{editor}/{criterion}.json")),
                    answers.to_string(),
                );
            }
        }
    }
    picture(&at("Mask_IE/mask/a_1.png"), 255);
    folder
}

#[test]
fn imagenhub_comes_with_its_raters_and_its_judge() {
    let folder = imagenhub();
    let args = ["dataset", "convert", "set", "--preset", "imagenhub", "--out", "out"];
    let output = run(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let cases = lines(&folder.path().join("out/cases.jsonl"));
    assert_eq!(cases.len(), 10);
    let masked = cases.iter().find(|case| case["id"] == "Mask_IE/a_1.png").unwrap();
    assert_eq!(masked["instruction"], "What about a_1.png?");
    assert!(masked["pictures"]["mask"].is_string() && masked["reference"].is_string());
    assert_eq!(masked["edits"].as_object().unwrap().keys().collect::<Vec<_>>(), ["Glide"]);
    assert!(cases.iter().filter(|case| case["pictures"]["mask"].is_string()).count() == 1);
    // Three raters, three editors, five cases, two criteria; one rater left out one case.
    let labels = lines(&folder.path().join("out/labels.jsonl"));
    assert_eq!(labels.len(), 3 * 3 * 5 * 2 - 3 * 2);
    let answers = lines(&folder.path().join("out/judges/gpt.jsonl"));
    assert_eq!(answers.len(), 3 * 2 * 5);
    let of =
        |case: &str| answers.iter().find(|line| line["case"] == case && line["criterion"] == "SC");
    assert_eq!(of("Text_IE/a_2.png").unwrap()["score"], 5.0);
    let unreadable = of("Text_IE/d_1.png").unwrap();
    assert_eq!((&unreadable["outcome"], &unreadable["score"]), (&json!("abstained"), &Value::Null));
    assert_eq!(run(folder.path(), &["dataset", "check", "out"]).status.code(), Some(0));
    // Nothing is written over.
    assert_eq!(run(folder.path(), &args).status.code(), Some(2));

    let found = json(&run(
        folder.path(),
        &["agree", "out/judges/gpt.jsonl", "--labels", "out/labels.jsonl", "--json"],
    ));
    let cells = found["judges"][0]["cells"].as_array().unwrap();
    let cell = |criterion: &str, editor: Value| {
        cells.iter().find(|cell| {
            cell["criterion"] == criterion && cell["editor"] == editor && cell["type"].is_null()
        })
    };
    let number = |value: &Value| value["value"].as_f64().or(value.as_f64());
    let pix = cell("SC", json!("Pix")).unwrap();
    assert_eq!((&pix["coverage"]["answered"], &pix["coverage"]["all"]), (&json!(4), &json!(5)));
    // min(SC) 2, 5, 8, 4 beside the means of 0 0 .5, .5 .5 1, 1 1 .5, .5 .5 1: ranks 1 3 4 2 and 1 2.5 4 2.5.
    let expected = 4.5 / (5.0f64 * 4.5).sqrt();
    assert!((number(&pix["agreement"]["spearman"]).unwrap() - expected).abs() < 1e-12, "{pix}");
    // Ten points beside one: no distance can be told, and nobody guesses one.
    assert!(pix["agreement"]["mae"].is_null() && pix["agreement"]["exact"].is_null());
    assert!(pix["agreement"]["undefined"]["mae"].as_str().unwrap().contains("another scale"));
    assert!(number(&pix["ceiling"]).is_some());
    assert_eq!(cell("SC", Value::Null).unwrap()["coverage"]["all"], 15);
    let people = found["among_annotators"].as_array().unwrap();
    let people =
        people.iter().find(|one| one["editor"] == "Pix" && one["criterion"] == "SC").unwrap();
    assert_eq!(people["pairs"].as_array().unwrap().len(), 3);
    assert_eq!(people["pairs"][0]["n"], 4);
}

#[test]
fn a_layout_is_recognised_and_said() {
    let folder = imagenhub();
    let output = stdout(&run(folder.path(), &["dataset", "check", "set"]));
    assert!(
        output.contains("recognised as imagenhub") && output.contains("15 edits by 3"),
        "{output}"
    );
    let listed = stdout(&run(folder.path(), &["dataset", "presets"]));
    for name in ["imagenhub", "mmrb2", "gedit-bench", "kris-bench", "humanedit", "dlebench"] {
        assert!(listed.contains(name), "{listed}");
    }
    let output = run(folder.path(), &["dataset", "check", "set", "--preset", "nobody"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("imagenhub"), "{}", stderr(&output));
}

#[test]
fn votes_come_along_and_contradictions_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["s.png", "a.png", "b.png"] {
        picture(&at(&format!("images/{name}")), name.len() as u8);
    }
    let pair = |id: &str, first: &str, second: &str, annotations: [u8; 3]| {
        json!({"id": id, "prompt_content": [["text", "do"], ["image", "s.png"]],
            "response_a": {"model_name": "m1", "response_content": [["image", first]]},
            "response_b": {"model_name": "m2", "response_content": [["image", second]]},
            "chosen": "A", "human_annotations": annotations})
    };
    let pairs = [pair("1", "a.png", "b.png", [6, 4, 1]), pair("2", "b.png", "a.png", [5, 1, 6])];
    write(&at("edit.json"), json!({"n": 2, "pairs": pairs}).to_string());
    let output = run(
        folder.path(),
        &[
            "dataset",
            "convert",
            "edit.json",
            "--preset",
            "mmrb2",
            "--root",
            "images",
            "--out",
            "out",
        ],
    );
    // The first annotator prefers a picture in one record and the other in the second.
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let told = printed(&output);
    assert!(
        told.contains("record 2") && told.contains("record 1") && told.contains("another vote"),
        "{told}"
    );
    let votes = lines(&at("out/votes.jsonl"));
    let of: Vec<&str> = votes.iter().map(|vote| vote["vote"].as_str().unwrap()).collect();
    assert_eq!(of, ["a", "a", "b", "a", "b", "a"]);
    assert_eq!((&votes[0]["a"], &votes[0]["rating"]), (&json!("m1"), &json!(6.0)));
    assert_eq!(lines(&at("out/cases.jsonl"))[0]["edits"].as_object().unwrap().len(), 2);
}

#[test]
fn data_is_read_where_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("store/one/x.png"), 1);
    picture(&at("other/y.png"), 2);
    for (editor, id) in [("e1", "x"), ("e1", "y"), ("e2", "x")] {
        picture(&at(&format!("out/{editor}/{id}_7.png")), 9);
    }
    let absolute = at("other/y.png").to_string_lossy().into_owned();
    let cases = [
        json!({"id": "x", "img": "one/x.png", "prompt": "do"}),
        json!({"id": "y", "img": absolute, "prompt": "do"}),
    ];
    write(&at("list.json"), json!(cases).to_string());
    let check = |more: &[&str]| {
        run(folder.path(), &[&["dataset", "check", "list.json", "--json"], more].concat())
    };
    let edits = ["--edits", "out/{editor}/{id}_*.png"];
    let refused = check(&edits);
    assert_eq!(refused.status.code(), Some(1));
    assert!(printed(&refused).contains("--root"), "{}", printed(&refused));
    let found = check(&[&edits[..], &["--root", "store", "--root", "other"]].concat());
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!((&found["errors"], &found["edits"]), (&json!(0), &json!(4)), "{found:#}");
    let e2 = &found["editors"][1];
    assert_eq!((&e2["editor"], &e2["found"], &e2["missing"]), (&json!("e2"), &json!(1), &json!(1)));
    let none = check(&["--edits", "out/{editor}/{id}.jpg", "--root", "store", "--root", "other"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("no file fits"), "{}", stderr(&none));
    // Two files for one case, and one that nobody can tell.
    picture(&at("out/e2/x_8.png"), 9);
    let found = check(&[&edits[..], &["--root", "store", "--root", "other"]].concat());
    assert!(printed(&found).contains("several files could be it"), "{}", printed(&found));
}

#[test]
fn numbers_of_people_on_their_own_scale_are_compared_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["Localization Failure", "Wrong Action", "Over Modification"];
    let mut results = String::new();
    let mut labels = String::from("case,editor,criterion,annotator,label\n");
    for (place, name) in names.iter().cycle().take(9).enumerate() {
        results.push_str(&format!(
            "{}\n",
            json!({"case": place.to_string(), "editor": "e", "criterion": "if", "label": name})
        ));
        labels.push_str(&format!("{place},e,IF,ann,{}\n", [1.5, 3.0, 6.0][place % 3]));
    }
    write(&folder.path().join("results.jsonl"), results);
    write(&folder.path().join("labels.csv"), labels);
    let found =
        json(&run(folder.path(), &["agree", "results.jsonl", "--labels", "labels.csv", "--json"]));
    let cell = &found["judges"][0]["cells"][0];
    assert_eq!(cell["agreement"]["spearman"]["value"], 1.0, "{cell}");
    assert!(cell["agreement"]["kappa_quadratic"].is_null(), "{cell}");
    assert_eq!(found["judges"][0]["confusion"], json!([]));
}

#[test]
fn a_page_shows_where_judge_and_people_disagree() {
    let folder = imagenhub();
    run(folder.path(), &["dataset", "convert", "set", "--out", "out"]);
    // Words of a judge are text on a page.
    let judge = folder.path().join("out/judges/gpt.jsonl");
    let text = fs::read_to_string(&judge).unwrap();
    fs::write(&judge, text.replace('…', "<script>alert(1)</script>")).unwrap();
    let args =
        ["agree", "out/judges/gpt.jsonl", "--labels", "out/labels.jsonl", "--out", "page.html"];
    let output = run(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"));
    assert!(page.contains("Confusion, SC") && page.contains("worst first"));
    let link = page.split("src=\"").nth(1).unwrap().split('"').next().unwrap();
    let link = link.replace("&#x2f;", "/");
    assert!(folder.path().join(&link).is_file(), "{link}");
}

#[test]
fn an_audit_says_no_where_a_number_hides_something() {
    let folder = tempfile::tempdir().unwrap();
    let clean = json!({"a": {"score": [8, 7], "reasoning": "good"}, "b": {"score": [0, 9], "reasoning": "bad"}});
    write(&folder.path().join("clean.json"), clean.to_string());
    assert_eq!(run(folder.path(), &["audit", "clean.json"]).status.code(), Some(0));
    let mut planted = clean;
    planted["c"] = json!({"score": [0, 0], "reasoning": ""});
    write(&folder.path().join("planted.json"), planted.to_string());
    let output = run(folder.path(), &["audit", "planted.json", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["findings"][0]["kind"], "failure_scored_lowest");
    assert_eq!(
        (&found["trusted"], &found["metrics"][0]["coverage"]["answered"]),
        (&json!(false), &json!(2))
    );
    let output = run(folder.path(), &["audit", "none.json"]);
    assert_eq!(output.status.code(), Some(2));
    // Which items there should be, by a data set.
    picture(&folder.path().join("s.png"), 1);
    let cases: String = ["a", "b", "z"]
        .iter()
        .map(|id| format!("{}\n", json!({"id": id, "source": "s.png", "instruction": "do"})))
        .collect();
    write(&folder.path().join("cases.jsonl"), cases);
    let output = run(folder.path(), &["audit", "clean.json", "--expect", "cases.jsonl", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["findings"][0]["kind"], "missing_item");
    assert_eq!(found["metrics"][0]["coverage"]["all"], 3);
}
