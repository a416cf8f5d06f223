//! A pack of one's own, whose criteria are nothing like the built-in ones: a yes or no for each
//! question, four keys with a geometric mean, one label (`tests/toy`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::command::{deeplook, json as printed, stdout};
use super::judging::files;
use super::runs::lines;
use super::wire::server::{Server, Step, completion};

fn toy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/toy")
}

/// Two cases with questions about places: in the first all answers of [`policy`] are right, in the
/// second one is wrong.
fn data() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    fs::create_dir(&set).unwrap();
    let mut text = String::new();
    for (case, task) in ["Addition", "Billiards"].into_iter().enumerate() {
        for name in ["source", "edited"] {
            let pixels = image::RgbImage::from_fn(64, 48, |x, y| {
                image::Rgb([(x * 4) as u8, (y * 5) as u8, case as u8 * 90 + name.len() as u8])
            });
            pixels.save(set.join(format!("{case}-{name}.png"))).unwrap();
        }
        let mut layer = image::RgbaImage::new(64, 48);
        layer.put_pixel(5, 5, image::Rgba([255, 0, 0, 255]));
        layer.save(set.join(format!("{case}-layer.png"))).unwrap();
        let ask = |text: &str, expected: &str, x: u32| json!({ "text": text, "expected": expected, "region": [x, 8, x + 16, 24] });
        let line = json!({
            "id": format!("c{case}"), "source": format!("{case}-source.png"), "editor": "one",
            "edited": format!("{case}-edited.png"), "instruction": format!("Add ball number {case}"),
            "boxes": [[4, 4, 20, 20]], "pictures": { "layer": format!("{case}-layer.png") },
            "task": task, "law": "Reflection",
            "questions": [
                ask("Is the ball red?", "Yes", 8),
                ask("Is the cup gone?", if case == 0 { "no" } else { "Yes" }, 40),
            ],
        });
        text.push_str(&format!("{line}\n"));
    }
    fs::write(set.join("cases.jsonl"), text).unwrap();
    folder
}

/// A model that answers from the request alone. About the quality it first forgets a key.
fn policy(request: &Value) -> Value {
    let text = request["messages"].to_string();
    let content = if text.contains("Style_Match is about") {
        let second = text.contains("number 1");
        match (text.contains("could not be used"), second) {
            (false, _) => "Well. ```json\n{\"style match\": {\"reason\": \"alike\", \"score\": 1}, \"Seams\": 1}\n```",
            (true, false) => "{\"Style-Match\": 1, \"seams\": \"1\", \"LIGHT\": \"Wrong\", \"Shadow\": 1}",
            (true, true) => "<Start Final Answer>{\"Style_Match\": 1, \"Seams\": 0, \"Light\": \"N/A\", \"Shadow\": 1}</Start Final Answer>",
        }
        .to_owned()
    } else if text.contains("The question:") {
        let yes = text.contains("Is the ball red?");
        format!("<Start Final Answer>{}</Start Final Answer>", if yes { "Yes." } else { "**no**" })
    } else {
        "It is there. <Start Final Answer>Table Changed</Start Final Answer>".to_owned()
    };
    completion(&json!({ "role": "assistant", "content": content }), "stop")
}

fn eval(folder: &Path, server: &Server, more: &[&str]) -> Output {
    let mut command = deeplook(folder);
    command.args(["eval", "set", "--mode", "plain", "--model", "some-model"]);
    command.args(["--run", "run", "--base-url", &server.base_url, "--prompts"]).arg(toy());
    command.args(more).output().unwrap()
}

fn line<'a>(
    all: &'a std::collections::BTreeMap<String, Value>,
    case: &str,
    criterion: &str,
) -> &'a Value {
    let found = all.values().find(|line| line["case"] == case && line["criterion"] == criterion);
    found.unwrap_or_else(|| panic!("no line for {case}, {criterion}"))
}

