//! Saved traces: the golden ones replay, and whatever is done to them is found.

use std::fs;
use std::path::{Path, PathBuf};

use deeplook::hash::Hash;
use deeplook::replay::{Replayer, Tools};
use deeplook::tools::Toolbox;
use deeplook::trace::{Bundle, ResultLine, ToolsRecord, TraceError};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::command::{deeplook, run, stderr};
use super::ordered::Order;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/examples")
}

/// The golden bundle whose name begins like this.
pub(crate) fn golden(name: &str) -> PathBuf {
    let bundles = fs::read_dir(examples().join("run-2/judgements")).unwrap();
    let mut found = bundles.map(|entry| entry.unwrap().path());
    found.find(|path| path.file_name().unwrap().to_string_lossy().starts_with(name)).unwrap()
}

/// A copy of a golden bundle in a run of its own, to be tampered with.
pub(crate) struct Copy {
    pub(crate) folder: TempDir,
    pub(crate) manifest: Value,
    pub(crate) events: Vec<Value>,
    /// The events as they were.
    written: Vec<Value>,
    /// How the files order their fields: of the manifest, and of each line.
    orders: (Order, Vec<Order>),
}

impl Copy {
    pub(crate) fn of(name: &str) -> Self {
        let from = golden(name);
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("judgements/it")).unwrap();
        fs::create_dir_all(folder.path().join("blobs")).unwrap();
        for entry in fs::read_dir(examples().join("run-2/blobs")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.path().join("blobs").join(entry.file_name())).unwrap();
        }
        let text = |file: &str| fs::read_to_string(from.join(file)).unwrap();
        let events = text("events.jsonl");
        let events: Vec<Value> = events.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let copy = Self {
            folder,
            manifest: serde_json::from_str(&text("manifest.json")).unwrap(),
            written: events.clone(),
            events,
            orders: (
                Order::of(&text("manifest.json")),
                text("events.jsonl").lines().map(Order::of).collect(),
            ),
        };
        for file in ["manifest.json", "events.jsonl"] {
            fs::write(copy.bundle().join(file), text(file)).unwrap();
        }
        copy
    }

    pub(crate) fn bundle(&self) -> PathBuf {
        self.folder.path().join("judgements/it")
    }

    /// Writes the events with their seals as they are.
    pub(crate) fn write(&self) {
        let events = self.events.iter().enumerate();
        let lines: String = events.map(|(at, event)| self.line(at, event)).collect();
        fs::write(self.bundle().join("events.jsonl"), lines).unwrap();
    }

    /// Writes the events with new seals, as a forger who knows the format would.
    pub(crate) fn write_sealed(&mut self) {
        let manifest = fs::read(self.bundle().join("manifest.json")).unwrap();
        let mut before = Hash::of(&manifest);
        for at in 0..self.events.len() {
            let body = self.line(at, &self.events[at]);
            let body = &body[..body.rfind(",\"seal\"").unwrap()];
            before = Hash::of(format!("{before}\n{body}").as_bytes());
            self.events[at]["seal"] = json!(before);
        }
        self.write();
    }

    /// An event as deeplook writes it, byte for byte but for what was edited.
    fn line(&self, at: usize, event: &Value) -> String {
        let kind =
            |event: &Value| event["event"].as_object().and_then(|e| e.keys().next().cloned());
        // A line that was moved or added needs no more than its seal in the last place.
        let own = self.orders.1.get(at).filter(|_| kind(&self.written[at]) == kind(event));
        let sealed = || Order::of(r#"{"seq":0,"at":0,"event":0,"seal":0}"#).write(event);
        own.map_or_else(sealed, |order| order.write(event)) + "\n"
    }

    /// Where it is found out: the fields that differ. A trace that cannot be read is found out too.
    fn found(&self, tools: Tools<'_>) -> Vec<String> {
        match Replayer::new(tools).replay(&self.bundle()) {
            Ok(one) => one.divergences.iter().map(|d| d.field.clone()).collect(),
            Err(error) => vec![error.to_string()],
        }
    }

    fn event(&mut self, kind: &str) -> &mut Value {
        let event = self.events.iter_mut().rev().find(|event| event["event"].get(kind).is_some());
        &mut event.unwrap()["event"][kind]
    }
}

