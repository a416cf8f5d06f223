//! What somebody sent is hostile: a trace, a plan or an experiment decides neither whom we ask nor what
//! we open or start, and one of them that is broken does not take the others with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use deeplook::hash::Hash;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::command::{deeplook, json as printed, pair, run, stderr, stdout};
use super::replay::Copy;
use super::runs::{data, judged, policy};
use super::wire::server::{Server, Step};

/// What must never leave this machine.
const SECRET: &str = "planted-0123456789";

impl Copy {
    /// Writes the manifest and, as a forger would, new seals for everything after it.
    fn forge(&mut self) {
        let text = serde_json::to_string_pretty(&self.manifest).unwrap() + "\n";
        fs::write(self.bundle().join("manifest.json"), text).unwrap();
        self.write_sealed();
    }

    /// Puts a prompt of the forger's own into the trace.
    fn forge_prompt(&mut self, file: &str, text: &str) {
        let hash = Hash::of(text.as_bytes());
        fs::write(self.folder.path().join(format!("blobs/{hash}.j2")), text).unwrap();
        self.manifest["pack"]["files"][file] = json!(hash);
        self.forge();
    }

    /// An untouched trace beside it.
    fn with_a_good_one(&self, name: &str) {
        let good = self.folder.path().join("judgements/good");
        fs::create_dir_all(&good).unwrap();
        for file in ["manifest.json", "events.jsonl"] {
            fs::copy(super::replay::golden(name).join(file), good.join(file)).unwrap();
        }
    }
}

fn fork(copy: &Copy, more: &[&str]) -> Output {
    let mut command = deeplook(copy.folder.path());
    command.args(["replay", "judgements/it", "--from-turn", "1", "--trace", "fork", "--json"]);
    command.args(more).env("PLANTED", SECRET).env("OPENAI_API_KEY", "mine-0123456789");
    command.output().unwrap()
}

#[test]
fn a_trace_decides_neither_who_is_asked_nor_with_which_key() {
    let server = Server::start(vec![Step::Reply(policy)]);
    let mut copy = Copy::of("plain-verdict-edited-if");
    copy.manifest["model"]["base_url"] = json!(server.base_url);
    copy.manifest["model"]["profile"]["base_url"] = json!(server.base_url);
    copy.manifest["model"]["profile"]["key_env"] = json!("PLANTED");
    copy.manifest["model"]["params"] = json!({ "api_base": "http://192.0.2.1/", "seed": 7 });
    copy.forge();
    for model in ["scripted", "gpt-5.1", "gemini-3-pro"] {
        copy.manifest["model"]["id"] = json!(model);
        copy.forge();
        let refused = fork(&copy, &[]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("--base-url"), "{}", stderr(&refused));
    }
    assert_eq!(server.arrived().len(), 0, "the trace's server was asked");

    // Where the user names the server, it is the user's key that goes there, and nothing else.
    let asked = fork(&copy, &["--base-url", &server.base_url]);
    assert_eq!(asked.status.code(), Some(0), "{}", stderr(&asked));
    assert!(stderr(&asked).contains("seed=7"), "{}", stderr(&asked));
    let arrived = server.arrived();
    assert_eq!(arrived.len(), 1);
    let text = format!("{}{}", arrived[0].head, String::from_utf8_lossy(&arrived[0].body));
    assert!(text.contains("Bearer mine-0123456789"), "{}", arrived[0].head);
    assert!(!text.contains(SECRET) && !text.contains("api_base"), "{}", arrived[0].head);
}

