//! `deeplook report`: numbers that can be checked by hand, and the paper's own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{json as parsed, run, stderr, stdout};

const EDITORS: [&str; 10] = [
    "Gemini-3-Pro",
    "GPT-Image-1",
    "OmniGen2",
    "Bagel-Think",
    "UniREdit-Bagel",
    "MagicBrush",
    "Qwen-Edit",
    "UniWorld-V1",
    "UniWorld-V2",
    "Step1X-Edit",
];

const TYPES: [(&str, usize); 7] = [
    ("Change Material", 84),
    ("Change Color", 699),
    ("Change OCR", 455),
    ("Change Shape", 23),
    ("Removal Object", 577),
    ("Replace Object", 47),
    ("Change Count", 24),
];

const LABELS: [(&str, [&str; 4]); 2] = [
    ("if", ["Localization Failure", "Wrong Action", "Over Modification", "Flawless Execution"]),
    ("vc", ["Scene Collapse", "Multiple Anomalies", "Single Anomaly", "Perfect Consistency"]),
];

/// Table 4 of the paper, in hundredths: for each criterion the seven types and their average, and in
/// each row the editors.
const TABLE_4: [[[u32; 10]; 8]; 2] = [
    [
        [5992, 5407, 3611, 5119, 5159, 1270, 2480, 1606, 5198, 5278],
        [4921, 4017, 2237, 3982, 3997, 1462, 1884, 1070, 4527, 4274],
        [5484, 3973, 1473, 2234, 2256, 604, 809, 1545, 4095, 4769],
        [5507, 5362, 2174, 4928, 4058, 2029, 725, 1014, 4638, 4493],
        [6026, 6568, 3782, 4309, 6001, 2680, 4076, 2120, 5632, 5600],
        [4823, 4593, 3050, 3759, 3901, 2553, 1277, 1419, 4565, 4610],
        [1528, 1806, 694, 556, 1250, 139, 667, 911, 972, 833],
        [4897, 4532, 2432, 3555, 3803, 1534, 1703, 1384, 4232, 4265],
    ],
    [
        [8810, 3454, 5794, 9087, 3173, 3577, 7302, 6468, 6349, 7222],
        [8476, 3557, 4479, 8465, 3897, 3401, 7020, 5067, 6514, 7311],
        [7823, 3482, 6313, 7658, 3682, 3073, 6549, 4185, 5463, 7109],
        [8261, 3913, 6087, 8621, 4545, 3768, 5942, 6087, 6087, 7681],
        [8725, 3536, 6751, 9149, 3728, 3001, 7068, 4979, 4873, 7180],
        [8149, 3481, 6596, 8913, 3623, 3333, 6950, 5580, 6950, 6879],
        [7246, 3194, 5833, 8611, 3485, 1528, 5694, 3333, 3856, 4306],
        [8213, 3517, 5979, 8643, 3733, 3097, 6646, 5100, 5727, 6813],
    ],
];

/// How many verdicts, and how many steps above the lowest label they are together, so that their
/// mean is printed as `score`; the largest such number of at most `cases`.
fn solution(score: u32, cases: usize) -> Option<(usize, usize)> {
    (1..=cases).rev().find_map(|verdicts| {
        let printed = |steps: usize| {
            let hundredths = 10_000.0 * steps as f64 / (3 * verdicts) as f64;
            (hundredths + 0.5).floor() as u32
        };
        let near = score as usize * 3 * verdicts / 10_000;
        (near..=near + 1).find(|steps| printed(*steps) == score).map(|steps| (verdicts, steps))
    })
}

/// The labels of one cell: as even as the sum of their steps allows, and abstentions for the rest.
fn write_cell(
    lines: &mut String,
    cell: [&str; 3],
    labels: &[&str; 4],
    cases: usize,
    sum: (usize, usize),
) {
    let [editor, criterion, kind] = cell;
    let (verdicts, steps) = sum;
    for case in 0..cases {
        let id = format!("{kind} {case}");
        let mut line = json!({"case": id, "editor": editor, "criterion": criterion, "type": kind});
        if case < verdicts {
            // The first `steps % verdicts` cases get one step more.
            let step = steps / verdicts + usize::from(case < steps % verdicts);
            line["label"] = labels[step].into();
        } else {
            line["outcome"] = "abstained".into();
        }
        writeln!(lines, "{line}").unwrap();
    }
}

