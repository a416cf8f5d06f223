//! The house itself: who may use whom, and which words stand where.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the code, without comments and without its tests.
struct Source {
    path: PathBuf,
    code: String,
}

impl Source {
    /// The part of the house that it belongs to: a folder of `src`, or a file.
    fn room(&self) -> String {
        let path = self.path.strip_prefix(root().join("src")).unwrap();
        let first = path.components().next().unwrap().as_os_str().to_string_lossy();
        first.trim_end_matches(".rs").to_owned()
    }
}

fn sources(folder: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            let code = lines.map(|line| format!("{line}\n")).collect();
            found.push(Source { path, code });
        }
    }
    found
}

/// The rooms that a file names: `crate::name`, and each name of `use crate::{a, b::c};`.
fn used(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, rest) in code.match_indices("crate::").map(|(at, word)| (at, &code[at + word.len()..]))
    {
        let name = |text: &str| -> String {
            text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        };
        match rest.strip_prefix('{') {
            None => drop(names.insert(name(rest))),
            Some(list) => {
                let mut depth = 0;
                let top: String = list
                    .chars()
                    .take_while(|c| {
                        depth += i32::from(*c == '{') - i32::from(*c == '}');
                        depth >= 0
                    })
                    .collect();
                names.extend(top.split(',').map(name).filter(|name| !name.is_empty()));
            }
        }
    }
    names
}

/// A way from a room back to itself, if there is one.
fn cycle(uses: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk(
        room: &str,
        uses: &BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(at) = way.iter().position(|seen| seen == room) {
            return Some([&way[at..], &[room.to_owned()]].concat());
        }
        if done.contains(room) {
            return None;
        }
        way.push(room.to_owned());
        let found =
            uses.get(room).into_iter().flatten().find_map(|next| walk(next, uses, way, done));
        way.pop();
        done.insert(room.to_owned());
        found
    }
    let mut done = BTreeSet::new();
    uses.keys().find_map(|room| walk(room, uses, &mut Vec::new(), &mut done))
}

#[test]
fn no_module_uses_one_that_uses_it() {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources(&root().join("src")) {
        let room = source.room();
        if room == "lib" || room == "main" {
            continue;
        }
        let others = used(&source.code).into_iter().filter(|name| *name != room);
        uses.entry(room.clone()).or_default().extend(others);
    }
    assert!(uses.len() > 20, "{uses:?}");
    assert!(uses["run"].contains("judge") && uses["commands"].contains("run"), "{uses:?}");
    assert_eq!(cycle(&uses), None);

    let ring = ["a b", "b c", "c a", "d a"].map(|pair| pair.split_once(' ').unwrap());
    let ring = ring.map(|(from, to)| (from.to_owned(), BTreeSet::from([to.to_owned()])));
    assert_eq!(cycle(&ring.into()), Some(["a", "b", "c", "a"].map(str::to_owned).to_vec()));
    let names = used("use crate::{a, b::C};\nuse crate::d::E;\nfn f() { crate::g() }");
    assert_eq!(names.into_iter().collect::<String>(), "abdg");
}

/// Where errors still name options of commands, or, in `weights`, where other programs get theirs.
const STILL_OPTIONS: [&str; 6] =
    ["agreement", "dataset", "deliberation", "equipment", "model", "weights"];

#[test]
fn the_command_line_stands_in_the_commands() {
    for source in sources(&root().join("src")) {
        let (room, path) = (source.room(), source.path.display());
        if room != "cli" && room != "commands" {
            assert!(!source.code.contains("clap"), "{path} names clap");
        }
        if !["cli", "commands"].contains(&room.as_str()) && !STILL_OPTIONS.contains(&room.as_str())
        {
            let flag = source.code.split('"').skip(1).step_by(2).find(|text| {
                text.match_indices("--")
                    .any(|(at, _)| text[at + 2..].starts_with(|c: char| c.is_ascii_lowercase()))
            });
            assert_eq!(flag, None, "{path} names an option of a command");
        }
    }
}