#[test]
fn a_flawed_trace_is_forked_only_on_purpose() {
    let mut copy = Copy::of("tool-native");
    copy.events[2]["event"]["replied"]["reply"]["message"]["content"] = json!("I saw it.");
    copy.write();
    let refused = fork(&copy, &["--model", "rules"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("--despite-flaws"), "{}", stderr(&refused));
    assert!(!copy.folder.path().join("fork").exists());
    let forked = fork(&copy, &["--model", "rules", "--despite-flaws"]);
    assert_eq!(forked.status.code(), Some(0), "{}", stderr(&forked));
}

#[test]
fn a_plan_asks_strangers_only_on_purpose() {
    let folder = data(1);
    let folder = folder.path();
    let profile = "base_url = \"https://llm.example.org/v1\"\nkey_env = \"PLANTED\"\n";
    fs::write(folder.join("mine.toml"), profile).unwrap();
    for (model, url) in [
        ("base_url = \"https://llm.example.org/v1\"", "https://llm.example.org/v1"),
        ("profile = \"mine.toml\"", "https://llm.example.org/v1"),
        // Another key than this server's own.
        (
            "base_url = \"https://api.openai.com/v1\"\nprofile = \"mine.toml\"",
            "https://api.openai.com/v1",
        ),
    ] {
        let plan =
            format!("name = \"theirs\"\ncases = \"set\"\n[[models]]\nname = \"m\"\n{model}\n");
        fs::write(folder.join("plan.toml"), plan).unwrap();
        let mut command = deeplook(folder);
        command.args(["experiment", "run", "plan.toml", "--out", "exp"]);
        let output = command.env("PLANTED", SECRET).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{model}");
        let said = stderr(&output);
        assert!(said.contains(&format!("--allow-server {url}")), "{said}");
        assert!(!folder.join("exp").exists(), "{model}");
    }
}

#[test]
fn an_experiment_leads_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let record = |labels: Value, cell: &str| {
        let cells = json!([{ "name": "a", "run": cell }]);
        let record =
            json!({ "name": "x", "labels": labels, "baseline": 0, "cells": cells, "edits": 1 });
        fs::create_dir_all(folder.path().join("exp/cells/a/judgements")).unwrap();
        fs::write(folder.path().join("exp/experiment.json"), record.to_string()).unwrap();
        run(folder.path(), &["experiment", "report", "exp"])
    };
    for (labels, cell) in [
        (json!("/etc/passwd"), "cells/a"),
        (json!("../secret.csv"), "cells/a"),
        (Value::Null, "/etc"),
        (Value::Null, "../elsewhere"),
    ] {
        let output = record(labels.clone(), cell);
        assert_eq!(output.status.code(), Some(2), "{labels} {cell}");
        assert!(stderr(&output).contains("not in its folder"), "{}", stderr(&output));
    }
    stdout(&record(Value::Null, "cells/a"));
}

/// `deeplook` that may fetch, in a folder full of traps; where a trap would leave its mark.
#[cfg(unix)]
fn trapped(folder: &Path) -> (Command, PathBuf) {
    use std::os::unix::fs::PermissionsExt as _;
    let mark = folder.join("mark");
    let trap = format!("open({:?}, 'a').write(__name__ + '\\n')\n", mark.to_str().unwrap());
    for name in ["pip.py", "sitecustomize.py", "usercustomize.py", "zipfile.py", "argparse.py"] {
        fs::write(folder.join(name), &trap).unwrap();
    }
    fs::write(folder.join("python3"), format!("#!/bin/sh\necho python3 >> {mark:?}\n")).unwrap();
    fs::set_permissions(folder.join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = deeplook(folder);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env_remove("DEEPLOOK_OFFLINE").env("PATH", format!(".:{path}:"));
    command.env("PYTHONPATH", folder).env("PYTHONSTARTUP", folder.join("pip.py"));
    // Nobody answers there.
    command.env("PIP_INDEX_URL", "http://127.0.0.1:9/simple").env("PIP_RETRIES", "0");
    (command, mark)
}

#[cfg(unix)]
#[test]
fn no_code_runs_from_the_folder_that_we_are_in() {
    let folder = tempfile::tempdir().unwrap();
    for what in ["runtime", "enhancer"] {
        let (mut command, mark) = trapped(folder.path());
        let output = command.args(["models", "fetch", what]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "nothing can be fetched here");
        assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap());
    }
}

/// A Python that tells how it was started, in front of the real one.
#[cfg(unix)]
fn with_telling_python(command: &mut Command, folder: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let (bin, told) = (folder.join("bin"), folder.join("told"));
    fs::create_dir_all(&bin).unwrap();
    let script = format!("#!/bin/sh\n{{ pwd; echo \"$@\"; env; }} >> {told:?}\nexit 1\n");
    fs::write(bin.join("python3"), script).unwrap();
    fs::set_permissions(bin.join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", bin.display()));
    told
}

#[cfg(unix)]
#[test]
fn a_program_that_we_start_gets_no_key_and_a_folder_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = deeplook(folder.path());
    let told = with_telling_python(&mut command, folder.path());
    command.args(["models", "fetch", "runtime"]).env("OPENAI_API_KEY", SECRET);
    command.env("LD_PRELOAD_NOT", SECRET).env("PYTHONPATH", SECRET).env("MY_TOKEN", SECRET);
    command
        .env("PIP_INDEX_URL", "http://mirror.example")
        .env("https_proxy", "http://proxy.example");
    command.output().unwrap();
    let told = fs::read_to_string(told).unwrap();
    assert!(!told.contains(SECRET), "{told}");
    for kept in ["PIP_INDEX_URL=http://mirror.example", "https_proxy=http://proxy.example", "PATH="]
    {
        assert!(told.contains(kept), "{kept} is not in {told}");
    }
    let mut lines = told.lines();
    let here = fs::canonicalize(folder.path()).unwrap();
    assert!(!Path::new(lines.next().unwrap()).starts_with(here), "{told}");
    assert!(lines.next().unwrap().starts_with("-I "), "{told}");
}