#[test]
fn labels_with_the_counts_of_table_4_print_table_4() {
    let mut lines = String::new();
    let mut solved = BTreeMap::new();
    for ((criterion, labels), rows) in LABELS.iter().zip(&TABLE_4) {
        for ((kind, cases), row) in TYPES.iter().zip(rows) {
            for (editor, &score) in EDITORS.iter().zip(row) {
                let Some(sum) = solution(score, *cases) else { continue };
                write_cell(&mut lines, [editor, criterion, kind], labels, *cases, sum);
                solved.insert((*editor, *criterion, *kind), sum.0);
            }
        }
    }
    // A few cells of the paper have no whole-number solution, whatever was left out.
    assert_eq!(solved.len(), 135);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("table4.jsonl"), lines).unwrap();
    let printed = stdout(&run(folder.path(), &["report", "table4.jsonl", "--format", "csv"]));
    let mut rows: BTreeMap<(String, String, String), csv::StringRecord> = BTreeMap::new();
    let mut reader = csv::Reader::from_reader(printed.as_bytes());
    let place = |head: &csv::StringRecord, name| head.iter().position(|h| h == name).unwrap();
    let head = reader.headers().unwrap().clone();
    let [n, verdicts, mean] = ["n", "verdicts", "mean"].map(|name| place(&head, name));
    let [editor, criterion, kind] = ["editor", "criterion", "type"].map(|name| place(&head, name));
    for row in reader.records() {
        let row = row.unwrap();
        let key = (row[editor].to_owned(), row[criterion].to_owned(), row[kind].to_owned());
        assert!(rows.insert(key, row).is_none());
    }
    let row = |editor: &str, criterion: &str, kind: &str| {
        &rows[&(editor.to_owned(), criterion.to_owned(), kind.to_owned())]
    };
    let in_paper = |score: u32| format!("{}.{:02}", score / 100, score % 100);
    let mut averages = 0;
    for ((criterion, _), table) in LABELS.iter().zip(&TABLE_4) {
        for (e, editor) in EDITORS.iter().enumerate() {
            for ((kind, cases), scores) in TYPES.iter().zip(table) {
                let row = row(editor, criterion, kind);
                match solved.get(&(*editor, *criterion, *kind)) {
                    Some(count) => {
                        assert_eq!(row[mean], in_paper(scores[e]), "{editor} {criterion} {kind}");
                        assert_eq!(row[n], cases.to_string());
                        assert_eq!(row[verdicts], count.to_string());
                    }
                    None => assert_eq!(&row[mean], ""),
                }
            }
            if TYPES.iter().all(|(kind, _)| solved.contains_key(&(*editor, *criterion, *kind))) {
                let average = row(editor, criterion, "Average");
                assert_eq!(average[mean], in_paper(table[7][e]), "{editor} {criterion}");
                averages += 1;
            }
        }
    }
    assert_eq!(averages, 16);
    // Table 1: the mean of both criteria.
    for (editor, score) in
        [("Gemini-3-Pro", "74.01"), ("GPT-Image-1", "44.31"), ("OmniGen2", "47.03")]
    {
        assert_eq!(&row(editor, "overall", "Change Material")[mean], score);
    }
    assert_eq!(&row("GPT-Image-1", "overall", "Average")[mean], "40.25");
}

/// A folder with these lines in `results.jsonl`.
fn results(lines: &[Value]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.path().join("results.jsonl"), text).unwrap();
    folder
}

fn report(folder: &Path) -> Value {
    parsed(&run(folder, &["report", "results.jsonl", "--format", "json"]))
}

fn line(case: &str, criterion: &str, label: &str) -> Value {
    json!({"case": case, "editor": "e", "criterion": criterion, "type": "Change Color", "label": label})
}