/// What is written to disk has types of its own: those of the house convert to them, and nothing of
/// the house is in them.
#[test]
fn what_is_stored_has_types_of_its_own() {
    let trace = root().join("src/trace");
    for source in sources(&root().join("src")) {
        let path = source.path.strip_prefix(root()).unwrap().display().to_string();
        let stored = source.path.starts_with(trace.join("stored"));
        if stored {
            let houses = ["message", "model", "verdict", "prompt", "protocol", "sending", "case"];
            let field = source.code.lines().find(|line| {
                let line = line.trim_start().trim_start_matches("pub(crate) ");
                line.split_once(": ").is_some_and(|(name, kind)| {
                    name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
                        && (kind.contains("deeplook_tools::")
                            || houses.iter().any(|house| kind.contains(&format!("{house}::"))))
                        && line.ends_with(',')
                })
            });
            assert_eq!(field, None, "{path}");
        } else if ["manifest.rs", "events.rs", "results.rs"]
            .iter()
            .any(|file| source.path == trace.join(file))
        {
            let mut lines = source.code.lines().peekable();
            while let Some(line) = lines.next() {
                if line.contains("derive(") && line.contains("erialize") {
                    let next = lines.peek().unwrap();
                    assert!(next.contains("\"stored::"), "{path}: {line} {next}");
                }
            }
        }
    }
    let record = fs::read_to_string(root().join("src/run/record.rs")).unwrap();
    assert!(!record.contains("Deserialize"), "run.json is read as stored::Run");
}

/// Where DLEBench is at home: its adapter, the scenes that are drawn after it, and the offline judge,
/// who was made for it.
const HOMES: [&str; 3] = ["dataset/dlebench.rs", "dataset/draw/", "model/rules/"];

/// A benchmark is data: its labels, its types and its criteria are in its pack.
#[test]
fn no_benchmark_is_named_outside_of_its_home() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let quoted = |text: &str| -> Vec<String> {
        text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let pack = read("prompts/dlebench/v1/pack.toml");
    let labels = pack.lines().filter(|line| line.contains("rank = "));
    let mut words: Vec<String> = labels.flat_map(&quoted).collect();
    let adapter = read("src/dataset/dlebench.rs");
    let types = adapter.split("const TYPES").nth(1).unwrap().split("];").next().unwrap();
    words.extend(quoted(types));
    assert_eq!(words.len(), 8 + 7, "{words:?}");
    words.push("\"vc\"".to_owned());
    for source in sources(&root().join("src")) {
        let path = source.path.strip_prefix(root().join("src")).unwrap();
        let path = path.to_string_lossy().into_owned();
        // Made-up replies, for tests alone.
        let tests = path == "dialect/properties.rs" || path.contains("/tests/");
        if tests || HOMES.iter().any(|home| path.starts_with(home)) {
            continue;
        }
        for word in &words {
            assert!(!source.code.contains(word.as_str()), "{path} names {word}");
        }
        // The word is also one of templates, and of English.
        if path != "prompt/template.rs" && path != "dialect/labels.rs" {
            assert!(!source.code.contains("\"if\""), "{path} names the criterion \"if\"");
        }
    }
}

/// The walk that ARCHITECTURE.md describes goes through files that there are, and is short.
#[test]
fn the_walk_from_eval_to_report_is_short() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(text.lines().count() <= 140, "it stays within two pages");
    let walk = text.split("## From `eval` to `report`").nth(1).unwrap();
    let walk = walk.split("\n## ").next().unwrap();
    let rooms: Vec<&str> = walk.split_whitespace().filter(|word| word.ends_with(".rs")).collect();
    assert!((30..=46).contains(&rooms.len()), "{} files, one hop less", rooms.len());
    for room in &rooms {
        assert!(root().join("src").join(room).is_file(), "{room}");
    }
}

/// A package holds only what is in its own folder.
#[test]
fn nothing_is_included_from_another_package() {
    for (package, other) in [(root().to_owned(), Some("tools")), (root().join("tools"), None)] {
        for source in sources(&package.join("src")) {
            for name in ["include_str!(\"", "include_bytes!(\""] {
                for (at, _) in source.code.match_indices(name) {
                    let path = source.code[at + name.len()..].split('"').next().unwrap();
                    let mut place = source.path.parent().unwrap().to_owned();
                    for part in Path::new(path).components() {
                        match part {
                            Component::ParentDir => drop(place.pop()),
                            part => place.push(part),
                        }
                    }
                    let inside = place.strip_prefix(&package).ok();
                    let inside =
                        inside.filter(|path| !other.is_some_and(|it| path.starts_with(it)));
                    assert!(inside.is_some(), "{} includes {path}", source.path.display());
                }
            }
        }
    }
}