/// What a replay says of the tools that it could not use again.
fn not_rerun(output: &Output) -> Value {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["traces"][0]["not_rerun"].clone()
}

#[cfg(unix)]
#[test]
fn a_replay_opens_nothing_and_fetches_nothing_that_a_trace_names() {
    let mut copy = Copy::of("detector");
    let folder = copy.folder.path().to_owned();
    // A model that came with the trace; a pipe would hang whoever opens it.
    let model = folder.join("theirs.onnx");
    fs::write(&model, "no model").unwrap();
    let pipe = folder.join("pipe.onnx");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let replay = || {
        let (mut command, mark) = trapped(&folder);
        let told = with_telling_python(&mut command, &folder);
        let output = command.args(["replay", "judgements/it", "--json"]).output().unwrap();
        assert!(!told.exists() && !mark.exists(), "something was started");
        output
    };
    for name in [model.to_str().unwrap(), pipe.to_str().unwrap(), "/etc/passwd", "", "enhancer"] {
        copy.manifest["tools"]["settings"]["detect_object"]["detector"]["name"] = json!(name);
        copy.manifest["tools"]["settings"]["zoom_in"]["enhancer"] =
            json!({ "model": name, "sha256": "0".repeat(64) });
        copy.forge();
        let output = replay();
        let why = not_rerun(&output)["detect_object"].as_str().unwrap_or_default().to_owned();
        let known = why.contains("no model that deeplook has") || name == "enhancer";
        assert!(known, "{name}: {why} {}", stderr(&output));
    }
    // A model that we know: its runtime is not here, and is not fetched for that.
    let copy = Copy::of("detector");
    let (mut command, mark) = trapped(copy.folder.path());
    let told = with_telling_python(&mut command, copy.folder.path());
    let output = command.args(["replay", "judgements/it", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let why = not_rerun(&output)["detect_object"].as_str().unwrap().to_owned();
    assert!(why.contains("not here") && why.contains("models fetch runtime"), "{why}");
    assert!(!told.exists() && !mark.exists(), "something was started");
}

#[test]
fn a_hostile_template_ends_nothing_but_its_own_trace() {
    let chain = |what: &str| format!("{{{{ {}1 }}}}", what.repeat(5_400));
    for template in [
        chain("not "),
        chain("1 - "),
        format!("{{{{ labels{} }}}}", ".a".repeat(5_400)),
        format!("{{{{ labels{} }}}}", "[0:]".repeat(5_400)),
        format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(5_400)),
    ] {
        let mut copy = Copy::of("plain-verdict-edited-if");
        copy.with_a_good_one("tool-native");
        copy.forge_prompt("labels.j2", &template);
        let folder = copy.folder.path();
        let output = run(folder, &["replay", ".", "--json"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["passed"], &report["diverged"]), (&json!(1), &json!(1)), "{report:#}");

        let output = run(folder, &["trace", "show", "."]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("turn 4"), "the good one");
        assert!(stderr(&output).contains("labels.j2"), "{}", stderr(&output));
        stdout(&run(folder, &["view", ".", "--out", "pages"]));
        let pages = fs::read_dir(folder.join("pages/case")).unwrap();
        let pages = pages.map(|page| fs::read_to_string(page.unwrap().path()).unwrap());
        assert!(
            pages.into_iter().any(|page| page.contains("prompts of this trace cannot be read"))
        );
    }
}

#[test]
fn a_long_reminder_for_each_of_many_turns_takes_no_memory() {
    let mut copy = Copy::of("tool-native");
    copy.with_a_good_one("tool-native");
    copy.manifest["limits"]["turns"] = json!(1000);
    copy.forge_prompt("reminder.j2", &"Answer soon. ".repeat(1_000));
    let output = run(copy.folder.path(), &["replay", ".", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["passed"], &report["diverged"]), (&json!(1), &json!(1)), "{report:#}");
    assert!(report.to_string().contains("reminders of all turns"), "{report:#}");
}

#[test]
fn settings_that_cannot_be_do_not_end_the_other_traces() {
    for (pointer, value) in [
        ("/tools/settings/localize_differences/settings/noise_slope", json!(-1.0)),
        ("/tools/settings/localize_differences/settings/gap", json!(1e300)),
        ("/tools/settings/localize_differences/settings/border", json!(u64::MAX)),
        ("/tools/settings/localize_differences/floor", json!(u32::MAX)),
        ("/tools/settings/zoom_in/ceiling", json!(0)),
        ("/tools/settings/zoom_in/margin", json!(-1e308)),
    ] {
        let mut copy = Copy::of("tool-native");
        copy.with_a_good_one("plain-verdict-edited-if");
        *copy.manifest.pointer_mut(pointer).unwrap() = value;
        // As it is today: a look of another version is not made again at all.
        copy.manifest["tools"]["settings"]["localize_differences"]["version"] = json!(3);
        copy.forge();
        let output = run(copy.folder.path(), &["replay", ".", "--json"]);
        assert_eq!(output.status.code(), Some(1), "{pointer}: {}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["passed"], &report["diverged"]), (&json!(1), &json!(1)), "{report:#}");
        let told = report.to_string();
        assert!(told.contains(pointer.rsplit('/').next().unwrap()), "{report:#}");
        let refused = fork(&copy, &["--model", "rules"]);
        assert_eq!(refused.status.code(), Some(2), "{pointer}: {}", stderr(&refused));
        assert!(stderr(&refused).contains("tools.settings"), "{}", stderr(&refused));
    }
    for (pointer, value) in [
        ("/preprocessing/sending/jpeg_quality", json!(0)),
        ("/preprocessing/sending/max_side", json!(u32::MAX)),
        ("/limits/turns", json!(1_000_000)),
    ] {
        let mut copy = Copy::of("tool-native");
        copy.with_a_good_one("plain-verdict-edited-if");
        *copy.manifest.pointer_mut(pointer).unwrap() = value;
        copy.forge();
        let output = run(copy.folder.path(), &["replay", ".", "--json"]);
        assert_eq!(output.status.code(), Some(2), "{pointer}: {}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["passed"], 1, "{report:#}");
        let error = report["unreadable"][0]["error"].as_str().unwrap();
        assert!(error.contains(pointer.rsplit('/').next().unwrap()), "{error}");
    }
}

#[test]
fn what_was_seen_is_not_judged_again_by_limits_that_cannot_be() {
    let (folder, _) = finished();
    for entry in fs::read_dir(folder.path().join("run/judgements")).unwrap() {
        let path = entry.unwrap().path().join("manifest.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut manifest: Value = serde_json::from_str(&text).unwrap();
        manifest["limits"]["turns"] = json!(1001);
        fs::write(path, manifest.to_string()).unwrap();
    }
    let args = ["eval", "--from-traces", "run", "--mode", "plain", "--run", "again"];
    let output = run(folder.path(), &args);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("limits.turns"), "{}", stderr(&output));
}

#[test]
fn settings_of_tools_are_checked_where_they_come_in() {
    let (folder, _) = pair();
    for (settings, named) in [
        ("[localize_differences.settings]\nnoise_slope = -1.0", "settings.noise_slope is -1"),
        ("[localize_differences.settings]\npooling = nan", "localize_differences: invalid type"),
        ("[localize_differences]\nmax_regions = 0", "max_regions is 0"),
        ("[zoom_in]\nfloor = 4000000000", "floor is 4000000000"),
        ("[zoom_in]\nmost = inf", "zoom_in: invalid type"),
        ("[detect_object]\nbox_threshold = 7.0", "box_threshold is 7"),
    ] {
        fs::write(folder.path().join("mine.toml"), settings).unwrap();
        let args = ["judge", "source.png", "edited.png", "-i", "x", "--tool-settings", "mine.toml"];
        let output = run(folder.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{settings}: {}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains(named) && said.contains("mine.toml"), "{said}");
    }
}

/// A finished run in `run/`, and one of its bundles.
pub(crate) fn finished() -> (TempDir, PathBuf) {
    let folder = data(2);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&super::runs::run(folder.path(), &server, &[]));
    let bundle = fs::read_dir(folder.path().join("run/judgements")).unwrap().next().unwrap();
    (folder, bundle.unwrap().path())
}

#[test]
fn what_was_killed_before_its_first_event_is_interrupted_and_no_error() {
    let (folder, _) = finished();
    let folder = folder.path();
    let judgements = folder.join("run/judgements");
    fs::create_dir(judgements.join("empty")).unwrap();
    fs::create_dir(judgements.join("half")).unwrap();
    fs::write(judgements.join("half/events.jsonl"), "").unwrap();
    fs::write(judgements.join("half/.manifest.json.1-1.part"), "{\"form").unwrap();

    let replayed = printed(&run(folder, &["replay", "run", "--tools", "recorded", "--json"]));
    assert_eq!(replayed["unbegun"].as_array().unwrap().len(), 2, "{replayed:#}");
    assert_eq!(replayed["passed"], 8);
    let one = run(folder, &["replay", "run/judgements/empty"]);
    assert!(stdout(&one).contains("interrupted before anything was recorded"));
    assert_eq!(run(folder, &["replay", "run", "--strict"]).status.code(), Some(1));

    stdout(&run(folder, &["trace", "pack", "run", "-o", "run.zip"]));
    stdout(&run(folder, &["trace", "unpack", "run.zip", "-o", "unpacked"]));
    stdout(&run(folder, &["replay", "unpacked", "--strict"]));
    let alone = run(folder, &["trace", "pack", "run/judgements/empty", "-o", "no.zip"]);
    assert!(stderr(&alone).contains("before anything was recorded"), "{}", stderr(&alone));
    for command in ["show", "export"] {
        let output = run(folder, &["trace", command, "run"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("half was interrupted"), "{}", stderr(&output));
    }

    stdout(&run(folder, &["view", "run", "--out", "pages"]));
    let rows = fs::read_to_string(folder.join("pages/data/0001.js")).unwrap();
    assert_eq!(rows.matches("\"outcome\":\"interrupted\"").count(), 2, "{rows}");
    assert!(!rows.contains("\"outcome\":\"unreadable\""), "{rows}");
    let status = printed(&run(folder, &["run", "status", "run", "--json"]));
    assert_eq!((&status["done"], &status["other_traces"]), (&json!(8), &json!(2)));
    stdout(&run(folder, &["report", "run"]));

    let before = judged(&folder.join("run"));
    stdout(&run(folder, &["run", "merge", "run", "--into", "whole"]));
    assert_eq!(judged(&folder.join("whole")), before);
    stdout(&run(folder, &["replay", "whole", "--strict"]));
    stdout(&run(folder, &["run", "rebuild", "run"]));
    assert_eq!(judged(&folder.join("run")), before);
}

#[test]
fn a_merge_that_was_killed_between_two_files_goes_on_and_doubles_nothing() {
    let (folder, bundle) = finished();
    let folder = folder.path();
    let name = bundle.file_name().unwrap();
    let merge = || run(folder, &["run", "merge", "run", "--into", "whole"]);
    stdout(&merge());
    // As a kill leaves it: the manifest is there, its events and all lines are not.
    let brought = folder.join("whole/judgements").join(name);
    fs::remove_file(brought.join("events.jsonl")).unwrap();
    fs::remove_file(folder.join("whole/results.jsonl")).unwrap();
    let replayed = run(folder, &["replay", "whole", "--tools", "recorded"]);
    assert!(stdout(&replayed).contains("1 interrupted"), "{}", stdout(&replayed));
    stdout(&run(folder, &["trace", "pack", "whole", "-o", "whole.zip"]));
    stdout(&run(folder, &["trace", "unpack", "whole.zip", "-o", "unpacked"]));
    stdout(&run(folder, &["replay", "unpacked", "--tools", "recorded"]));
    stdout(&merge());
    assert_eq!(judged(&folder.join("whole")), judged(&folder.join("run")));
    let count = |run: &str| fs::read_dir(folder.join(run).join("judgements")).unwrap().count();
    assert_eq!(count("whole"), count("run"));
    stdout(&run(folder, &["replay", "whole", "--strict"]));
}
