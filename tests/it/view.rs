//! `deeplook view`: what it answers, what it refuses, what it writes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{deeplook, json as printed_json, pair, run, stderr, stdout};

/// A run of two judgements in `run/`.
fn judged() -> TempDir {
    let (folder, _) = pair();
    let args = ["judge", "source.png", "edited.png", "-i", "Change it", "--trace", "run", "--json"];
    let judged = printed_json(&run(folder.path(), &args));
    assert_eq!(judged["judgements"].as_array().unwrap().len(), 2);
    folder
}

fn bundles(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("run/judgements")).unwrap();
    let mut bundles: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    bundles.sort();
    bundles
}

/// A viewer that ends with the test.
struct Viewer {
    process: Child,
    port: u16,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Viewer {
    fn start(folder: &Path, path: &str) -> Self {
        let mut process =
            deeplook(folder).args(["view", path]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split("http://127.0.0.1:").nth(1).unwrap_or_else(|| panic!("{line}"));
        let port = port.trim().trim_end_matches('/').parse().unwrap();
        Self { process, port }
    }

    /// Status and the whole answer to a request line with this host.
    fn ask_as(&self, host: &str, method: &str, target: &str) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let request =
            format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
        (status, answer)
    }

    fn get(&self, target: &str) -> (u16, String) {
        let (status, answer) = self.ask_as(&format!("localhost:{}", self.port), "GET", target);
        (status, String::from_utf8_lossy(&answer).into_owned())
    }
}

#[test]
fn the_viewer_shows_a_run_to_this_machine_only() {
    let folder = judged();
    let viewer = Viewer::start(folder.path(), "run");
    let (status, page) = viewer.get("/");
    assert_eq!(status, 200);
    let page = page.to_lowercase();
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.contains(header), "{page}");
    }
    let (_, data) = viewer.get("/data?criterion=vc");
    let data: Value = serde_json::from_str(data.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(data["total"], 2);
    assert_eq!(data["matched"], 1);
    assert_eq!(data["rows"][0]["instruction"], "Change it");
    assert_eq!(data["facets"]["criterion"], json!([["if", 1], ["vc", 1]]));

    let (_, case) = viewer.get("/case/0.html");
    assert!(case.contains("localize_differences"));
    let blob = case.split("../blobs/").nth(1).unwrap().split('"').next().unwrap();
    let (status, answer) =
        viewer.ask_as(&format!("127.0.0.1:{}", viewer.port), "GET", &format!("/blobs/{blob}"));
    assert_eq!(status, 200);
    assert!(String::from_utf8_lossy(&answer).contains("image/png"));

    let evil = format!("evil.example:{}", viewer.port);
    for target in ["/", "/data", "/case/0.html", &format!("/blobs/{blob}")] {
        assert_eq!(viewer.ask_as(&evil, "GET", target).0, 403, "{target}");
        assert_eq!(viewer.ask_as(&format!("[::1]:{}", viewer.port), "POST", target).0, 405);
    }
    for target in [
        "/case/2.html",
        "/case/../../etc/passwd",
        "/blobs/..%2f..%2fmanifest.json",
        "/assets/..%2fstyle.css",
        "/run/results.jsonl",
    ] {
        assert_eq!(viewer.get(target).0, 404, "{target}");
    }
}

/// A picture of one colour that browsers do not show, some 700 KB for 25 megapixels.
#[cfg(target_os = "linux")]
fn large_tiff(side: u32) -> Vec<u8> {
    let run = |length: u32| [(257 - length) as u8, 7];
    let mut row: Vec<u8> = (0..3 * side / 128).flat_map(|_| run(128)).collect();
    if 3 * side % 128 > 1 {
        row.extend(run(3 * side % 128));
    }
    let strip = row.repeat(side as usize);
    let (depths, start) = (8 + 2 + 12 * 10 + 4, 8 + 2 + 12 * 10 + 4 + 6);
    let length = strip.len() as u32;
    let fields: [(u16, u16, u32, u32); 10] = [
        (256, 4, 1, side),
        (257, 4, 1, side),
        (258, 3, 3, depths),
        (259, 3, 1, 32773),
        (262, 3, 1, 2),
        (273, 4, 1, start),
        (277, 3, 1, 3),
        (278, 4, 1, side),
        (279, 4, 1, length),
        (284, 3, 1, 1),
    ];
    let mut bytes = b"II*\0\x08\0\0\0\x0a\0".to_vec();
    for (tag, kind, count, value) in fields {
        bytes.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
        bytes.extend([count.to_le_bytes(), value.to_le_bytes()].concat());
    }
    bytes.extend([0, 0, 0, 0, 8, 0, 8, 0, 8, 0]);
    [bytes, strip].concat()
}