#[test]
fn questions_have_parts_and_expected_answers_that_no_model_sees() {
    let folder = data();
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&eval(folder.path(), &server, &["--criterion", "qa"]));
    let all = lines(&folder.path().join("run"));
    let first = line(&all, "c0", "qa");
    assert_eq!((&first["score"], &first["outcome"]), (&json!(100.0), &json!("verdict")));
    let second = line(&all, "c1", "qa");
    assert_eq!((&second["score"], &second["label"]), (&json!(50.0), &Value::Null));
    assert_eq!(second["facts"]["law"], "Reflection");
    let parts = second["parts"].as_array().unwrap();
    let of = |key: &str| parts.iter().map(|part| part[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("question"), [json!("1"), json!("2")]);
    assert_eq!(of("expected"), [json!("Yes"), json!("Yes")]);
    assert_eq!(of("label"), [json!("Yes"), json!("No")]);
    assert_eq!(of("score"), [json!(100.0), json!(0.0)]);

    // The model got the question and the crop, and neither the instruction nor what is expected.
    let arrived = server.arrived();
    assert_eq!(arrived.len(), 4);
    for request in &arrived {
        let text = request.json().to_string();
        assert!(
            text.contains("the place in question") && !text.contains("Add ball"),
            "{text:.2000}"
        );
        assert!(!text.contains("expected"), "{text:.2000}");
    }
    let events = files(&folder.path().join("run"));
    let events: Vec<_> = events.iter().filter(|file| file.ends_with("events.jsonl")).collect();
    assert_eq!(events.len(), 2);
    for file in events {
        let text = fs::read_to_string(file).unwrap();
        assert!(!text.contains("expected") && text.contains("Is the ball red?"), "{text:.2000}");
    }
    for tools in ["recorded", "live"] {
        let replay = deeplook(folder.path()).args(["replay", "run", "--tools", tools]).output();
        stdout(&replay.unwrap());
    }
}

#[test]
fn several_keys_are_repaired_scored_and_replayed() {
    let folder = data();
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&eval(folder.path(), &server, &["--criterion", "quality"]));
    let all = lines(&folder.path().join("run"));
    let first = line(&all, "c0", "quality");
    let values = json!({"Style_Match": 1, "Seams": 1, "Light": "wrong", "Shadow": 1});
    assert_eq!(first["values"], values);
    // The light is worth a quarter, and closes the gate of the shadow.
    let expected = 10.0 * (0.25_f64 * 0.5).powf(0.25);
    assert!((first["score"].as_f64().unwrap() - expected).abs() < 1e-9, "{first}");
    assert_eq!((&first["turns"], &first["label"]), (&json!(2), &Value::Null));
    // Without seams there is nothing; what does not apply leaves the mean.
    assert_eq!(line(&all, "c1", "quality")["score"], json!(0.0));
    let replay = deeplook(folder.path()).args(["replay", "run"]).output().unwrap();
    stdout(&replay);
}

/// Always the same words.
fn stubborn(_: &Value) -> Value {
    let content = "{\"Style_Match\": 0.75, \"Seams\": 1, \"Light\": \"right\", \"Shadow\": 1}";
    completion(&json!({ "role": "assistant", "content": content }), "stop")
}

#[test]
fn a_value_that_is_not_allowed_is_never_a_number() {
    let folder = data();
    let server = Server::start(vec![Step::Reply(stubborn)]);
    eval(folder.path(), &server, &["--criterion", "quality"]);
    for line in lines(&folder.path().join("run")).values() {
        assert_eq!((&line["outcome"], &line["score"]), (&json!("abstained"), &Value::Null));
        let reason = line["reason"].as_str().unwrap();
        assert!(reason.contains("Style_Match is 0.75, and must be one of 0, 0.5, 1"), "{reason}");
    }
}

