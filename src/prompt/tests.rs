//! Snapshots are for reading: a change of wording shows up in review, word for word.

mod format2;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use deeplook_tools::ToolSpec;
use serde_json::json;

use super::*;

mod bounds;

const ID: &str = "dlebench/v1";

fn pack() -> Pack {
    Pack::embedded(ID).unwrap()
}

/// Tools with fixed words, so that only the pack's own wording is under test.
fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, description: &str, parameters| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
    };
    vec![
        tool("localize_differences", "Finds what differs.", json!({"type": "object"})),
        tool("zoom_in", "Enlarges a region.", json!({"properties": {"bbox": {"type": "array"}}})),
        tool("detect_object", "Finds an object.", json!({"type": "object"})),
    ]
}

/// The embedded pack with one file changed.
fn with(file: &str, change: impl FnOnce(String) -> String) -> Files {
    let mut files = source::embedded(ID).unwrap();
    let text = files.remove(file).map(|bytes| String::from_utf8(bytes).unwrap());
    files.insert(file.to_owned(), change(text.unwrap_or_default()).into_bytes());
    files
}

/// Puts `new` for `old`, which must be there.
fn put(old: &'static str, new: &'static str) -> Box<dyn FnOnce(String) -> String> {
    Box::new(move |text| {
        assert!(text.contains(old), "{old:?} is no longer in the pack");
        text.replacen(old, new, 1)
    })
}

fn found(files: &Files) -> Vec<String> {
    lint(files).iter().map(ToString::to_string).collect()
}

#[test]
fn every_prompt_reads_well() {
    for id in Pack::list() {
        reads_well(&Pack::embedded(id).unwrap());
    }
    reads_well(&Pack::embedded("edits/v1").unwrap().varied(Some("checked")).unwrap());
}

fn reads_well(pack: &Pack) {
    let variant = pack.rubric().variant.as_deref().unwrap_or_default();
    for criterion in pack.criteria() {
        let prompts = pack.prompts(&tools()).unwrap();
        let (long, short): (Vec<Prompt>, Vec<Prompt>) = prompts
            .into_iter()
            .filter(|prompt| prompt.criterion == criterion.id)
            .partition(|prompt| prompt.title == "base" || prompt.title.starts_with("tool part"));
        for prompt in long {
            let name = format!("{} {variant} {} {}", pack.id(), prompt.criterion, prompt.title);
            let name = crate::files::slug(&name);
            insta::assert_snapshot!(name, prompt.text);
        }
        let short: Vec<String> =
            short.iter().map(|prompt| format!("==== {}\n{}", prompt.title, prompt.text)).collect();
        let name = format!("{} {variant} {} turns", pack.id(), criterion.id);
        insta::assert_snapshot!(crate::files::slug(&name), short.join("\n\n"));
    }
}

#[test]
fn the_base_is_the_same_with_and_without_tools_in_both_dialects() {
    let pack = pack();
    for criterion in pack.criteria() {
        let facts = &Facts::default();
        let base = pack.system(criterion, facts, Dialect::Native, &[]).unwrap();
        assert_eq!(base, pack.system(criterion, facts, Dialect::Tags, &[]).unwrap());
        for dialect in [Dialect::Native, Dialect::Tags] {
            let whole = pack.system(criterion, facts, dialect, &tools()).unwrap();
            assert!(whole.starts_with(&format!("{base}\n\n## Tools")), "{}", criterion.id);
        }
    }
}

#[test]
fn only_the_tools_that_are_there_are_spoken_of() {
    let pack = pack();
    let one = &tools()[1..2];
    for dialect in [Dialect::Native, Dialect::Tags] {
        for criterion in pack.criteria() {
            let text = pack.system(criterion, &Facts::default(), dialect, one).unwrap();
            assert!(text.contains("zoom_in"));
            assert!(!text.contains("localize_differences") && !text.contains("detect_object"));
        }
    }
}

