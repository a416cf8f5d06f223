//! Experiments through the command: a plan, its cells, what is said of them, and kills in between.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::command::{deeplook, json as printed, run as typed, stderr, stdout};
use super::runs::{data, exit, judged, lines, policy};
use super::wire::server::{Server, Step};

/// Two wordings by two modes on `server`, and labels of which the first wording is right.
fn plan(folder: &Path, server: &Server, more: &str) {
    stdout(&typed(folder, &["prompts", "new", "other"]));
    let path = folder.join("other/vc.j2");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("Take your time with this one.\n{text}")).unwrap();
    plan_again(folder, server, more);
}

/// The same with the pack as it is.
fn plan_again(folder: &Path, server: &Server, more: &str) {
    let plan = format!(
        "name = \"wording\"\ncases = \"set\"\ncriterion = \"vc\"\nmodes = [\"plain\", \"oracle\"]\n{more}\n\
         [[prompts]]\nname = \"as it is\"\n[[prompts]]\nname = \"<b>other</b>\"\npack = \"other\"\n\
         [[models]]\nname = \"some-model\"\nbase_url = \"{}\"\n",
        server.base_url
    );
    fs::write(folder.join("plan.toml"), plan).unwrap();
}

fn experiment(folder: &Path, more: &[&str]) -> Output {
    deeplook(folder)
        .args(["experiment", "run", "plan.toml", "--out", "exp"])
        .args(more)
        .output()
        .unwrap()
}

const CELLS: [&str; 4] =
    ["as-it-is-plain", "as-it-is-oracle", "b-other-b-plain", "b-other-b-oracle"];

#[test]
fn a_plan_is_told_judged_and_reported() {
    let folder = data(3);
    let folder = folder.path();
    let server = Server::start(vec![Step::Reply(policy)]);
    plan(folder, &server, "");
    let told = stdout(&experiment(folder, &["--plan"]));
    let total = told.lines().find(|line| line.contains("all together")).unwrap();
    assert!(total.split_whitespace().any(|word| word == "24"), "{told}");
    assert!(told.contains("as it is, oracle"), "{told}");
    assert!(!folder.join("exp").exists() && server.arrived().is_empty());

    let shown = stdout(&experiment(folder, &["--", "--quiet"]));
    assert!(shown.contains("4 cells, 6 edits each"), "{shown}");
    assert_eq!(server.arrived().len(), 24);
    for cell in CELLS {
        let run = folder.join("exp/cells").join(cell);
        assert_eq!(lines(&run).len(), 6, "{cell}");
        stdout(&typed(folder, &["report", run.to_str().unwrap()]));
        stdout(&typed(folder, &["replay", run.to_str().unwrap(), "--strict"]));
    }
    stdout(&experiment(folder, &["--", "--quiet"]));
    assert_eq!(server.arrived().len(), 24, "nothing is asked again");

    // Labels that are what the other wording said in the plain mode: that cell is all right.
    let other = lines(&folder.join("exp/cells/b-other-b-plain"));
    let labels: String = other
        .values()
        .map(|line| {
            let label = json!({ "case": line["case"], "editor": line["editor"], "criterion": "vc",
                                "annotator": "a", "label": line["label"] });
            format!("{label}\n")
        })
        .collect();
    fs::write(folder.join("labels.jsonl"), labels).unwrap();
    let report = ["experiment", "report", "exp", "--labels", "labels.jsonl"];
    let told = printed(&typed(folder, &[&report[..], &["--json"]].concat()));
    let of = |list: &str, cell: &str| {
        let all = told[list].as_array().unwrap();
        all.iter().find(|one| one["cell"] == cell).cloned().unwrap()
    };
    let score = of("scores", "<b>other</b>, plain");
    assert_eq!(score["coverage"], json!({ "answered": 6, "all": 6 }));
    let compared = of("comparisons", "<b>other</b>, plain");
    let base = lines(&folder.join("exp/cells/as-it-is-plain"));
    let flips = other.iter().filter(|(key, line)| line["label"] != base[*key]["label"]).count();
    assert_eq!(compared["flips"].as_array().unwrap().len(), flips);
    assert_eq!(compared["finding"], "no_evidence", "three cases cannot tell");

    stdout(&typed(folder, &[&report[..], &["--out", "page.html"]].concat()));
    let page = fs::read_to_string(folder.join("page.html")).unwrap().replace("&#x2f;", "/");
    assert!(page.contains("href=\"exp/cells/b-other-b-plain/\""), "a way to the run");
    assert!(page.contains("&lt;b&gt;other") && !page.contains("<b>other"), "names are text");
    let ways = page.matches("href=\"exp/cells/b-other-b-plain/judgements/").count();
    assert_eq!(ways, flips, "a way to every trace of a flip");
    assert_eq!(exit(&typed(folder, &["experiment", "report", "set"])), Some(2));
}