#[test]
fn one_edit_is_judged_by_keys_and_by_a_label() {
    let folder = data();
    let server = Server::start(vec![Step::Reply(policy)]);
    let judge = |criterion: &str| {
        let mut command = deeplook(folder.path());
        command.args(["judge", "set/0-source.png", "set/0-edited.png", "-i", "Add ball number 0"]);
        command.args(["--box", "4,4,20,20", "--mode", "plain", "--criterion", criterion, "--json"]);
        command.args(["--model", "some-model", "--base-url", &server.base_url, "--prompts"]);
        printed(&command.arg(toy()).output().unwrap())
    };
    let quality = &judge("quality")["judgements"][0];
    assert_eq!((&quality["values"]["Light"], &quality["label"]), (&json!("wrong"), &Value::Null));
    let kept = &judge("kept")["judgements"][0];
    assert_eq!((&kept["label"], &kept["score"]), (&json!("Table Changed"), &json!(50.0)));
}

/// A model for which the first case has seams, so that nothing else is worth asking.
fn seams(request: &Value) -> Value {
    let text = request["messages"].to_string();
    if text.contains("Style_Match is about") && text.contains("number 0") {
        let content = "{\"Style_Match\": 1, \"Seams\": 0, \"Light\": \"right\", \"Shadow\": 1}";
        return completion(&json!({ "role": "assistant", "content": content }), "stop");
    }
    policy(request)
}

#[test]
fn what_does_not_apply_is_not_asked_and_what_is_decided_is_a_score() {
    let folder = data();
    let server = Server::start(vec![Step::Reply(seams)]);
    stdout(&eval(folder.path(), &server, &["--criterion", "all"]));
    let run = folder.path().join("run");
    let all = lines(&run);
    // Two cases by two criteria, and what was kept where something was added.
    assert_eq!(all.len(), 5);
    let kept = line(&all, "c0", "kept");
    assert_eq!((&kept["outcome"], &kept["score"]), (&json!("verdict"), &json!(0.0)));
    assert_eq!((&kept["turns"], &kept["label"]), (&json!(0), &Value::Null));
    let asked = |word: &str| {
        let arrived = server.arrived();
        arrived.iter().filter(|request| request.json().to_string().contains(word)).count()
    };
    assert_eq!(asked("Table Kept"), 0, "nobody was asked");
    let events = fs::read_to_string(run.join(kept["trace"].as_str().unwrap()).join("events.jsonl"));
    let events = events.unwrap();
    assert!(events.contains("Not asked: quality is worth 0; where that is at most 0"), "{events}");
    for tools in ["recorded", "live"] {
        let replay = deeplook(folder.path()).args(["replay", "run", "--tools", tools]).output();
        stdout(&replay.unwrap());
    }
    // The same command finds nothing to do, and what decides is judged again with what it decides.
    let before = server.arrived().len();
    stdout(&eval(folder.path(), &server, &["--criterion", "all"]));
    assert_eq!(server.arrived().len(), before);
    let report = deeplook(folder.path()).args(["report", "run", "--format", "json"]).output();
    let report = printed(&report.unwrap());
    let row = &report["groups"][0]["editors"][0];
    let kept = row["criteria"].as_array().unwrap().iter().find(|one| one["criterion"] == "kept");
    assert_eq!(kept.unwrap()["weighted"]["n"], json!(1), "what does not apply is no gap");
}

/// The toy pack with a criterion that asks nobody, and a variant that measures otherwise.
fn measuring(folder: &Path) -> PathBuf {
    let pack = folder.join("measuring");
    fs::create_dir(&pack).unwrap();
    for entry in fs::read_dir(toy()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, pack.join(path.file_name().unwrap())).unwrap();
    }
    let mut text = fs::read_to_string(pack.join("pack.toml")).unwrap();
    text.push_str(
        "\n[[criterion]]\nid = \"same\"\nname = \"What is the same\"\nscale = { lowest = 0, decimals = 1 }\n\
         measure = { function = \"same_pixels\", pictures = [\"source\", \"edited\"], region = \"target\" }\n\
         \n[[variant]]\nname = \"near\"\nabout = \"Small differences do not count\"\n\
         [[variant.criterion]]\nid = \"same\"\nmeasure = { settings = { tolerance = 8 } }\n",
    );
    fs::write(pack.join("pack.toml"), text).unwrap();
    pack
}