#[test]
fn what_has_no_verdict_is_in_no_mean_but_in_the_bounds() {
    let mut lines = vec![
        line("a", "if", "Flawless Execution"),
        line("b", "if", "Localization Failure"),
        line("c", "if", "Wrong Action"),
    ];
    for (case, outcome) in [("d", "failed"), ("e", "abstained"), ("f", "missing")] {
        lines.push(json!({"case": case, "editor": "e", "criterion": "if", "type": "Change Color",
            "outcome": outcome, "reason": format!("{outcome} on purpose")}));
    }
    // A trace without an end.
    lines.push(json!({"case": "g", "editor": "e", "criterion": "if", "type": "Change Color", "trace": "judgements/g"}));
    let folder = results(&lines);
    let printed = report(folder.path());
    let group = &printed["groups"][0];
    let score = &group["editors"][0]["criteria"][0]["types"][0]["score"];
    assert_eq!(score["n"], 7);
    assert_eq!(score["verdicts"], 3);
    assert_eq!(score["score"], 44.44);
    assert_eq!(score["worst"], 19.05);
    assert_eq!(score["best"], 76.19);
    assert!((score["coverage"].as_f64().unwrap() - 3.0 / 7.0).abs() < 1e-12);
    assert!(score["interval"]["low"].as_f64().unwrap() < 44.44);
    let counts = &group["outcomes"][0]["counts"];
    let named: Vec<(&str, u64)> = counts
        .as_array()
        .unwrap()
        .iter()
        .map(|count| (count["name"].as_str().unwrap(), count["count"].as_u64().unwrap()))
        .collect();
    let expected =
        [("verdict", 3), ("abstained", 1), ("failed", 1), ("missing", 1), ("interrupted", 1)];
    assert_eq!(named, expected);
    assert_eq!(group["reasons"].as_array().unwrap().len(), 4);
    // One criterion is no overall score.
    assert_eq!(group["editors"][0]["overall"]["score"], Value::Null);

    let gate = |floor| run(folder.path(), &["report", "results.jsonl", "--min-coverage", floor]);
    assert_eq!(gate("0.42").status.code(), Some(0));
    let below = gate("50%");
    assert_eq!(below.status.code(), Some(1));
    assert!(stderr(&below).contains("3 of 7 judgements have a verdict"), "{}", stderr(&below));
    assert_eq!(gate("50").status.code(), Some(2));
}

#[test]
fn nothing_but_failures_is_no_score_and_no_zero() {
    let folder = results(&[
        json!({"case": "a", "editor": "e", "criterion": "vc", "type": "t", "outcome": "failed", "reason": "503"}),
    ]);
    let printed = report(folder.path());
    let average = &printed["groups"][0]["editors"][0]["criteria"][0]["average"];
    assert_eq!(average["score"], Value::Null);
    assert_eq!(average["types"], json!({"scored": 0, "of": 1}));
    assert_eq!((&average["worst"], &average["best"]), (&json!(0.0), &json!(100.0)));
    for format in ["md", "html", "csv", "latex"] {
        let text = stdout(&run(folder.path(), &["report", "results.jsonl", "--format", format]));
        assert!(!text.contains("NaN"), "{format}");
    }
}

#[test]
fn repetitions_are_averaged_within_their_case_first() {
    let mut lines = Vec::new();
    for (repeat, label) in ["Flawless Execution", "Localization Failure"].iter().enumerate() {
        let mut one = line("a", "if", label);
        one["repeat"] = repeat.into();
        lines.push(one);
    }
    lines.push(line("b", "if", "Flawless Execution"));
    lines.push(
        json!({"case": "b", "editor": "e", "criterion": "if", "type": "Change Color", "repeat": 1,
        "outcome": "failed", "reason": "x"}),
    );
    let printed = report(results(&lines).path());
    let score = &printed["groups"][0]["editors"][0]["criteria"][0]["weighted"];
    assert_eq!(score["cases"], 2);
    assert_eq!(score["n"], 4);
    assert_eq!(score["score"], 75.0);
    assert_eq!((&score["worst"], &score["best"]), (&json!(50.0), &json!(75.0)));
}