fn standard(_: &ToolsRecord) -> Toolbox {
    Toolbox::standard()
}

const LIVE: Tools<'static> = Tools::Live(&standard);

fn replay(folder: &Path, args: &[&str]) -> (Option<i32>, Value) {
    let output = deeplook(folder).arg("replay").args(args).arg("--json").output().unwrap();
    let printed = serde_json::from_slice(&output.stdout);
    (output.status.code(), printed.unwrap_or_else(|_| json!(stderr(&output))))
}

#[test]
fn the_golden_traces_replay() {
    let folder = tempfile::tempdir().unwrap();
    let run = examples().join("run-2");
    let run = run.to_str().unwrap();
    for tools in ["live", "recorded"] {
        let (code, report) = replay(folder.path(), &[run, "--tools", tools]);
        assert_eq!(code, Some(0), "{report:#}");
        assert_eq!(report["passed"], report["traces"].as_array().unwrap().len(), "{report:#}");
        for trace in report["traces"].as_array().unwrap() {
            let name = trace["trace"].as_str().unwrap();
            assert_eq!(trace["complete"], !name.contains("interrupted"), "{name}");
            // There is no runtime for networks here.
            let named = trace["not_rerun"].get("detect_object").is_some();
            assert_eq!(named, tools == "live" && name.contains("detector"), "{trace:#}");
        }
    }
    let (code, report) = replay(folder.path(), &[run, "--strict"]);
    assert_eq!((code, &report["diverged"]), (Some(1), &json!(2)), "{report:#}");

    let future = examples().join("future");
    let (code, report) = replay(folder.path(), &[future.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    let advice = report["unreadable"][0]["error"].as_str().unwrap();
    assert!(advice.contains("format 99") && advice.contains("newer"), "{advice}");
}

#[test]
fn every_edit_of_a_field_is_found() {
    for name in ["plain-verdict-edited-if", "tool-native", "oracle-two-targets", "failed-server"] {
        let mut copy = Copy::of(name);
        let replayer = Replayer::new(Tools::Recorded);
        let found = |copy: &Copy| match replayer.replay(&copy.bundle()) {
            Ok(one) => !one.divergences.is_empty(),
            Err(_) => true,
        };
        assert!(!found(&copy), "{name} is good to begin with");

        let text = fs::read(copy.bundle().join("manifest.json")).unwrap();
        for pointer in places(&copy.manifest) {
            for edited in edits(&copy.manifest, &pointer) {
                let edited = copy.orders.0.write(&edited);
                fs::write(copy.bundle().join("manifest.json"), edited + "\n").unwrap();
                assert!(found(&copy), "{name}: manifest {pointer}");
            }
        }
        fs::write(copy.bundle().join("manifest.json"), text).unwrap();

        let events = copy.events.clone();
        for index in 0..events.len() {
            for pointer in places(&events[index]) {
                for edited in edits(&events[index], &pointer) {
                    copy.events[index] = edited;
                    copy.write();
                    assert!(found(&copy), "{name}: event {index} {pointer}");
                }
            }
            copy.events[index] = events[index].clone();
        }
        copy.write();
        assert!(!found(&copy), "{name} is good again");
    }
}

#[test]
fn with_new_seals_only_what_nothing_depends_on_can_be_edited() {
    let original = Copy::of("tool-native").events;
    let last = original.iter().rposition(|event| event["event"].get("replied").is_some()).unwrap();
    let mut copy = Copy::of("tool-native");
    for (index, event) in original.iter().enumerate() {
        for pointer in places(event) {
            // Clocks, and what a server says beside its message. How the last message is worded
            // beside its thought and its answer changes nothing either.
            let free = [
                "/at",
                "/seal",
                "/elapsed_ms",
                "/repairs",
                "/finish_reason",
                "/reply/model",
                "/reply/id",
            ];
            let free = free.iter().any(|end| pointer.ends_with(end))
                || pointer.contains("/repairs/")
                || pointer.contains("/attempt_failed/attempt/") && !pointer.ends_with("/attempt")
                || index == last && pointer.contains("/reply/message");
            if free {
                continue;
            }
            // A field that no reader knows says nothing, but for what others wrote.
            let others = ["/reply/message", "/arguments", "/data"];
            let others = others.iter().any(|place| pointer.contains(place));
            let adds = |edited: &Value| edited.pointer(&pointer).unwrap().get("x").is_some();
            for edited in edits(event, &pointer).into_iter().filter(|e| others || !adds(e)) {
                copy.events[index] = edited;
                copy.write_sealed();
                assert!(!copy.found(LIVE).is_empty(), "event {index} {pointer}");
                copy.events.clone_from(&original);
            }
        }
    }
}

/// The places of all values in a value, as JSON pointers.
fn places(value: &Value) -> Vec<String> {
    let inner = |key: String, value: &Value| {
        let key = key.replace('~', "~0").replace('/', "~1");
        let mut all = vec![format!("/{key}")];
        all.extend(places(value).into_iter().map(|place| format!("/{key}{place}")));
        all
    };
    match value {
        Value::Object(fields) => {
            fields.iter().flat_map(|(key, value)| inner(key.clone(), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(i, value)| inner(i.to_string(), value)).collect()
        }
        _ => Vec::new(),
    }
}

/// The value with a change at this place.
fn edits(value: &Value, pointer: &str) -> Vec<Value> {
    let changed = match value.pointer(pointer).unwrap() {
        Value::String(text) => vec![json!(format!("{text}x")), json!("")],
        Value::Number(number) => vec![json!(number.as_f64().unwrap() + 1.0), json!(-1)],
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Null => vec![json!("x")],
        Value::Array(items) if !items.is_empty() => vec![json!(items[1..])],
        Value::Array(_) => vec![json!(["x"])],
        Value::Object(fields) => {
            let mut more = fields.clone();
            more.insert("x".to_owned(), json!(1));
            vec![Value::Object(more), Value::Null]
        }
    };
    let edit = |new: Value| {
        let mut edited = value.clone();
        *edited.pointer_mut(pointer).unwrap() = new;
        edited
    };
    changed.into_iter().filter(|new| Some(new) != value.pointer(pointer)).map(edit).collect()
}

#[test]
fn lines_that_are_gone_moved_doubled_or_added_are_found() {
    type Tamper = fn(&mut Vec<Value>);
    let tampers: [(&str, Tamper); 5] = [
        ("removed", |events| drop(events.remove(3))),
        ("moved", |events| events.swap(2, 3)),
        ("doubled", |events| events.insert(3, events[3].clone())),
        ("added", |events| events.push(events[0].clone())),
        ("a second end", |events| events.push(events.last().unwrap().clone())),
    ];
    for (what, tamper) in tampers {
        // With the old seals, and with new ones and new numbers.
        let mut copy = Copy::of("tool-native");
        tamper(&mut copy.events);
        copy.write();
        assert!(!copy.found(Tools::Recorded).is_empty(), "{what}");
        for (index, event) in copy.events.iter_mut().enumerate() {
            event["seq"] = json!(index);
        }
        copy.write_sealed();
        assert!(!copy.found(Tools::Recorded).is_empty(), "{what}, sealed anew");
    }
}

#[test]
fn an_edited_label_is_found_even_if_every_seal_is_new() {
    let label = json!({ "outcome": "verdict", "label": "Wrong Action", "score": 100.0 / 3.0 });
    for kinds in [&["decided"][..], &["finished"], &["decided", "finished"]] {
        let mut copy = Copy::of("tool-native");
        for kind in kinds {
            copy.event(kind)["outcome"] = label.clone();
        }
        copy.write_sealed();
        let found = copy.found(Tools::Recorded);
        assert!(
            found.iter().all(|field| field.contains("outcome")) && !found.is_empty(),
            "{found:?}"
        );
    }
    let mut copy = Copy::of("tool-native");
    let said = &mut copy.event("replied")["reply"]["message"]["content"];
    *said = json!(said.as_str().unwrap().replace("Flawless Execution", "Wrong Action"));
    copy.write_sealed();
    let found = copy.found(Tools::Recorded);
    assert!(found.iter().any(|field| field == "decided.outcome.label"), "{found:?}");
    // What the model said in an earlier turn is in every question after it.
    let mut copy = Copy::of("tool-native");
    copy.events[2]["event"]["replied"]["reply"]["message"]["content"] = json!("I saw it.");
    copy.write_sealed();
    assert!(copy.found(Tools::Recorded).contains(&"asked: digest".to_owned()));
    // A consistent forgery is the forger's own trace: only a digest kept elsewhere shows it.
    let mut copy = Copy::of("tool-native");
    let digest = Bundle::read(&golden("tool-native")).unwrap().digest;
    let said = &mut copy.event("replied")["reply"]["message"]["content"];
    *said = json!(said.as_str().unwrap().replace("Flawless Execution", "Wrong Action"));
    for kind in ["decided", "finished"] {
        copy.event(kind)["outcome"] = label.clone();
    }
    copy.write_sealed();
    let path = copy.bundle();
    let path = path.to_str().unwrap();
    let (code, report) = replay(copy.folder.path(), &[path]);
    assert_eq!(code, Some(0), "{report:#}");
    let (code, _) = replay(copy.folder.path(), &[path, "--digest", digest.as_str()]);
    assert_eq!(code, Some(1));
    let found = Bundle::read(&copy.bundle()).unwrap().digest;
    let (code, _) = replay(copy.folder.path(), &[path, "--digest", found.as_str()]);
    assert_eq!(code, Some(0));
}

#[test]
fn a_cut_end_is_said_and_is_no_pass_for_the_strict() {
    let copy = Copy::of("tool-native");
    let path = copy.bundle().join("events.jsonl");
    let text = fs::read(&path).unwrap();
    let lines: Vec<usize> = (0..text.len()).filter(|i| text[*i] == b'\n').collect();
    for end in [0, 1, lines[0] + 1, lines[2] + 40, lines[lines.len() - 2] + 1, text.len() - 1] {
        fs::write(&path, &text[..end]).unwrap();
        let one = Replayer::new(Tools::Recorded).replay(&copy.bundle()).unwrap();
        assert!(!one.complete && one.passes(false) && !one.passes(true), "{end}");
    }
    fs::write(&path, [&text[..], b"{\"seq\""].concat()).unwrap();
    assert!(!copy.found(Tools::Recorded).is_empty(), "something after the end");
}

#[test]
fn blobs_that_are_swapped_or_gone_are_found() {
    let named: Vec<PathBuf> =
        fs::read_dir(Copy::of("plain-verdict-edited-if").folder.path().join("blobs"))
            .unwrap()
            .map(|entry| PathBuf::from(entry.unwrap().file_name()))
            .collect();
    let bundle = Bundle::read(&golden("tool-native")).unwrap();
    let wanted = deeplook::trace::blobs_named(&bundle.manifest, &bundle.events);
    assert!(wanted.len() > 18);
    for file in named {
        let stem = file.to_str().unwrap().split('.').next().unwrap().to_owned();
        if !wanted.keys().any(|hash| hash.as_str() == stem) {
            continue;
        }
        let copy = Copy::of("tool-native");
        let path = copy.folder.path().join("blobs").join(&file);
        fs::write(&path, b"something else").unwrap();
        assert!(!copy.found(Tools::Recorded).is_empty(), "{stem} swapped");
        fs::remove_file(&path).unwrap();
        assert!(copy.found(LIVE).iter().any(|field| field.starts_with("blob of")), "{stem} gone");
    }
}

#[test]
fn a_retouched_crop_is_found_with_how_much_and_where() {
    let mut copy = Copy::of("tool-native");
    let index = copy
        .events
        .iter()
        .rposition(|e| e["event"]["observed"]["answer"]["saw"]["pictures"].get(0).is_some());
    let seen =
        &mut copy.events[index.unwrap()]["event"]["observed"]["answer"]["saw"]["pictures"][0];
    let blob = seen["blob"].as_str().unwrap().to_owned();
    let blobs = copy.folder.path().join("blobs");
    let mut pixels = image::open(blobs.join(format!("{blob}.png"))).unwrap().into_rgb8();
    let old = pixels.get_pixel(7, 5).0;
    pixels.put_pixel(7, 5, image::Rgb(old.map(|c| c.wrapping_add(40))));
    let path = blobs.join("new.png");
    pixels.save(&path).unwrap();
    let hash = Hash::of(&fs::read(&path).unwrap());
    fs::rename(&path, blobs.join(format!("{hash}.png"))).unwrap();
    seen["blob"] = json!(hash);
    seen["sent"]["blob"] = json!(hash);
    copy.write_sealed();
    // The question that sent it has a digest over it.
    assert_eq!(copy.found(Tools::Recorded), ["asked: digest"]);
    let one = Replayer::new(LIVE).replay(&copy.bundle()).unwrap();
    let difference = one.divergences.iter().find_map(|d| d.pixels.as_ref()).unwrap();
    assert_eq!(difference.different, 1);
    assert_eq!(difference.bbox.edges(), [7.0, 5.0, 8.0, 6.0]);
}

#[test]
fn hostile_bundles_are_errors_with_a_clear_text_and_no_panic() {
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let cases: [(&str, &str, Value); 5] = [
        ("/case/pictures/source/blob", "not a hash", json!("../../../../etc/passwd")),
        ("/limits/turns", "limits.turns", json!(4_000_000_000u32)),
        ("/parts", "invalid type", json!("no list")),
        ("/format/major", "format.major", json!("one")),
        ("/mode", "unknown variant", json!("x-ray")),
    ];
    for (pointer, expected, value) in cases {
        let mut copy = Copy::of("tool-native");
        *copy.manifest.pointer_mut(pointer).unwrap() = value;
        fs::write(copy.bundle().join("manifest.json"), copy.manifest.to_string()).unwrap();
        let (code, report) = replay(copy.folder.path(), &["judgements/it"]);
        assert_eq!(code, Some(2), "{pointer}: {report:#}");
        let error = report["unreadable"][0]["error"].as_str().unwrap();
        assert!(error.contains(expected) && error.contains("manifest.json"), "{error}");
    }
    for (file, text) in [
        ("events.jsonl", deep.as_str()),
        ("manifest.json", deep.as_str()),
        ("events.jsonl", "{}\n"),
        ("events.jsonl", "\u{0}\n"),
        ("manifest.json", ""),
    ] {
        let copy = Copy::of("tool-native");
        let text = format!("{text}\n");
        fs::write(copy.bundle().join(file), text).unwrap();
        let (code, report) = replay(copy.folder.path(), &["."]);
        assert_eq!(code, Some(2), "{report:#}");
        assert!(report["unreadable"][0]["error"].as_str().unwrap().contains(file), "{report:#}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (code, text) = replay(folder.path(), &["."]);
    assert_eq!(code, Some(2));
    assert!(text.as_str().unwrap().contains("no trace"), "{text}");
}

#[test]
fn results_must_follow_from_the_traces() {
    let copy = Copy::of("tool-native");
    let bundle = Bundle::read(&copy.bundle()).unwrap();
    let line = ResultLine::of_bundle(&bundle);
    let write = |lines: &[&ResultLine]| {
        let lines: String =
            lines.iter().map(|l| serde_json::to_string(l).unwrap() + "\n").collect();
        fs::write(copy.folder.path().join("results.jsonl"), lines).unwrap();
    };
    write(&[&line]);
    assert!(copy.found(Tools::Recorded).is_empty());
    write(&[&ResultLine { label: Some("Wrong Action".to_owned()), ..line.clone() }]);
    assert_eq!(copy.found(Tools::Recorded), ["results.jsonl.label"]);
    // A trace that results name is gone.
    write(&[&line, &ResultLine { trace: Some("judgements/other".to_owned()), ..line.clone() }]);
    let (code, report) = replay(copy.folder.path(), &["."]);
    assert_eq!((code, report["lost"].as_array().unwrap().len()), (Some(1), 1), "{report:#}");
}

#[test]
fn reading_and_writing_again_gives_the_same_bytes() {
    for entry in fs::read_dir(examples().join("run-2/judgements")).unwrap() {
        let folder = entry.unwrap().path();
        let bundle = Bundle::read(&folder).unwrap();
        let manifest = serde_json::to_string_pretty(&bundle.manifest).unwrap() + "\n";
        assert_eq!(manifest, fs::read_to_string(folder.join("manifest.json")).unwrap());
        let text = fs::read_to_string(folder.join("events.jsonl")).unwrap();
        for (event, line) in bundle.events.iter().zip(text.lines()) {
            let event = serde_json::to_string(event).unwrap();
            let (line, _) = line.rsplit_once(",\"seal\"").unwrap();
            assert_eq!(event, format!("{line}}}"), "{}", folder.display());
        }
    }
}

#[test]
fn a_bundle_is_sent_as_one_file_and_comes_out_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = golden("tool-tags");
    let bundle = bundle.to_str().unwrap();
    for name in ["a.zip", "b.zip"] {
        let output = run(folder.path(), &["trace", "pack", bundle, "-o", name]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("a.zip"), read("b.zip"), "the same bytes");
    let unpack = |to: &str| run(folder.path(), &["trace", "unpack", "a.zip", "-o", to]);
    assert_eq!(unpack("out").status.code(), Some(0));
    let again = unpack("out");
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("is there already"), "{}", stderr(&again));
    // Only its own blobs are in it, and the digest is the same.
    let (code, report) = replay(folder.path(), &["out", "--strict"]);
    assert_eq!(code, Some(0), "{report:#}");
    let digest = Bundle::read(Path::new(bundle)).unwrap().digest;
    assert_eq!(report["traces"][0]["digest"], json!(digest));
    let number = |path: PathBuf| fs::read_dir(path).unwrap().count();
    assert!(number(folder.path().join("out/blobs")) < number(examples().join("run-2/blobs")));

    let whole = examples().join("run-2");
    let output = run(folder.path(), &["trace", "pack", whole.to_str().unwrap(), "-o", "run.zip"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    run(folder.path(), &["trace", "unpack", "run.zip", "-o", "run"]);
    let (code, report) = replay(folder.path(), &["run", "--tools", "recorded"]);
    assert_eq!((code, report["traces"].as_array().unwrap().len()), (Some(0), 12), "{report:#}");
}

#[test]
fn hostile_archives_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    type Fill = fn(&mut zip::ZipWriter<fs::File>);
    let archives: [(&str, Fill); 4] = [
        ("outside", |zip| {
            use std::io::Write as _;
            zip.start_file("../escaped.json", zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(b"{}").unwrap();
        }),
        ("link", |zip| {
            let options = zip::write::SimpleFileOptions::default();
            zip.add_symlink("manifest.json", "/etc/passwd", options).unwrap();
        }),
        ("bomb", |zip| {
            use std::io::Write as _;
            let options = zip::write::SimpleFileOptions::default()
                .compression_method(zip::CompressionMethod::Deflated);
            zip.start_file("events.jsonl", options).unwrap();
            let zeros = vec![0; 1 << 20];
            for _ in 0..160 {
                zip.write_all(&zeros).unwrap();
            }
        }),
        ("program", |zip| {
            zip.start_file("run.sh", zip::write::SimpleFileOptions::default()).unwrap();
        }),
    ];
    for (name, fill) in archives {
        let path = folder.path().join(format!("{name}.zip"));
        let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
        fill(&mut zip);
        zip.finish().unwrap();
        let archive = format!("{name}.zip");
        let output = run(folder.path(), &["trace", "unpack", &archive, "-o", "inner/out"]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(stderr(&output).contains(&archive), "{}", stderr(&output));
        let inner = folder.path().join("inner");
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 0, "{name}");
        assert!(!folder.path().join("escaped.json").exists());
    }
    fs::write(folder.path().join("no.zip"), "no archive").unwrap();
    let output = run(folder.path(), &["trace", "unpack", "no.zip", "-o", "inner/out"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_trace_is_shown_and_exported_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = golden("tool-native");
    let bundle = bundle.to_str().unwrap();
    let output = run(folder.path(), &["trace", "show", bundle]);
    let text = super::command::stdout(&output);
    for part in ["Make the red square blue.", "turn 4", "→ zoom_in", "saw", "attempt 1", "Flawless"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    for (pictures, begin) in [("inline", "data:image/png;base64,"), ("paths", "/")] {
        let args = ["trace", "export", bundle, "--pictures", pictures];
        let text = super::command::stdout(&run(folder.path(), &args));
        let line: Value = serde_json::from_str(text.trim()).unwrap();
        let messages = line["messages"].as_array().unwrap();
        let roles: Vec<&str> = messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
        assert_eq!(roles[..4], ["system", "user", "assistant", "tool"], "{roles:?}");
        assert_eq!(roles.last(), Some(&"assistant"));
        let picture = &messages[1]["content"]
            .as_array()
            .unwrap()
            .iter()
            .find_map(|piece| piece["image_url"]["url"].as_str());
        assert!(picture.unwrap().starts_with(begin), "{picture:?}");
        assert_eq!(line["tools"].as_array().unwrap().len(), 5);
        assert_eq!(line["metadata"]["outcome"]["label"], "Flawless Execution");
    }
}

#[test]
fn the_committed_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/schema.json");
    let committed: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(
        committed,
        deeplook::trace::schema(),
        "rewrite it: cargo run -- trace schema > traces/schema.json"
    );
}

#[test]
fn the_future_is_refused_by_every_reader() {
    let error = Bundle::read(&examples().join("future")).unwrap_err();
    assert!(matches!(error, TraceError::Version { found: 99, .. }));
}

#[test]
fn a_newer_minor_version_is_shown_as_far_as_it_is_known_and_the_rest_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let newer = examples().join("newer");
    let path = newer.to_str().unwrap();
    let shown = run(folder.path(), &["trace", "show", path]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    for words in ["\"consulted\": only a newer deeplook", "It is blue now.", "Flawless Execution"] {
        assert!(text.contains(words), "{text}");
    }
    let (code, report) = replay(folder.path(), &[path]);
    assert_eq!((code, &report["passed"]), (Some(0), &json!(1)), "{report:#}");
    let not_rerun = report["traces"][0]["not_rerun"].to_string();
    assert!(not_rerun.contains("consulted"), "{not_rerun}");
    assert_eq!(replay(folder.path(), &[path, "--strict"]).0, Some(1));
    let view = run(folder.path(), &["view", path, "--out", "pages"]);
    assert_eq!(view.status.code(), Some(0), "{}", stderr(&view));
    let page = fs::read_to_string(folder.path().join("pages/case/0.html")).unwrap();
    assert!(page.contains("consulted") && page.contains("Flawless Execution"), "{page}");
    let report = run(folder.path(), &["report", path]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));

    // In a version that we know, an event that we do not know is a mistake; so is one that we do know
    // and that lacks something.
    let mut copy = Copy::of("plain-verdict-edited-if");
    copy.events[1]["event"] = json!({ "consulted": {} });
    copy.write_sealed();
    let error = Bundle::read(&copy.bundle()).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("consulted"), "{error}");
    copy.manifest["format"]["minor"] = json!(9);
    fs::write(copy.bundle().join("manifest.json"), copy.manifest.to_string()).unwrap();
    copy.write_sealed();
    assert_eq!(Bundle::read(&copy.bundle()).unwrap().events[1].event.kind(), "consulted");
    copy.events[1]["event"] = json!({ "replied": {} });
    copy.write_sealed();
    let error = Bundle::read(&copy.bundle()).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("missing field"), "{error}");
}

#[test]
fn a_fork_keeps_the_first_turns_and_names_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let parent = golden("tool-native");
    let fork = |turn: &str, more: &[&str]| {
        let mut args = vec!["replay", parent.to_str().unwrap(), "--from-turn", turn, "--json"];
        args.extend(["--model", "rules", "--trace", "fork"]);
        args.extend(more);
        run(folder.path(), &args)
    };
    let output = fork("3", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let bundle = Bundle::read(&folder.path().join(printed["trace"].as_str().unwrap())).unwrap();
    let before = Bundle::read(&parent).unwrap();
    assert_eq!(bundle.manifest.parent, Some(before.digest.clone()));
    assert_eq!(
        (&bundle.manifest.model.id, printed["from_turn"].as_u64()),
        (&"rules".to_owned(), Some(3))
    );
    let replies = |bundle: &Bundle| -> Vec<Value> {
        let all = bundle.events.iter().filter_map(|event| match &event.event {
            deeplook::trace::What::Replied(replied) => Some(replied.reply.message.clone()),
            _ => None,
        });
        all.collect()
    };
    let (old, new) = (replies(&before), replies(&bundle));
    assert_eq!(old[..2], new[..2]);
    assert_ne!(old[2], new[2]);
    let (code, report) = replay(folder.path(), &["fork", "--strict"]);
    assert_eq!(code, Some(0), "{report:#}");

    let output = fork("9", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("from 1 to 4"), "{}", stderr(&output));
}

#[test]
fn traces_of_the_first_format_still_show_view_and_replay() {
    // Commands keep their cache where they run, and that is not where the traces are.
    let elsewhere = tempfile::tempdir().unwrap();
    let first = examples().join("run");
    let first = first.to_str().unwrap();
    let replay = |more: &[&str]| run(elsewhere.path(), &[&["replay", first], more].concat());
    let recorded = replay(&["--tools", "recorded"]);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let live = replay(&[]);
    let told = String::from_utf8_lossy(&live.stdout).into_owned() + &stderr(&live);
    assert_eq!(live.status.code(), Some(0), "{told}");
    assert!(told.contains("the trace has version 1, and this is version 2"), "{told}");
    assert_eq!(replay(&["--strict"]).status.code(), Some(1));
    for entry in fs::read_dir(examples().join("run/judgements")).unwrap() {
        let bundle = entry.unwrap().path();
        let shown = run(elsewhere.path(), &["trace", "show", bundle.to_str().unwrap()]);
        assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
        let manifest = Bundle::read(&bundle).unwrap().manifest;
        assert_eq!((manifest.format.major, manifest.commit), (1, None));
        assert_eq!(manifest.case.facts.text("type").unwrap(), "Change Color");
        assert!(manifest.case.source.is_some() && manifest.case.edited.is_some());
        let oracle = bundle.to_string_lossy().contains("oracle");
        assert_eq!(manifest.case.reference().is_some(), oracle, "{}", bundle.display());
        assert_eq!(manifest.case.targets().is_empty(), !oracle, "{}", bundle.display());
    }
    let view = run(elsewhere.path(), &["view", first, "--out", "pages"]);
    assert_eq!(view.status.code(), Some(0), "{}", stderr(&view));
    let pages = fs::read_dir(elsewhere.path().join("pages/case")).unwrap().count();
    assert_eq!(pages, 12);
    let report = run(elsewhere.path(), &["report", first]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
}