#[cfg(target_os = "linux")]
#[test]
fn large_pictures_are_made_ready_one_after_the_other() {
    let folder = judged();
    let tiff = large_tiff(5000);
    let hash = deeplook::hash::Hash::of(&tiff);
    fs::write(folder.path().join(format!("run/blobs/{hash}.tiff")), tiff).unwrap();
    let viewer = Viewer::start(folder.path(), "run");
    let target = format!("/blobs/{hash}.png");
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(viewer.get(&target).0, 200));
        }
    });
    let status = fs::read_to_string(format!("/proc/{}/status", viewer.process.id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    // One takes some 150 MB.
    assert!(most < 400_000, "{most} kB for six pictures of 75 MB");
}

#[test]
fn the_pages_on_disk_are_whole_and_carry_their_policy() {
    let folder = judged();
    let written = run(folder.path(), &["view", "run", "--out", "pages"]);
    assert!(stdout(&written).contains("pages"));
    let pages = folder.path().join("pages");
    for page in ["index.html", "case/0.html", "case/1.html"] {
        let page = fs::read_to_string(pages.join(page)).unwrap();
        let policy =
            "http-equiv=\"Content-Security-Policy\" content=\"default-src &#x27;none&#x27;";
        assert!(page.contains(policy));
        assert!(!page.contains("http://") && !page.contains("https://"));
        for (before, _) in page.match_indices("../blobs/") {
            let name = page[before + 9..].split('"').next().unwrap();
            assert!(pages.join("blobs").join(name).is_file(), "{name}");
        }
    }
    let rows = fs::read_to_string(pages.join("data/0001.js")).unwrap();
    assert!(rows.starts_with("deeplook.add([{"));
    // Again over the first; never over what is somebody else's.
    assert_eq!(run(folder.path(), &["view", "run", "--out", "pages"]).status.code(), Some(0));
    let refused = run(folder.path(), &["view", "run", "--out", "run"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--out"));
    assert!(folder.path().join("run/blobs").is_dir());
    let left = fs::read_dir(folder.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".deeplook")), "{left:?}");
}

/// Every file below a folder with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let inner = files(&path).into_iter();
            found.extend(inner.map(|(below, bytes)| (path.join(below), bytes)));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    let relative = |path: PathBuf| path.strip_prefix(folder).unwrap().to_owned();
    found.into_iter().map(|(path, bytes)| (relative(path), bytes)).collect()
}

#[test]
fn a_run_that_was_copied_elsewhere_gives_the_same_pages() {
    let folder = judged();
    for (path, bytes) in files(&folder.path().join("run")) {
        let copy = folder.path().join("far/away/run").join(path);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, bytes).unwrap();
    }
    stdout(&run(folder.path(), &["view", "run", "--out", "here"]));
    stdout(&run(folder.path(), &["view", "far/away/run", "--out", "there"]));
    let [here, there] = ["here", "there"].map(|name| files(&folder.path().join(name)));
    assert!(here.len() > 10);
    assert_eq!(here, there);
}

#[test]
fn hostile_damaged_and_future_traces_are_shown_for_what_they_are() {
    let folder = judged();
    let [first, second] = bundles(folder.path()).try_into().unwrap();
    let evil = "</script><script>alert(1)</script>\u{202e}";
    let path = first.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["case"]["instruction"] = json!(evil);
    manifest["case"]["id"] = json!(evil);
    let source = manifest["case"]["pictures"]["source"]["blob"].as_str().unwrap().to_owned();
    fs::write(&path, manifest.to_string()).unwrap();
    let path = second.join("manifest.json");
    manifest["format"]["major"] = json!(99);
    fs::write(&path, manifest.to_string()).unwrap();
    fs::remove_file(folder.path().join(format!("run/blobs/{source}.png"))).unwrap();
    let line = json!({"case": "elsewhere", "criterion": "if", "label": "x", "trace": "../../etc"});
    fs::write(folder.path().join("run/results.jsonl"), format!("{line}\n{{cut")).unwrap();

    stdout(&run(folder.path(), &["view", "run", "--out", "pages"]));
    let read = |page: &str| fs::read_to_string(folder.path().join("pages").join(page)).unwrap();
    let all = [read("case/0.html"), read("case/1.html"), read("case/2.html")];
    let with = |words: &str| all.iter().filter(|page| page.contains(words)).count();
    assert_eq!(with("alert(1)&lt;&#x2f;script&gt;[U+202E]"), 1);
    assert_eq!(with("<script>alert"), 0);
    assert_eq!(with("has format 99"), 1);
    assert_eq!(with("not as they were written"), 1, "the manifest was edited");
    assert_eq!(with("Original cannot be shown"), 1);
    assert_eq!(with("There is no trace of this judgement"), 1);
    let rows = read("data/0001.js");
    assert!(!rows.contains('<') && rows.contains("\\u003cscript\\u003e"));
    assert!(rows.contains("is not in the run: refused"));
}

#[test]
fn a_label_that_was_changed_beside_its_trace_is_noticed() {
    let folder = judged();
    let [first, _] = bundles(folder.path()).try_into().unwrap();
    let name = first.file_name().unwrap().to_str().unwrap();
    let line = json!({
        "case": "x", "criterion": "if", "label": "Bribed", "trace": format!("judgements/{name}"),
    });
    fs::write(folder.path().join("run/results.jsonl"), format!("{line}\n")).unwrap();
    stdout(&run(folder.path(), &["view", "run", "--out", "pages"]));
    let pages = ["case/0.html", "case/1.html"]
        .map(|page| fs::read_to_string(folder.path().join("pages").join(page)).unwrap());
    assert!(pages.iter().any(|page| page.contains("one of them was changed")));
}

#[test]
fn nothing_to_look_at_is_an_error_that_says_what_to_name() {
    let folder = tempfile::tempdir().unwrap();
    for path in [".", "no/such/folder"] {
        let output = run(folder.path(), &["view", path]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("trace"), "{}", stderr(&output));
    }
}

/// Half a request, or a client that takes nothing, holds up nobody who wants to stop.
#[test]
#[cfg(unix)]
fn the_viewer_stops_at_once_whoever_is_connected() {
    let folder = judged();
    let mut viewer = Viewer::start(folder.path(), "run");
    let mut half = TcpStream::connect(("127.0.0.1", viewer.port)).unwrap();
    half.write_all(b"G").unwrap();
    let mut deaf = TcpStream::connect(("127.0.0.1", viewer.port)).unwrap();
    write!(deaf, "GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", viewer.port).unwrap();
    thread::sleep(Duration::from_millis(200));
    let id = viewer.process.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let started = Instant::now();
    let ended = loop {
        match viewer.process.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if started.elapsed() > Duration::from_secs(10) => break None,
            None => thread::sleep(Duration::from_millis(20)),
        }
    };
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
}