#[test]
fn a_criterion_that_asks_no_model_is_measured_without_a_server() {
    let folder = data();
    let pack = measuring(folder.path());
    let lint = deeplook(folder.path()).args(["prompts", "lint"]).arg(&pack).output().unwrap();
    stdout(&lint);
    fs::remove_file(folder.path().join("set/1-edited.png")).unwrap();
    let eval = |run: &str, more: &[&str]| {
        let mut command = deeplook(folder.path());
        command.args(["eval", "set", "--mode", "plain", "--criterion", "same", "--run", run]);
        // A model with a key that nobody has: it is not asked.
        command.args(["--model", "gpt-5.1", "--allow-partial", "--prompts"]).arg(&pack);
        command.args(more).output().unwrap()
    };
    eval("run", &[]);
    let all = lines(&folder.path().join("run"));
    let first = line(&all, "c0", "same");
    assert_eq!((&first["outcome"], &first["score"]), (&json!("verdict"), &json!(100.0)), "{first}");
    assert_eq!(first["turns"], json!(0));
    let second = line(&all, "c1", "same");
    assert_eq!((&second["outcome"], &second["score"]), (&json!("missing"), &Value::Null));
    eval("near", &["--variant", "near"]);
    let near = lines(&folder.path().join("near"));
    assert_eq!(line(&near, "c0", "same")["variant"], "near");
    for (run, tools) in [("run", "recorded"), ("run", "live"), ("near", "live")] {
        let replay = deeplook(folder.path()).args(["replay", run, "--tools", tools]).output();
        stdout(&replay.unwrap());
    }
    let unknown = eval("none", &["--variant", "nearer"]);
    let told = String::from_utf8_lossy(&unknown.stderr);
    assert!(unknown.status.code() == Some(2) && told.contains("it has strict, near"), "{told}");
    let report = deeplook(folder.path()).args(["report", "run", "near"]).output().unwrap();
    let report = stdout(&report);
    assert!(report.contains("variant near") && report.contains("100.0"), "{report}");
}

/// The data set with what is right beside it.
fn data_with_truth() -> TempDir {
    let folder = data();
    let values = json!({ "Style_Match": 1, "Seams": 1, "Light": "right", "Shadow": 1 });
    let mut text = String::new();
    for case in ["c0", "c1"] {
        let line = json!({ "case": case, "editor": "one", "criterion": "quality", "annotator": "truth", "values": values });
        text.push_str(&format!("{line}\n"));
    }
    let kept = json!({ "case": "c0", "editor": "one", "criterion": "kept", "annotator": "truth", "label": "Table Kept" });
    text.push_str(&format!("{kept}\n"));
    fs::write(folder.path().join("set/labels.jsonl"), text).unwrap();
    folder
}