#[test]
fn what_comes_from_outside_is_not_read_as_a_template() {
    let pack = pack();
    let criterion = pack.criterion("if").unwrap();
    let instruction = "{{ labels }} {% include \"if.j2\" %} <b>&amp;</b>";
    let facts = &Facts::default();
    let task = TaskText { instruction, notes: &[], question: None, pictures: &[], facts };
    let text = pack.task(criterion, &task).unwrap();
    assert!(text.contains(instruction), "{text}");
}

#[test]
fn scores_are_those_of_the_paper() {
    let pack = pack();
    let scores = |id: &str| -> Vec<(String, f64)> {
        let criterion = pack.criterion(id).unwrap();
        let labels = criterion.labels().iter();
        labels.map(|l| (l.name.clone(), criterion.score(&l.name).unwrap().round())).collect()
    };
    let expect = |labels: [(&str, f64); 4]| labels.map(|(name, score)| (name.to_owned(), score));
    assert_eq!(
        scores("if"),
        expect([
            ("Localization Failure", 0.0),
            ("Wrong Action", 33.0),
            ("Over Modification", 67.0),
            ("Flawless Execution", 100.0)
        ])
    );
    assert_eq!(
        scores("vc"),
        expect([
            ("Scene Collapse", 0.0),
            ("Multiple Anomalies", 33.0),
            ("Single Anomaly", 67.0),
            ("Perfect Consistency", 100.0)
        ])
    );
    assert_eq!(pack.criterion("if").unwrap().score("wrong action"), None);
    assert!(matches!(pack.criterion("xy"), Err(PromptError::UnknownCriterion { .. })));
}

#[test]
fn modes_show_what_the_paper_shows() {
    let pack = pack();
    let view = |id: &str, mode| pack.criterion(id).unwrap().modes[&mode].clone();
    let shown = |view: &ModeView| -> Vec<String> {
        let name = |one: &PictureView| {
            let how = match &one.treatment {
                Treatment::Whole => "whole",
                Treatment::Crop { .. } => "crop",
                Treatment::Mask { .. } => "mask",
                _ => "other",
            };
            format!("{} {how}{}", one.name, if one.optional { " if there is one" } else { "" })
        };
        view.views.iter().map(name).collect()
    };
    for id in ["if", "vc"] {
        for (mode, tools) in [(Mode::Tool, true), (Mode::Plain, false)] {
            let view = view(id, mode);
            assert_eq!(shown(&view), ["Original Image whole", "Edited Image whole"]);
            assert_eq!((view.tools, view.ask), (tools, Ask::Whole));
        }
    }
    for (id, how, tools) in [("if", "crop", false), ("vc", "mask", true)] {
        let view = view(id, Mode::Oracle);
        let expected = [
            format!("Original Image {how}"),
            format!("Edited Image {how}"),
            format!("Reference Image {how} if there is one"),
        ];
        assert_eq!(shown(&view), expected);
        assert_eq!(view.tools, tools);
        assert_eq!(matches!(view.ask, Ask::Targets { .. }), id == "if");
    }
}

#[test]
fn a_pack_of_format_1_means_the_same_as_one_of_format_2() {
    let (old, new) = (pack(), Pack::embedded("dlebench/v2").unwrap());
    let rubric = |pack: &Pack| serde_json::to_value(&**pack.rubric()).unwrap();
    // Labels, scores and report are the same; how pictures are cut and what is said of the frame is
    // each version's own.
    let bare = |pack: &Pack| {
        let mut rubric = rubric(pack);
        for criterion in rubric["criteria"].as_array_mut().unwrap() {
            for mode in criterion["modes"].as_object_mut().unwrap().values_mut() {
                let mode = mode.as_object_mut().unwrap();
                assert!(mode.remove("views").is_some() && mode.remove("frame").is_some());
            }
        }
        rubric
    };
    assert_eq!(bare(&old), bare(&new));
    let quick = Rubric::of(&source::embedded(ID).unwrap(), None).unwrap();
    assert_eq!(serde_json::to_value(quick).unwrap(), rubric(&old));
}

