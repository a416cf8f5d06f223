//! `deeplook models`, with a hub on this machine; and what happens where there is no runtime.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::command::{deeplook, json, pair, run, stderr, stdout};
use super::judging::files;

/// A model hub: every file is a run of bytes that ends with its name.
struct Hub {
    url: String,
    seen: Arc<Requests>,
}

/// Path and `Range` of each request.
type Requests = Mutex<Vec<(String, Option<String>)>>;

/// What the hub does with the large file.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Good,
    /// Closes the first connection in the middle.
    Drops,
    /// The same, and the file has changed when it is asked for again.
    DropsAndChanges,
    NotFound,
}

fn content(path: &str, version: u8) -> Vec<u8> {
    let mut bytes = vec![version; if path.ends_with(".onnx") { 300_000 } else { 20 }];
    bytes.extend(path.as_bytes());
    bytes
}

impl Hub {
    fn start(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let hub = Self { url, seen: Arc::clone(&seen) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, mood, &seen);
            }
        });
        hub
    }

    fn fetch(&self, folder: &Path) -> std::process::Output {
        deeplook(folder)
            .args(["models", "fetch", "grounding-dino-tiny"])
            .env("HF_ENDPOINT", &self.url)
            .output()
            .unwrap()
    }
}

fn serve(mut stream: TcpStream, mood: Mood, seen: &Requests) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
    let headers: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let header = |name: &str| {
        let line = headers.iter().find(|line| line.to_lowercase().starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let range = header("range");
    let mut seen = seen.lock().unwrap();
    let first = !seen.iter().any(|(before, _)| *before == path);
    seen.push((path.clone(), range.clone()));
    drop(seen);
    if mood == Mood::NotFound {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
        return;
    }
    let version = if mood == Mood::DropsAndChanges && !first { 2 } else { 1 };
    let body = content(&path, version);
    let tag = format!("\"v{version}\"");
    // A range of another version is not given: the whole file is.
    let from = range.filter(|_| header("if-range").is_some_and(|asked| asked == tag));
    let from: usize = from
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok())
        .unwrap_or(0);
    let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
    let length = body.len() - from;
    let head = format!(
        "HTTP/1.1 {status}\r\netag: {tag}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes());
    let breaks = first && path.ends_with(".onnx") && mood != Mood::Good;
    let end = if breaks { 100_000 } else { body.len() };
    let _ = stream.write_all(&body[from..end]);
}

const MODEL: &str = "/onnx-community/grounding-dino-tiny-ONNX/resolve/main/onnx/model.onnx";

#[test]
fn a_model_is_fetched_listed_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(Mood::Good);
    let said = stdout(&hub.fetch(folder.path()));
    assert!(said.contains("fetched") && said.contains("runtime is still missing"), "{said}");
    let path = stdout(&run(folder.path(), &["models", "path", "detector"]));
    assert_eq!(fs::read(path.trim()).unwrap(), content(MODEL, 1));
    let list = json(&run(folder.path(), &["models", "list", "--json"]));
    let entry = |name: &str| {
        list.as_array().unwrap().iter().find(|line| line["name"] == name).unwrap().clone()
    };
    assert_eq!(entry("grounding-dino-tiny")["present"], true);
    assert_eq!(entry("runtime")["present"], false);
    stdout(&run(folder.path(), &["models", "check"]));
    assert!(stdout(&hub.fetch(folder.path())).contains("here already"));

    fs::write(path.trim(), b"damaged").unwrap();
    let checked = run(folder.path(), &["models", "check"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&checked.stdout).contains("--again"));
}

#[test]
fn a_broken_download_goes_on_where_it_broke() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(Mood::Drops);
    stdout(&hub.fetch(folder.path()));
    let path = stdout(&run(folder.path(), &["models", "path", "detector"]));
    assert_eq!(fs::read(path.trim()).unwrap(), content(MODEL, 1));
    let ranges: Vec<_> = hub.seen.lock().unwrap().iter().filter_map(|(_, r)| r.clone()).collect();
    assert_eq!(ranges.len(), 1, "{ranges:?}");
}

#[test]
fn a_file_that_changed_meanwhile_is_fetched_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(Mood::DropsAndChanges);
    stdout(&hub.fetch(folder.path()));
    let path = stdout(&run(folder.path(), &["models", "path", "detector"]));
    assert_eq!(fs::read(path.trim()).unwrap(), content(MODEL, 2));
}

#[test]
fn a_failed_fetch_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = Hub::start(Mood::NotFound).fetch(folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("404"), "{}", stderr(&output));
    assert_eq!(fs::read_dir(folder.path().join("cache/models")).unwrap().count(), 0);
    let output = run(folder.path(), &["models", "path", "detector"]);
    assert!(stderr(&output).contains("deeplook models fetch"), "{}", stderr(&output));
}

#[test]
fn an_unknown_model_is_said_with_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["models", "fetch", "yolo"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("grounding-dino-tiny"), "{}", stderr(&output));
}

#[test]
fn without_the_runtime_the_tool_says_how_to_get_it() {
    let (folder, _) = pair();
    let args = r#"{"detect_object_name": "red circle"}"#;
    let output = run(folder.path(), &["tool", "detect_object", "source.png", "--args", args]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("models fetch runtime") && said.contains("ORT_DYLIB_PATH"), "{said}");

    let broken = folder.path().join("libonnxruntime.so");
    fs::write(&broken, b"not a library").unwrap();
    for library in [broken.as_path(), Path::new("/no/such/library.so")] {
        let output = deeplook(folder.path())
            .args(["tool", "detect_object", "source.png", "--args", args])
            .env("ORT_DYLIB_PATH", library)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(said.contains("cannot load") && said.contains("ORT_DYLIB_PATH"), "{said}");
    }
}

#[test]
fn the_judge_goes_on_without_a_detector_and_the_trace_says_so() {
    let (folder, _) = pair();
    let args = ["judge", "source.png", "edited.png", "-i", "Remove the cup", "--trace", "run"];
    let output = run(folder.path(), &args);
    let said = stdout(&output);
    assert!(said.contains("without detect_object"), "{said}");
    let files = files(&folder.path().join("run"));
    let manifest = files.iter().find(|path| path.ends_with("manifest.json")).unwrap();
    let manifest = fs::read_to_string(manifest).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let why = manifest["tools"]["unavailable"]["detect_object"].as_str().unwrap();
    assert!(why.contains("deeplook models fetch detector"), "{why}");
}
