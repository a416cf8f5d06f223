//! Runs that are killed, interrupted, or out of disk: nothing is lost and nothing is done twice.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use serde_json::Value;

use super::command::{deeplook, json, stderr, stdout};
use super::runs::{data, eval, exit, judged, lines, policy, run};
use super::wire::server::{Server, Step, text};

/// As [`policy`], after a while.
fn slowly(request: &Value) -> Value {
    thread::sleep(Duration::from_millis(60));
    policy(request)
}

fn very_slowly(request: &Value) -> Value {
    thread::sleep(Duration::from_secs(3));
    policy(request)
}

fn started(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let done = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

/// Waits until `server` was asked so often.
fn until_asked(server: &Server, times: usize) {
    let started = Instant::now();
    while server.arrived().len() < times {
        assert!(started.elapsed() < Duration::from_secs(60), "nobody asks");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn killed_again_and_again_it_ends_as_the_undisturbed_run() {
    let folder = data(15);
    let calm = Server::start(vec![Step::Reply(policy)]);
    stdout(&run(folder.path(), &calm, &["--run", "calm", "--no-cache"]));
    let faulty = |number: usize| match number % 6 {
        4 => text(503, "soon"),
        _ => Step::Reply(slowly),
    };
    let server = Server::start((0..2000).map(faulty).collect());
    // The model's name and address are in the traces, and another server has another address.
    let more = ["--no-cache", "--concurrency", "6"];
    let mut kills = 0;
    for round in 0..7 {
        let mut child = started(eval(folder.path(), &server, &more));
        until_asked(&server, (round + 1) * 7);
        thread::sleep(Duration::from_millis(23 * round as u64 % 50));
        child.kill().unwrap();
        kills += usize::from(!child.wait().unwrap().success());
    }
    assert!(kills >= 5, "it was killed {kills} times");
    let before = lines(&folder.path().join("run"));
    stdout(&run(folder.path(), &server, &more));
    let after = lines(&folder.path().join("run"));
    for (key, line) in &before {
        assert_eq!(Some(line), after.get(key), "what was finished stays as it was");
    }
    assert_eq!(after.len(), 60);
    assert_eq!(judged(&folder.path().join("calm")), judged(&folder.path().join("run")));
}

#[test]
fn one_process_at_a_time() {
    let folder = data(4);
    let server = Server::start(vec![Step::Reply(very_slowly), Step::Reply(policy)]);
    let first = started(eval(folder.path(), &server, &["--concurrency", "2"]));
    until_asked(&server, 1);
    let second = run(folder.path(), &server, &[]);
    assert_eq!(exit(&second), Some(2));
    let id = format!("process {}", first.id());
    assert!(stderr(&second).contains(&id), "{}", stderr(&second));
    let status = deeplook(folder.path()).args(["run", "status", "run", "--json"]).output().unwrap();
    assert!(json(&status)["running"].as_str().unwrap().starts_with(&id), "{status:?}");
    assert_eq!(exit(&first.wait_with_output().unwrap()), Some(0));
    assert_eq!(lines(&folder.path().join("run")).len(), 16);
}

#[test]
fn the_first_interrupt_waits_and_the_second_does_not() {
    let folder = data(6);
    let mut steps = vec![Step::Reply(very_slowly); 12];
    steps.push(Step::Reply(policy));
    let server = Server::start(steps);
    let interrupted = |times: u64, asked: usize| -> Output {
        let child = started(eval(folder.path(), &server, &["--no-cache", "--concurrency", "3"]));
        until_asked(&server, asked);
        for _ in 0..times {
            signal(&child, "-INT");
            thread::sleep(Duration::from_millis(700));
        }
        child.wait_with_output().unwrap()
    };
    let output = interrupted(1, 3);
    assert_eq!(exit(&output), Some(1), "{}", stderr(&output));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("interrupted") && shown.contains("goes on"), "{shown}");
    let finished = lines(&folder.path().join("run")).len();
    assert_eq!((finished, server.arrived().len()), (3, 3), "what was under way is finished");

    let output = interrupted(2, finished + 3);
    assert_eq!(exit(&output), Some(1), "{}", stderr(&output));
    assert_eq!(lines(&folder.path().join("run")).len(), finished, "nothing was waited for");
    stdout(&run(folder.path(), &server, &["--concurrency", "12"]));
    assert_eq!(lines(&folder.path().join("run")).len(), 24);
}

#[test]
fn however_often_it_is_killed_no_judgement_is_given_up() {
    let folder = data(1);
    let server = Server::start(vec![Step::Reply(slowly)]);
    let more = ["--no-cache", "--criterion", "vc", "--concurrency", "2"];
    let mut killed = 0;
    for round in 0..60u64 {
        let mut child = started(eval(folder.path(), &server, &more));
        // From the very beginning to the time of an answer.
        thread::sleep(Duration::from_millis(3 + 7 * round % 61));
        child.kill().unwrap();
        killed += usize::from(!child.wait().unwrap().success());
        // An answer that came in time is a judgement that cannot be killed any more.
        let _ = fs::remove_dir_all(folder.path().join("run/judgements"));
        let _ = fs::remove_file(folder.path().join("run/results.jsonl"));
    }
    assert!(killed >= 50, "it was killed {killed} times");
    let shown = stdout(&run(folder.path(), &server, &more));
    assert!(shown.contains("2 verdict") && !shown.contains("failed"), "{shown}");
    let left = fs::read_dir(folder.path().join("run/under-way")).unwrap();
    assert_eq!(left.count(), 0, "nothing is remembered of what has an outcome");
}

#[test]
fn who_waits_for_a_server_is_not_to_blame_for_a_death() {
    let folder = data(1);
    let silent = Server::start(vec![Step::Reply(|_| {
        thread::sleep(Duration::from_secs(600));
        Value::Null
    })]);
    let mut child = started(eval(folder.path(), &silent, &["--no-cache", "--concurrency", "4"]));
    until_asked(&silent, 4);
    let noted = || fs::read_dir(folder.path().join("run/under-way")).unwrap().count();
    assert_eq!(noted(), 1, "only that a process is at work");
    signal(&child, "-ABRT");
    child.wait().unwrap();
    let good = Server::start(vec![Step::Reply(policy)]);
    let output = run(folder.path(), &good, &["--mix"]);
    assert!(stdout(&output).contains("4 verdict"));
    assert!(!stderr(&output).contains("a process died"), "{}", stderr(&output));
    assert_eq!(noted(), 0);
}

/// Pictures that are ordinary, and too large for a process that may have little memory.
fn with_a_large_case(folder: &Path) {
    let set = folder.join("set");
    let large = image::RgbImage::new(9000, 9000);
    let encoder = |name: &str| {
        let file = fs::File::create(set.join(name)).unwrap();
        let (quick, filter) = (CompressionType::Fast, FilterType::NoFilter);
        PngEncoder::new_with_quality(file, quick, filter)
    };
    large.write_with_encoder(encoder("large.png")).unwrap();
    let line = serde_json::json!({ "id": "large", "source": "large.png", "instruction": "grow",
                                   "edits": { "good": "large.png" } });
    let path = set.join("cases.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("{line}\n{text}")).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_judgement_that_aborts_the_process_does_not_stop_the_run_for_ever() {
    let folder = data(1);
    with_a_large_case(folder.path());
    let server = Server::start(vec![Step::Reply(policy)]);
    let more = ["--no-cache", "--criterion", "vc", "--concurrency", "4"];
    let command = eval(folder.path(), &server, &more);
    // In KiB: enough for all but the large one.
    let starved = || limited(folder.path(), "ulimit -v 600000; ulimit -c 0", &command);
    let run_folder = folder.path().join("run");
    for round in 0..5 {
        let output = starved();
        assert_eq!(exit(&output), None, "round {round}: {}", stderr(&output));
        // From the second time on the others come first.
        assert!(round == 0 || lines(&run_folder).len() == 2, "round {round}");
    }
    let output = starved();
    let shown = stdout(&output);
    assert!(shown.contains("2 verdict") && shown.contains("1 failed"), "{shown}");
    assert!(stderr(&output).contains("when a process died"), "{}", stderr(&output));
    let all = lines(&run_folder);
    let failed = all.values().find(|line| line["outcome"] == "failed").unwrap();
    assert_eq!((&failed["case"], &failed["score"]), (&Value::from("large"), &Value::Null));
    assert!(failed["reason"].as_str().unwrap().contains("5 processes aborted"), "{failed}");
    let replayed = deeplook(folder.path()).args(["replay", "run"]).output().unwrap();
    assert_eq!(exit(&replayed), Some(0), "{}", String::from_utf8_lossy(&replayed.stdout));

    // With memory enough it is judged after all.
    let shown = stdout(&run(folder.path(), &server, &[&more[..], &["--retry", "failed"]].concat()));
    assert!(shown.contains("3 verdict"), "{shown}");
    assert_eq!(fs::read_dir(run_folder.join("under-way")).unwrap().count(), 0);
}

/// Runs a command from a shell that has made these settings before.
fn limited(folder: &Path, settings: &str, command: &Command) -> Output {
    let words: Vec<String> = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let script = format!("{settings}; exec {}", words.join(" "));
    let mut shell = Command::new("sh");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.current_dir(folder).args(["-c", &script]).output().unwrap()
}

/// Files may grow to so many blocks, as if the disk were full.
fn with_small_files(folder: &Path, blocks: u32, command: &Command) -> Output {
    limited(folder, &format!("trap '' XFSZ; ulimit -f {blocks}"), command)
}

#[test]
fn a_full_disk_stops_it_cleanly() {
    let folder = data(15);
    let server = Server::start(vec![Step::Reply(policy)]);
    let more = ["--concurrency", "2"];
    let mut stopped_in_the_middle = false;
    for blocks in [2, 20, 40, 60] {
        let output = with_small_files(folder.path(), blocks, &eval(folder.path(), &server, &more));
        assert_eq!(exit(&output), Some(2), "{blocks} blocks: {}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains("disk full") || said.contains("cannot write run/"), "{said}");
        let results = folder.path().join("run/results.jsonl");
        if results.exists() {
            let text = fs::read_to_string(&results).unwrap();
            assert!(text.is_empty() || text.ends_with('\n'), "no half line");
            stopped_in_the_middle |= !text.is_empty();
        }
    }
    assert!(stopped_in_the_middle);
    stdout(&run(folder.path(), &server, &more));
    assert_eq!(lines(&folder.path().join("run")).len(), 60);
}

/// Evidence that somebody takes away in the middle is missed: no run ends as if all were there.
#[test]
fn a_run_whose_folder_goes_away_says_so() {
    for part in ["", "judgements", "results.jsonl", "blobs"] {
        let folder = data(30);
        let run = folder.path().join("run");
        let server = Server::start(vec![Step::Reply(|request| {
            thread::sleep(Duration::from_millis(15));
            policy(request)
        })]);
        let child = started(eval(folder.path(), &server, &["--no-cache", "--concurrency", "2"]));
        until_asked(&server, 40);
        fs::rename(run.join(part), folder.path().join("elsewhere")).unwrap();
        let output = child.wait_with_output().unwrap();
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{part}: {told}");
        assert!(told.contains("removed"), "{part}: {told}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("120 of 120"), "{part}");
    }
}