#[test]
fn a_plan_that_cannot_be_carried_out_writes_nothing() {
    let folder = data(2);
    let folder = folder.path();
    let server = Server::start(vec![Step::Reply(policy)]);
    plan(folder, &server, "");
    let good = fs::read_to_string(folder.join("plan.toml")).unwrap();
    let many: String = (0..2000).map(|n| format!("[[tools]]\nname = \"{n}\"\n")).collect();
    for (from, to, said) in [
        ("criterion", "criterium", "unknown field"),
        ("name = \"<b>other</b>\"", "name = \"as it is\"", "twice"),
        ("cases = \"set\"", "cases = \"set\"\nrepeats = 0", "repeats"),
        ("cases = \"set\"", "cases = \"nowhere\"", "nowhere"),
        ("cases = \"set\"", "", "nothing to judge"),
        ("pack = \"other\"", "pack = \"missing\"", "missing"),
        ("pack = \"other\"", "replace = { \"../x\" = \"plan.toml\" }", "../x"),
        ("pack = \"other\"", "replace = { \"vc.j2\" = \"nowhere.j2\" }", "nowhere.j2"),
        ("pack = \"other\"", "replace = { \"vc.j2\" = \"plan.toml\" }", "no prompt of"),
        ("\"vc\"", "\"taste\"", "taste"),
        ("\"oracle\"", "\"magic\"", "magic"),
        ("[[models]]", "[[models]]\nprofile = \"nowhere.toml\"", "nowhere.toml"),
        ("[[models]]", &format!("{many}[[models]]"), "8000 cells"),
        ("cases = \"set\"", "cases = \"set\"\nlabels = \"none.jsonl\"", "none.jsonl"),
        ("cases = \"set\"", "from_traces = \"nowhere\"", "nowhere"),
    ] {
        assert!(good.contains(from), "{from}");
        fs::write(folder.join("plan.toml"), good.replacen(from, to, 1)).unwrap();
        for more in [&[][..], &["--plan"]] {
            let output = experiment(folder, more);
            assert_eq!(exit(&output), Some(2), "{to}: {}", stderr(&output));
            assert!(stderr(&output).contains(said), "{to}: {}", stderr(&output));
            assert!(!folder.join("exp").exists(), "{to}: something was written");
        }
    }
    assert!(server.arrived().is_empty());
}

fn slowly(request: &Value) -> Value {
    thread::sleep(Duration::from_millis(25));
    policy(request)
}

#[test]
fn a_killed_experiment_ends_as_an_undisturbed_one() {
    let folder = data(5);
    let folder = folder.path();
    let server = Server::start(vec![Step::Reply(slowly)]);
    plan(folder, &server, "repeats = 2");
    let more = ["--", "--quiet", "--no-cache", "--concurrency", "4"];
    stdout(&experiment(folder, &more));
    let calm = |cell: &str| judged(&folder.join("exp/cells").join(cell));
    let calm = CELLS.map(calm);
    fs::rename(folder.join("exp"), folder.join("calm")).unwrap();

    let mut killed = 0;
    for round in 0..8u64 {
        let mut command = deeplook(folder);
        command.args(["experiment", "run", "plan.toml", "--out", "exp"]).args(more);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        thread::sleep(Duration::from_millis(60 + 37 * round % 130));
        child.kill().unwrap();
        killed += usize::from(!child.wait().unwrap().success());
    }
    assert!(killed >= 5, "it was killed {killed} times");
    stdout(&experiment(folder, &more));
    for (cell, calm) in CELLS.iter().zip(calm) {
        assert_eq!(calm.len(), 20);
        assert_eq!(judged(&folder.join("exp/cells").join(cell)), calm, "{cell}");
    }
    let report = |name: &str| {
        let mut told = printed(&typed(folder, &["experiment", "report", name, "--json"]));
        for comparison in told["comparisons"].as_array_mut().unwrap() {
            for flip in comparison["flips"].as_array_mut().unwrap() {
                // A trace that was begun again has another number.
                flip["before_trace"] = Value::Null;
                flip["after_trace"] = Value::Null;
            }
        }
        told
    };
    assert_eq!(report("exp"), report("calm"));
}