#[test]
fn modes_models_prompts_and_runs_are_never_averaged_together() {
    let mut lines = Vec::new();
    for (mode, label) in [("tool", "Flawless Execution"), ("plain", "Localization Failure")] {
        let mut one = line("a", "if", label);
        one["mode"] = mode.into();
        lines.push(one);
    }
    let folder = results(&lines);
    fs::copy(folder.path().join("results.jsonl"), folder.path().join("again.jsonl")).unwrap();
    let args = ["report", "results.jsonl", "again.jsonl", "--format", "json"];
    let printed = parsed(&run(folder.path(), &args));
    let groups = printed["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 4);
    let mut scores: Vec<f64> = groups
        .iter()
        .map(|group| group["editors"][0]["criteria"][0]["average"]["score"].as_f64().unwrap())
        .collect();
    scores.sort_by(f64::total_cmp);
    assert_eq!(scores, [0.0, 0.0, 100.0, 100.0]);
    let text = stdout(&run(folder.path(), &["report", "results.jsonl", "again.jsonl"]));
    assert!(text.contains("## Side by side"), "{text}");
}

#[test]
fn types_stand_in_the_papers_order_and_a_type_without_verdicts_is_said() {
    let mut lines = Vec::new();
    for kind in ["Zebra", "Change Count", "Apple", "Change Material"] {
        let mut one = line("a", "if", "Over Modification");
        one["case"] = kind.into();
        one["type"] = kind.into();
        lines.push(one);
    }
    let mut none = line("n", "if", "Over Modification");
    none["type"] = Value::Null;
    lines.push(none);
    lines.push(json!({"case": "x", "editor": "e", "criterion": "if", "type": "Change OCR", "outcome": "missing", "reason": "no file"}));
    let printed = report(results(&lines).path());
    let group = &printed["groups"][0];
    assert_eq!(
        group["types"],
        json!(["Change Material", "Change OCR", "Change Count", "Apple", "Zebra", "(no type)"])
    );
    let average = &group["editors"][0]["criteria"][0]["average"];
    assert_eq!(average["types"], json!({"scored": 5, "of": 6}));
    assert_eq!(average["score"], 66.67);
    assert_eq!(average["best"], 72.23);
    assert!(group["notes"].to_string().contains("5 of 6 types"), "{}", group["notes"]);
}

#[test]
fn names_ranks_and_spellings_from_elsewhere_are_understood() {
    let folder = results(&[
        json!({"case": "a", "editor": "e", "criterion": "IF", "type": "t", "label": 4}),
        json!({"case": "b", "editor": "e", "criterion": "Instruction Following", "type": "t", "label": "wrong action"}),
        json!({"case": "c", "criterion": "beauty", "label": "pretty", "score": 80}),
    ]);
    let printed = report(folder.path());
    let group = &printed["groups"][0];
    let ids: Vec<&str> =
        group["criteria"].as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["if", "beauty"]);
    let editor = group["editors"].as_array().unwrap().iter().find(|e| e["editor"] == "e").unwrap();
    assert_eq!(editor["criteria"][0]["weighted"]["score"], 66.67);
}