#[test]
fn the_binary_holds_exactly_the_packs_of_the_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("prompts");
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut ids = Vec::new();
    for version in folders(&root).iter().flat_map(|pack| folders(pack)) {
        let id = version.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        let on_disk = source::read_folder(&version).unwrap();
        assert_eq!(
            source::embedded(&id).as_ref(),
            Some(&on_disk),
            "add the files of {id} to source.rs"
        );
        assert_eq!(Pack::embedded(&id).unwrap().id(), id);
        ids.push(id);
    }
    ids.sort();
    assert_eq!(Pack::list().collect::<Vec<_>>(), ids);
}

#[test]
fn embedded_packs_are_clean() {
    for id in Pack::list() {
        assert_eq!(found(&source::embedded(id).unwrap()), Vec::<String>::new());
    }
}

#[test]
fn the_hash_is_that_of_names_and_contents() {
    let pack = pack();
    let files: Files = pack.files().map(|(n, f)| (n.to_owned(), f.to_vec())).collect();
    assert_eq!(Pack::from_files(files).unwrap().hash, pack.hash);
    assert_ne!(source::hash(&with("task.j2", |text| text + " ")), pack.hash);
    assert_ne!(source::hash(&with("note.md", |text| text)), pack.hash);
    let two = |a: &str, b: &str| Files::from([(a.into(), b.into())]);
    assert_ne!(source::hash(&two("a", "bc")), source::hash(&two("ab", "c")));
    assert_eq!(
        source::hash(&two("a", "b")).as_str(),
        "0b1e25ae146056ddc8eb151809e26b067649d204b82126c35035b69dfedddc45",
        "traces name packs by this hash: it must not change"
    );
}

