//! Folders and archives that somebody sent: links lead nowhere, pipes do not hang, nothing outside is
//! read or written.

use std::fs;
use std::io::{Cursor, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::command::{run as deeplook_in, stderr, stdout};
use super::runs::{data, eval, policy};
use super::wire::server::{Server, Step};

const SECRET: &str = "CANARY-7f3a91";

/// A finished run of 4 judgements in `run/`, and what is nobody's business in `private/`.
fn run_and_secret() -> (TempDir, Server) {
    let folder = data(1);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&eval(folder.path(), &server, &[]).output().unwrap());
    let private = folder.path().join("private");
    fs::create_dir_all(private.join("judgements/one")).unwrap();
    for name in ["secret", "judgements/one/manifest.json", "judgements/one/events.jsonl"] {
        fs::write(private.join(name), format!("{{\"{SECRET}\": 1}}\n")).unwrap();
    }
    (folder, server)
}

fn first_in(folder: &Path) -> PathBuf {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.remove(0)
}

/// Puts a link to `target` in the place of a file or folder; the way back.
fn replaced_by_link(path: &Path, target: &Path) -> impl FnOnce() {
    let (path, aside) = (path.to_owned(), path.with_extension("aside"));
    fs::rename(&path, &aside).unwrap();
    symlink(target, &path).unwrap();
    move || {
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
    }
}

/// Ends what takes too long.
fn in_time(mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("it hangs: {command:?}");
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

fn holds_secret(path: &Path) -> bool {
    let holds = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            fs::read_dir(path).unwrap().any(|entry| holds_secret(&entry.unwrap().path()))
        }
        Ok(_) => holds(&fs::read(path).unwrap()),
        Err(_) => false,
    }
}