#[test]
fn simulated_answers_come_from_the_truth_and_say_so_everywhere() {
    let folder = data_with_truth();
    let eval = |run: &str, more: &[&str]| {
        let mut command = deeplook(folder.path());
        command.args(["eval", "set", "--mode", "plain", "--model", "simulated", "--run", run]);
        command.args(["--prompts"]).arg(toy()).args(more).output().unwrap()
    };
    let told = eval("right", &[]);
    stdout(&told);
    assert!(String::from_utf8_lossy(&told.stderr).contains("SIMULATED"));
    let all = lines(&folder.path().join("right"));
    assert_eq!(line(&all, "c0", "qa")["score"], json!(100.0));
    assert_eq!(line(&all, "c1", "quality")["score"], json!(10.0));
    assert_eq!(line(&all, "c0", "kept")["label"], "Table Kept");
    // Always wrong, and the same again.
    stdout(&eval("wrong", &["--param", "error=1", "--param", "seed=3", "--repeats", "2"]));
    let wrong = lines(&folder.path().join("wrong"));
    assert_eq!(line(&wrong, "c0", "qa")["score"], json!(0.0));
    assert_ne!(line(&wrong, "c0", "quality")["values"]["Seams"], json!(1));
    let report = deeplook(folder.path()).args(["report", "right", "wrong"]).output().unwrap();
    let report = stdout(&report);
    assert!(
        report.contains("SIMULATED answers") && report.contains("say nothing about any judge"),
        "{report}"
    );
    // The truth is in no question, and the trace says what it is.
    let run = folder.path().join("right");
    for trace in files(&run).iter().filter(|file| file.ends_with("events.jsonl")) {
        for event in fs::read_to_string(trace).unwrap().lines() {
            let event: Value = serde_json::from_str(event).unwrap();
            let asked = event["event"]["asked"].to_string();
            assert!(!asked.contains("truth") && !asked.contains("expected"), "{asked}");
        }
        let text = fs::read_to_string(trace).unwrap();
        assert!(text.contains("Simulated from the truth"), "{text:.500}");
    }
    for tools in ["recorded", "live"] {
        let replay = deeplook(folder.path()).args(["replay", "right", "--tools", tools]).output();
        stdout(&replay.unwrap());
    }
    let bad = eval("bad", &["--param", "error=2"]);
    assert_eq!(bad.status.code(), Some(2));
    // Where nothing is known, nothing is said.
    fs::remove_file(folder.path().join("set/labels.jsonl")).unwrap();
    eval("blind", &["--criterion", "quality"]);
    for line in lines(&folder.path().join("blind")).values() {
        assert_eq!((&line["outcome"], &line["score"]), (&json!("abstained"), &Value::Null));
    }
}

#[test]
fn a_pack_of_ones_own_goes_through_every_analysis() {
    let folder = data_with_truth();
    let run = |args: &[&str]| {
        let output = deeplook(folder.path()).args(args).output().unwrap();
        (output.status.code(), stdout(&output))
    };
    let pack = toy().display().to_string();
    for (name, error) in [("a", "error=0"), ("b", "error=0.5")] {
        let eval = ["eval", "set", "--mode", "plain", "--model", "simulated", "--param", error];
        run(&[&eval[..], &["--repeats", "3", "--run", name, "--prompts", &pack]].concat());
    }
    let (_, report) = run(&["report", "a", "--format", "json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let row = &report["groups"][0]["editors"][0];
    assert_eq!(row["criteria"].as_array().unwrap().len(), 3, "{row}");
    assert_eq!(row["overall"]["score"], json!(100.0), "{row}");
    let (_, compared) = run(&["compare", "a", "b"]);
    for criterion in ["qa", "quality", "kept"] {
        assert!(compared.to_lowercase().contains(criterion), "{criterion}: {compared}");
    }
    let people = "case,editor,criterion,annotator,label\nc0,one,kept,ann,Table Kept\n";
    fs::write(folder.path().join("people.csv"), people).unwrap();
    let (_, agreed) = run(&["agree", "a", "--labels", "people.csv"]);
    assert!(agreed.to_lowercase().contains("kept"), "{agreed}");
    let plan = format!(
        "name = \"toy\"\ncases = \"set\"\ncriterion = \"all\"\nmodes = [\"plain\"]\n\
         [[prompts]]\nname = \"usual\"\npack = {pack:?}\n\
         [[prompts]]\nname = \"strict\"\npack = {pack:?}\nvariant = \"strict\"\n\
         [[models]]\nname = \"simulated\"\nparams = {{ error = 0.3, seed = 5 }}\n"
    );
    fs::write(folder.path().join("plan.toml"), plan).unwrap();
    let (_, tried) = run(&["experiment", "run", "plan.toml", "--out", "tried"]);
    for word in ["strict", "qa", "quality", "kept"] {
        assert!(tried.to_lowercase().contains(word), "{word}: {tried}");
    }
    run(&["view", "a", "--out", "pages"]);
    assert!(files(&folder.path().join("pages")).iter().any(|file| file.ends_with("index.html")));
    run(&["replay", "a"]);
}