#[test]
fn a_saved_template_is_judged_again() {
    let folder = data(2);
    let folder = folder.path();
    let server = Server::start(vec![Step::Reply(policy)]);
    plan(folder, &server, "");
    let labels = json!({ "case": "c0", "editor": "good", "criterion": "vc", "annotator": "a",
                         "label": "Perfect Consistency" });
    fs::write(folder.join("labels.jsonl"), format!("{labels}\n")).unwrap();
    let mut command = deeplook(folder);
    command.args(["experiment", "watch", "other", "set", "--labels", "labels.jsonl"]);
    command.args(["--edits-at-most", "3", "--rounds", "3", "--", "--criterion", "vc"]);
    command.args(["--mode", "plain", "--model", "some-model", "--base-url", &server.base_url]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let wait_for = |asked: usize| {
        for _ in 0..1000 {
            if server.arrived().len() >= asked {
                return thread::sleep(Duration::from_millis(300));
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("{} questions after 20 seconds, not {asked}", server.arrived().len());
    };
    wait_for(3);
    let path = folder.join("other/vc.j2");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{{{{ no_such_thing }}}}\n{text}")).unwrap();
    thread::sleep(Duration::from_millis(1000));
    fs::write(&path, format!("Think twice, and then once more.\n{text}")).unwrap();
    let output = child.wait_with_output().unwrap();
    let shown = stdout(&output);
    assert_eq!(server.arrived().len(), 6, "{shown}");
    assert!(shown.contains("round 1") && shown.contains("of 1 right"), "{shown}");
    assert!(shown.contains("not judged") && shown.contains("no_such_thing"), "{shown}");
    assert!(shown.contains("round 3") && shown.contains("flipped"), "{shown}");
}

#[test]
fn an_edited_pack_is_judged_anew_and_its_own_table_is_shown() {
    let folder = data(2);
    let folder = folder.path();
    let server = Server::start(vec![Step::Reply(policy)]);
    plan(folder, &server, "");
    stdout(&experiment(folder, &["--quiet"]));
    assert_eq!(server.arrived().len(), 16);
    let path = folder.join("other/vc.j2");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("Look at every corner, twice.\n{text}")).unwrap();
    let refused = experiment(folder, &["--quiet"]);
    assert_eq!(exit(&refused), Some(2));
    assert!(stderr(&refused).contains("--new-run"), "{}", stderr(&refused));

    // Behind two dashes or not, an option of the cells is one.
    for more in [&["--new-run", "--quiet"][..], &["--", "--new-run", "--quiet"]] {
        stdout(&experiment(folder, more));
        assert_eq!(server.arrived().len(), 24, "only the cells of the edited pack are judged");
    }
    let record: Value =
        serde_json::from_slice(&fs::read(folder.join("exp/experiment.json")).unwrap()).unwrap();
    let runs: Vec<&str> = record["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["run"].as_str().unwrap())
        .collect();
    let [first, second, third, fourth] = CELLS;
    let cells = [first, second, &format!("{third}-2"), &format!("{fourth}-2")];
    assert_eq!(runs, cells.map(|cell| format!("cells/{cell}")));
    let told = printed(&typed(folder, &["experiment", "report", "exp", "--json"]));
    let flips = |number: usize| {
        let run = |cell: &str| lines(&folder.join("exp/cells").join(cell));
        let (base, other) = (run(first), run(cells[number]));
        base.iter().filter(|(key, line)| other[*key]["label"] != line["label"]).count()
    };
    let compared = told["comparisons"].as_array().unwrap();
    let of = |cell: &str| compared.iter().find(|one| one["cell"] == cell).unwrap();
    let shown = of("<b>other</b>, plain")["flips"].as_array().unwrap().len();
    assert_eq!(shown, flips(2), "the table is that of the pack as it is now");
}

#[test]
fn names_of_fields_can_be_told_in_the_plan_and_to_the_command() {
    let folder = data(1);
    let folder = folder.path();
    let server = Server::start(vec![Step::Reply(policy)]);
    let cases = folder.join("set/cases.jsonl");
    let text = fs::read_to_string(&cases).unwrap();
    fs::write(&cases, text.replace("\"instruction\"", "\"wish\"")).unwrap();
    plan(folder, &server, "");
    let refused = experiment(folder, &["--quiet"]);
    assert_eq!(exit(&refused), Some(2));
    assert!(stderr(&refused).contains("--map instruction="), "{}", stderr(&refused));
    stdout(&experiment(folder, &["--quiet", "--map", "instruction=wish"]));
    plan_again(folder, &server, "map = { instruction = \"wish\" }");
    stdout(&experiment(folder, &["--quiet"]));
    let probe = ["probe", "set", "--cases", "1", "--mode", "plain", "--floor", "0"];
    let refused = typed(folder, &probe);
    assert!(stderr(&refused).contains("--map instruction="), "{}", stderr(&refused));
    let probed = typed(folder, &[&probe[..], &["--map", "instruction=wish"]].concat());
    assert_ne!(exit(&probed), Some(2), "{}", stderr(&probed));
}