#[test]
fn lint_finds_what_is_broken() {
    type Change = Box<dyn FnOnce(String) -> String>;
    let table: Vec<(&str, Change, &str)> = vec![
        // Files.
        ("pack.toml", put("about =", "abuot ="), "pack.toml:5: unknown field `abuot`"),
        ("pack.toml", put("tools = true", "tool = true"), "unknown field `tool`"),
        ("pack.toml", put("\"original\"", "\"orignal\""), "unknown variant `orignal`"),
        ("pack.toml", put("linear_rank", "exponential"), "unknown variant `exponential`"),
        (
            "pack.toml",
            put("rank = 4", "rank = 5"),
            "the rank 5 of \"Flawless Execution\" is not within 1 to 4",
        ),
        ("pack.toml", put("highest = 4", "highest = 1"), "lowest = 1 is not below highest = 1"),
        (
            "pack.toml",
            put("id = \"vc\"", "id = \"if\""),
            "there are two criteria \"if\"; rename one",
        ),
        ("pack.toml", put("name = \"dlebench\"", "name = \"../x\""), "name = \"../x\" is no name"),
        ("pack.toml", put("task = \"task.j2\"\n", ""), "the criterion \"if\" has no task template"),
        (
            "pack.toml",
            put("\"if.j2\"", "\"../if.j2\""),
            "pack.toml:18: there is no template \"../if.j2\"",
        ),
        (
            "rules.toml",
            put("section = \"7\"", "sektion = \"7\""),
            "rules.toml:10: unknown field `sektion`",
        ),
        (
            "rules.toml",
            put("note = \"The paper crops", "# \""),
            "the rule \"captions\" is ours without a note",
        ),
        (
            "rules.toml",
            put("criteria = [\"if\", \"vc\"]", "criteria = [\"xy\"]"),
            "which is no criterion",
        ),
        // Rules.
        (
            "rules.toml",
            put("id = \"if-count\"", "id = \"if-number\""),
            "if.j2:34: there is no rule \"if-count\"",
        ),
        (
            "rules.toml",
            put("id = \"captions\"", "id = \"pictures\""),
            "there are two rules \"pictures\"",
        ),
        (
            "if.j2",
            put("- {{ rule(\"if-count\") }}\n", ""),
            "no prompt of \"if\" shows the rule \"if-count\"",
        ),
        (
            "if.j2",
            put("{{ rule(\"if-count\") }}", "{# rule(\"if-count\") #}"),
            "shows the rule \"if-count\"",
        ),
        (
            "if.j2",
            put("rule(\"if-count\")", "rule(\"vc-scan\")"),
            "the criterion \"if\" has no rule \"vc-scan\"",
        ),
        ("if.j2", put("rule(\"if-count\")", "rule(criterion)"), "rule() takes one quoted id"),
        // Variables.
        (
            "if.j2",
            put("{{ criterion }}", "{{ criterium }}"),
            "if.j2:1: the variable \"criterium\" does not exist",
        ),
        (
            "task.j2",
            put("{% if notes %}", "{% if notes and hints %}"),
            "task.j2:7: the variable \"hints\"",
        ),
        (
            "task.j2",
            put("{{ instruction }}", "…"),
            "task.j2: no task prompt uses the variable \"instruction\"",
        ),
        (
            "reminder.j2",
            put("{{ turns_left }}", "{{ turns_left.count }}"),
            "undefined value; a reminder template can use",
        ),
        // Templates.
        ("if.j2", put("{{ criterion }}", "{{ criterion"), "if.j2:1: "),
        (
            "if.j2",
            put("{% include \"answer.j2\" %}", "{% include \"anser.j2\" %}"),
            "there is no template \"anser.j2\"",
        ),
        (
            "if.j2",
            put("{% include \"answer.j2\" %}", "{% include labels %}"),
            "include takes one quoted file name",
        ),
        ("extra.j2", put("", "Nobody calls me."), "extra.j2: nothing uses this template"),
        ("if.j2", put("{{ criterion }}", "{% set x = criterion %}"), "\"set\" cannot be used here"),
        ("if.j2", put("{{ criterion }}", "{{ \"x\" * 100000000 }}"), "'*' cannot be used here"),
        ("if.j2", put("{{ criterion }}", "{{ criterion ~ criterion }}"), "'~' cannot be used here"),
        ("if.j2", put("{{ criterion }}", "{{ criterion | shout }}"), "shout"),
        // Labels.
        (
            "if.j2",
            put("- Wrong Action:", "- Wrong Actions:"),
            "writes \"Wrong Actions\"; the label is \"Wrong Action\"",
        ),
        ("if.j2", put("- Wrong Action:", "- wrong action:"), "writes \"wrong action\""),
        (
            "rules.toml",
            put("is Localization Failure. A", "is Localisation Failure. A"),
            "writes \"Localisation Failure\"",
        ),
        (
            "pack.toml",
            put("\"Scene Collapse\"", "\"Total Loss\""),
            "does not explain the label \"Total Loss\"",
        ),
        ("if.j2", put("- Wrong Action:", "- Single Anomaly:"), "a label of another criterion"),
        ("if.j2", put("- Wrong Action:", "- Wrong Action (2):"), "puts a number to a label"),
        ("if.j2", put("- Wrong Action:", "- Score 2: Wrong Action:"), "puts a number to a label"),
        ("if.j2", put("- Wrong Action:", "- Wrong Action = score 2:"), "puts a number to a label"),
    ];
    let mut missed = Vec::new();
    for (file, change, expected) in table {
        let findings = found(&with(file, change));
        if !findings.iter().any(|finding| finding.contains(expected)) {
            missed.push((expected, findings));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn files_that_are_no_text_or_not_there_are_findings() {
    let mut files = source::embedded(ID).unwrap();
    files.insert("task.j2".into(), vec![0xff, 0xfe]);
    files.remove("rules.toml");
    let findings = found(&files);
    assert_eq!(
        findings,
        [
            "rules.toml: the file is missing; every pack has one",
            "task.j2: this is not UTF-8 text; save it as UTF-8"
        ]
    );
    assert!(!lint(&Files::new()).is_empty());
}

#[test]
fn hostile_templates_end() {
    let nested = "{% for a in labels %}".repeat(12) + "x" + &"{% endfor %}".repeat(12);
    let deep = "{% if labels %}".repeat(5_000) + &"{% endif %}".repeat(5_000);
    let parentheses = format!("{{{{ {}1{} }}}}", "(".repeat(5_000), ")".repeat(5_000));
    let long = format!("{}{{% for a in labels %}}{}{{% endfor %}}", "", "x".repeat(900_000));
    for (hostile, expected) in [
        (nested, "too many steps"),
        (deep, "nest them less"),
        (parentheses, "write several of them"),
        (long, "longer than 1 MB"),
        ("{% include \"labels.j2\" %}".to_owned(), "without end"),
    ] {
        let findings = found(&with("labels.j2", |_| hostile));
        assert!(findings.iter().any(|f| f.contains(expected)), "{expected}\n{findings:#?}");
    }
}

#[test]
fn a_folder_is_read_with_care() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |expected: &str| {
        let error = Pack::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}\n{error}");
    };
    for (name, content) in source::embedded(ID).unwrap() {
        fs::write(folder.path().join(name), content).unwrap();
    }
    fs::write(folder.path().join(".task.j2.swp"), "an editor's").unwrap();
    assert_eq!(Pack::load(folder.path()).unwrap().hash, pack().hash);
    assert_eq!(Pack::find(folder.path().to_str().unwrap()).unwrap().hash, pack().hash);

    let extra = folder.path().join("extra.j2");
    fs::write(&extra, vec![b'x'; (1 << 20) + 1]).unwrap();
    refused("\"extra.j2\" is larger than 1 MB");
    fs::write(&extra, "x").unwrap();
    refused("extra.j2: nothing uses this template");
    fs::remove_file(&extra).unwrap();

    fs::create_dir(&extra).unwrap();
    refused("\"extra.j2\" does not belong in a pack");
    fs::remove_dir(&extra).unwrap();

    fs::write(folder.path().join("run.sh"), "x").unwrap();
    refused("\"run.sh\" does not belong in a pack");
    fs::remove_file(folder.path().join("run.sh")).unwrap();

    for n in 0..100 {
        fs::write(folder.path().join(format!("{n}.md")), "x").unwrap();
    }
    refused("more than 100 files");
    assert!(Pack::load(&folder.path().join("nowhere")).is_err());
    assert!(matches!(Pack::find("nowhere/v1"), Err(PromptError::UnknownPack { .. })));
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.path().join("pack.toml")).unwrap();
    let error = Pack::load(folder.path()).unwrap_err().to_string();
    assert!(error.contains("\"pack.toml\" does not belong in a pack"), "{error}");
}

#[test]
fn a_difference_shows_in_rules_and_prompts() {
    let before = pack();
    assert!(diff(&before, &before, &tools()).unwrap().is_empty());
    let files = with("rules.toml", put("it is no anomaly either", "it is an anomaly"));
    let after = Pack::from_files(files).unwrap();
    let diff = diff(&before, &after, &tools()).unwrap();
    let rules: Vec<&str> = diff.rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(rules, ["vc-tone"]);
    let prompts: Vec<(&str, &str)> =
        diff.prompts.iter().map(|p| (p.criterion.as_str(), p.title.as_str())).collect();
    assert_eq!(prompts, [("vc", "base")]);
    let changes: Vec<Change> = diff.prompts[0].lines.iter().flatten().map(|l| l.change).collect();
    let [same, gone, new] = [Change::Same, Change::Gone, Change::New];
    assert_eq!(changes, [same, same, gone, new, same, same]);
}