#[test]
fn what_links_lead_to_is_not_shown_packed_or_told() {
    let (folder, server) = run_and_secret();
    let (run, private) = (folder.path().join("run"), folder.path().join("private"));
    let bundle = first_in(&run.join("judgements"));
    let places = [
        (bundle.join("events.jsonl"), private.join("secret")),
        (bundle.join("manifest.json"), private.join("secret")),
        (first_in(&run.join("blobs")), private.join("secret")),
        (run.join("results.jsonl"), private.join("secret")),
        (run.join("run.json"), private.join("secret")),
        (run.join("judgements"), private.join("judgements")),
        (bundle, private.join("judgements/one")),
    ];
    for (place, target) in places {
        let back = replaced_by_link(&place, &target);
        for args in [
            &["view", "run", "--out", "pages"][..],
            &["trace", "pack", "run", "-o", "run.zip"],
            &["trace", "show", "run"],
            &["trace", "export", "run"],
            &["replay", "run", "--tools", "recorded"],
            &["run", "status", "run"],
            &["run", "rebuild", "run"],
            &["run", "merge", "run", "--into", "merged"],
            &["report", "run"],
            &["compare", "run", "run"],
            &["agree", "run", "--labels", "run/results.jsonl"],
        ] {
            let output = deeplook_in(folder.path(), args);
            let said = [output.stdout.as_slice(), &output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(!said.contains(SECRET), "{place:?}, {args:?}: {said}");
            for made in ["pages", "run.zip", "merged"] {
                let made = folder.path().join(made);
                assert!(!holds_secret(&made), "{place:?}, {args:?}: it is in {made:?}");
                let _ = fs::remove_dir_all(&made).or_else(|_| fs::remove_file(&made));
            }
        }
        fs::remove_file(run.join("results.jsonl.damaged")).ok();
        back();
        let again = eval(folder.path(), &server, &[]).output().unwrap();
        assert!(stdout(&again).contains("4 of 4"), "{place:?}");
    }
}

#[test]
fn a_blob_is_packed_only_if_it_is_what_its_name_says() {
    let (folder, _server) = run_and_secret();
    let blobs = fs::read_dir(folder.path().join("run/blobs")).unwrap();
    let mut blobs = blobs.map(|entry| entry.unwrap().path());
    let blob = blobs.find(|path| path.extension().is_some_and(|end| end == "png")).unwrap();
    fs::write(&blob, SECRET).unwrap();
    let output = deeplook_in(folder.path(), &["trace", "pack", "run", "-o", "run.zip"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("does not hold what its name says"), "{}", stderr(&output));
    assert!(!folder.path().join("run.zip").exists());
}

#[test]
fn a_run_is_not_written_through_links() {
    let (folder, server) = run_and_secret();
    let (run, away) = (folder.path().join("run"), folder.path().join("away"));
    for name in ["results.jsonl", "judgements", "blobs", "run.json", ".lock"] {
        for is_there in [true, false] {
            let _ = fs::remove_dir_all(&run);
            fs::create_dir(&run).unwrap();
            fs::create_dir(&away).unwrap();
            let target = away.join("target");
            match name {
                _ if !is_there => {}
                "judgements" | "blobs" => fs::create_dir(&target).unwrap(),
                _ => fs::write(&target, "").unwrap(),
            }
            symlink(&target, run.join(name)).unwrap();
            let output = eval(folder.path(), &server, &["--mix"]).output().unwrap();
            assert_ne!(output.status.code(), Some(101), "{}", stderr(&output));
            let written = |path: &Path| match path.is_dir() {
                true => fs::read_dir(path).unwrap().count() > 0,
                false => fs::read(path).is_ok_and(|bytes| !bytes.is_empty()),
            };
            assert!(!written(&target), "{name}: {}", stderr(&output));
            assert_eq!(target.exists(), is_there, "{name}: {}", stderr(&output));
            fs::remove_dir_all(&away).unwrap();
        }
    }
}

#[test]
fn pipes_and_devices_hold_nobody_up() {
    let (folder, server) = run_and_secret();
    let run = folder.path().join("run");
    let bundle = first_in(&run.join("judgements"));
    let files = [
        run.join("results.jsonl"),
        run.join("run.json"),
        bundle.join("manifest.json"),
        bundle.join("events.jsonl"),
        first_in(&run.join("blobs")),
    ];
    for file in files {
        for pipe in [true, false] {
            let aside = file.with_extension("aside");
            fs::rename(&file, &aside).unwrap();
            if pipe {
                assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
            } else {
                symlink("/dev/zero", &file).unwrap();
            }
            for args in [
                &["view", "run", "--out", "pages"][..],
                &["run", "status", "run"],
                &["run", "merge", "run", "--into", "merged"],
                &["report", "run"],
                &["replay", "run", "--tools", "recorded"],
                &["trace", "pack", "run", "-o", "run.zip"],
                &["compare", "run", "run"],
                &["eval", "--from-traces", "run", "--run", "again", "--mode", "plain"],
            ] {
                let mut command = super::command::deeplook(folder.path());
                command.args(args);
                let output = in_time(command);
                let code = output.status.code();
                assert!(matches!(code, Some(0..=2)), "{args:?}: {}", stderr(&output));
                for made in ["pages", "merged", "again", "run.zip"] {
                    let made = folder.path().join(made);
                    let _ = fs::remove_dir_all(&made).or_else(|_| fs::remove_file(&made));
                }
            }
            in_time(eval(folder.path(), &server, &[]));
            fs::remove_file(&file).ok();
            fs::rename(&aside, &file).unwrap();
        }
    }
}

#[test]
fn a_data_set_in_a_folder_is_not_read_through_a_link() {
    let folder = data(1);
    let set = folder.path().join("set");
    fs::rename(set.join("cases.jsonl"), folder.path().join("elsewhere.jsonl")).unwrap();
    symlink("../elsewhere.jsonl", set.join("cases.jsonl")).unwrap();
    let output = deeplook_in(folder.path(), &["dataset", "check", "set"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("leads out"), "{}", stderr(&output));
    // Inside it is no way out.
    fs::remove_file(set.join("cases.jsonl")).unwrap();
    fs::rename(folder.path().join("elsewhere.jsonl"), set.join("real")).unwrap();
    symlink("real", set.join("cases.jsonl")).unwrap();
    stdout(&deeplook_in(folder.path(), &["dataset", "check", "set"]));
}

/// An archive of these files, all with the text `{}`.
fn zip_of(names: &[&str]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for name in names {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(b"{}").unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn an_archive_that_others_would_read_otherwise_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // The writer refuses two files of one name: one of them gets it afterwards.
    let twice = zip_of(&["manifest.json", "manifest.jsoX", "events.jsonl"]);
    let (from, to) = (b"manifest.jsoX", b"manifest.json");
    let renamed = |count: usize| {
        let mut bytes = twice.clone();
        let places: Vec<usize> =
            (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
        assert_eq!(places.len(), 2);
        for at in places.into_iter().rev().take(count) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
        bytes
    };
    let good = zip_of(&["manifest.json", "events.jsonl"]);
    let archives = [
        ("two manifests", renamed(2), "twice"),
        ("two names for one file", renamed(1), "twice"),
        ("another archive before it", [good.as_slice(), &good].concat(), "before its beginning"),
        (
            "a trace and a run",
            zip_of(&["manifest.json", "events.jsonl", "judgements/a/manifest.json"]),
            "at once",
        ),
        ("a trace with results", zip_of(&["manifest.json", "results.jsonl"]), "at once"),
    ];
    for (what, bytes, expected) in archives {
        fs::write(folder.path().join("a.zip"), bytes).unwrap();
        let output = deeplook_in(folder.path(), &["trace", "unpack", "a.zip", "--out", "out"]);
        assert_eq!(output.status.code(), Some(2), "{what}");
        assert!(stderr(&output).contains(expected), "{what}: {}", stderr(&output));
        assert!(!folder.path().join("out").exists(), "{what}");
    }
    fs::write(folder.path().join("a.zip"), good).unwrap();
    stdout(&deeplook_in(folder.path(), &["trace", "unpack", "a.zip", "--out", "out"]));
}