#[test]
fn lines_that_cannot_be_counted_are_named() {
    let refused = |lines: &[Value], expected: &[&str]| {
        let folder = results(lines);
        let output = run(folder.path(), &["report", "results.jsonl", "--out", "report.html"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        for text in expected {
            assert!(stderr(&output).contains(text), "{}", stderr(&output));
        }
        assert!(!folder.path().join("report.html").exists());
    };
    let good = line("a", "if", "Wrong Action");
    refused(&[], &["no judgements"]);
    refused(
        &[good.clone(), line("b", "if", "Great")],
        &["line 2", "\"Great\"", "Over Modification"],
    );
    refused(&[line("a", "beauty", "Great")], &["line 1", "score"]);
    refused(&[good.clone(), good.clone()], &["line 2", "line 1", "repeat"]);
    let mut failed = good.clone();
    failed["outcome"] = "failed".into();
    refused(&[failed], &["line 1", "only a verdict"]);
    refused(&[json!({"case": "a", "criterion": "if", "score": 50})], &["line 1", "label"]);
    refused(&[json!({"case": "a", "criterion": "if", "label": [1]})], &["line 1", "label"]);

    let folder = results(&[good]);
    let output = run(folder.path(), &["report", "results.jsonl", "--out", "report"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(".html"), "{}", stderr(&output));
    let output = run(folder.path(), &["report", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
}

/// A run with everything that a line can have, and names that try to be markup.
fn hostile() -> TempDir {
    let editors = ["<script>alert(1)</script>", "a|b*_`", "\\end{table}$%&#{", "good"];
    let mut lines = Vec::new();
    for (e, editor) in editors.iter().enumerate() {
        for i in 0..12 {
            for (criterion, labels) in &LABELS {
                let case = format!("\"><img src=x onerror=alert({i})>");
                let mut one = json!({
                    "case": case, "editor": editor, "criterion": criterion,
                    "type": TYPES[i % 4].0, "label": labels[(i * 7 + e) % 4],
                    "mode": "tool", "model": "m<b>", "prompts": "p/v1@0", "turns": 3,
                    "tools": {"zoom_in": 2, "</svg>": 1}, "looked_at_target": i % 3 > 0, "evidence": i % 3,
                    "target_scale": [0.01 * (i + 1) as f64, 0.02], "cost": 0.01, "seconds": 2.5,
                    "usage": {"prompt_tokens": 1234, "cached_tokens": null, "completion_tokens": 10},
                    "trace": if i == 0 { "../../etc".to_owned() } else { format!("judgements/{e}-{i}-{criterion}") },
                });
                one["case"] = format!("{}{i}", one["case"].as_str().unwrap()).into();
                if i == 11 {
                    one["label"] = Value::Null;
                    one["outcome"] = "failed".into();
                    one["reason"] = "<a href=\"javascript:alert(1)\">503</a>\n| x |".into();
                }
                lines.push(one);
            }
        }
    }
    results(&lines)
}

#[test]
fn names_stay_names_in_every_format() {
    let folder = hostile();
    let text =
        |format| stdout(&run(folder.path(), &["report", "results.jsonl", "--format", format]));
    let page = text("html");
    for markup in
        ["<script", "<img", "<b>m", "href=\"javascript", "href=\"../../etc", "http:", "https:"]
    {
        assert!(!page.contains(markup), "{markup}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("href=\"./judgements/3-1-if/\""));
    // Every number leads to a list that is there.
    let ids: Vec<&str> =
        page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let targets: Vec<&str> =
        page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(targets.len() > 100);
    for target in targets {
        assert!(ids.contains(&target), "{target}");
    }
    let markdown = text("md");
    assert!(!markdown.contains("<script") && !markdown.contains("<a href"));
    // All rows of a table have as many cells as its head.
    for table in markdown.split("\n\n").filter(|part| part.starts_with("| ")) {
        let cells = |row: &str| row.replace("\\|", "").matches('|').count();
        let mut rows = table.lines();
        let head = cells(rows.next().unwrap());
        assert!(rows.all(|row| cells(row) == head), "{table}");
    }
    let latex = text("latex");
    assert!(latex.contains("\\textbackslash{}end\\{table\\}\\$\\%\\&\\#\\{"), "{latex}");
    assert_eq!(latex.matches("\\begin{table}").count(), latex.matches("\\end{table}").count());
    // CSV and JSON keep them as they are.
    assert!(text("csv").contains("\\end{table}$%&#{"));
    assert!(text("json").contains("<script>alert(1)</script>"));
}

#[test]
fn the_same_report_twice_is_the_same_file() {
    let folder = hostile();
    let text = |format, file| stdout(&run(folder.path(), &["report", file, "--format", format]));
    for format in ["html", "md", "csv", "json", "latex"] {
        assert_eq!(text(format, "results.jsonl"), text(format, "results.jsonl"), "{format}");
    }
    // Judgements end in any order; the numbers do not know.
    let lines = fs::read_to_string(folder.path().join("results.jsonl")).unwrap();
    let mut backwards: Vec<&str> = lines.lines().collect();
    backwards.reverse();
    fs::create_dir(folder.path().join("other")).unwrap();
    let before = text("json", "results.jsonl");
    fs::write(folder.path().join("results.jsonl"), backwards.join("\n")).unwrap();
    assert_eq!(before, text("json", "results.jsonl"));
}

#[test]
fn what_the_judge_did_is_counted_where_it_is_known() {
    let printed = report(hostile().path());
    let behaviour = &printed["groups"][0]["behaviour"][0];
    assert_eq!(behaviour["judgements"], 48);
    assert_eq!(behaviour["turns"]["mean"], 3.0);
    assert_eq!(behaviour["tool_calls"]["sum"], 144.0);
    assert_eq!(behaviour["looked_at_target"]["count"], 32);
    assert_eq!(behaviour["looked_at_target"]["of"], 48);
    // Of the eleven verdicts of each editor, four name nothing.
    assert_eq!(behaviour["without_evidence"]["count"], 16);
    assert_eq!(behaviour["without_evidence"]["of"], 44);
    assert_eq!(behaviour["cached_tokens"]["sum"], Value::Null);
    let scale = &printed["groups"][0]["scale"][0];
    assert_eq!(scale["cases"], 11);
    assert_eq!(scale["window"]["means"].as_array().unwrap().len(), 2);
    // Every target is as high as the others.
    assert_eq!(scale["height"]["r"], Value::Null);
    assert_eq!(scale["height"]["undefined"], "one side is constant");
    assert!(scale["width"]["p"].as_f64().unwrap() <= 1.0);
}
