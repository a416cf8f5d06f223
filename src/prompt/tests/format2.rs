//! Packs of format 2: what the keys of `pack.toml` become, and what is found wrong in them. The pack
//! is the one of the integration tests.

use std::path::Path;

use serde_json::json;

use super::super::*;
use crate::verdict::Combine;

fn files() -> Files {
    source::read_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/toy")).unwrap()
}

fn toy() -> Pack {
    Pack::checked(files()).unwrap()
}

/// The pack with `new` in place of `old`, which must be there.
fn with(file: &str, old: &str, new: &str) -> Files {
    let mut files = files();
    let text = String::from_utf8(files.remove(file).unwrap_or_default()).unwrap();
    assert!(text.contains(old), "{old:?} is no longer in {file}");
    files.insert(file.to_owned(), text.replacen(old, new, 1).into_bytes());
    files
}

#[test]
fn keys_become_criteria() {
    let pack = toy();
    let [qa, quality, kept] = pack.criteria() else { panic!("three criteria") };
    assert_eq!((qa.combine, qa.instruction), (Combine::Pooled, false));
    assert_eq!(qa.modes[&Mode::Plain].ask, Ask::Questions);
    let shown = &qa.modes[&Mode::Plain].views[0];
    let own = Area { region: None, place: Place::Proportional };
    assert_eq!((shown.name.as_str(), shown.long_edge), ("Picture B", Some(128)));
    assert_eq!(shown.treatment.area(), Some(&own));

    assert_eq!(quality.keys().len(), 4);
    assert_eq!(quality.keys()[2].values[2], KeyValue { value: json!("N/A"), worth: None });
    assert_eq!((quality.scale.highest, quality.scale.decimals), (Some(10.0), 1));
    assert_eq!(kept.labels().len(), 3);
    assert_eq!(kept.score("Table Changed"), Some(50.0), "ranks need no bounds");

    let mut facts = Facts::default();
    assert!(qa.applies_to(&facts) && !kept.applies_to(&facts));
    facts.insert("task", "Removal");
    assert!(kept.applies_to(&facts));
    let deciders = ["qa", "quality", "kept"].map(|id| pack.rubric().deciders(id));
    assert_eq!(deciders, [0, 0, 1]);
    let skip = kept.skip.as_ref().unwrap();
    assert_eq!(skip.decided_by(0.0).map(|verdict| verdict.score), Some(0.0));
    assert_eq!(skip.decided_by(0.1), None);
    let report = &pack.rubric().report;
    assert_eq!((report.group.as_deref(), report.average), (Some("task"), Average::Cases));
}

#[test]
fn a_variant_changes_what_it_names_and_nothing_else() {
    let (plain, strict) = (toy(), toy().varied(Some("strict")).unwrap());
    assert_eq!(plain.hash, strict.hash, "they are the same files");
    assert_eq!(strict.rubric().variant.as_deref(), Some("strict"));
    let root = |pack: &Pack| match &pack.criterion("quality").unwrap().score {
        ScoreFunction::Product { root, of, .. } => (*root, of.len()),
        other => panic!("{other:?}"),
    };
    assert_eq!((root(&plain), root(&strict)), ((4, 4), (1, 4)));
    assert_eq!(strict.criterion("qa").unwrap().combine, Combine::Worst);
    assert_eq!(strict.criterion("kept").unwrap().combine, Combine::Worst, "as ever");
    assert_eq!(
        strict.criterion("qa").unwrap().modes[&Mode::Plain],
        plain.criterion("qa").unwrap().modes[&Mode::Plain]
    );
    let error = toy().varied(Some("lax")).unwrap_err().to_string();
    assert!(error.contains("toy/v1 has no variant \"lax\"; it has strict"), "{error}");
    let error = Pack::embedded("dlebench/v2").unwrap().varied(Some("x")).unwrap_err().to_string();
    assert!(error.contains("it has none"), "{error}");
}

#[test]
fn prompts_are_told_questions_keys_and_facts() {
    let pack = toy();
    let qa = pack.criterion("qa").unwrap();
    let mut facts = Facts::default();
    facts.insert("law", "Reflection");
    let task = TaskText {
        instruction: "Add a ball",
        notes: &[],
        question: Some("Is there a ball?"),
        pictures: &["Picture B"],
        facts: &facts,
    };
    let text = pack.task(qa, &task).unwrap();
    assert!(
        text.contains("The question: Is there a ball?") && text.contains("Reflection"),
        "{text}"
    );
    assert!(!text.contains("Add a ball"), "not told the instruction: {text}");
    let quality = pack.criterion("quality").unwrap();
    let none = TaskText { question: None, facts: &Facts::default(), ..task };
    let text = pack.task(quality, &none).unwrap();
    assert!(text.contains("Add a ball") && !text.contains("law"), "{text}");
    let system = pack.system(quality, &Facts::default(), Dialect::Native, &[]).unwrap();
    assert!(system.contains("- Light: one of right, wrong, N/A\n"), "{system}");
    let turn = Turn { dialect: Dialect::Native, tools_allowed: false, turns_left: None };
    assert_eq!(pack.reminder(quality, turn).unwrap(), "", "a template that nobody needs");
    assert!(pack.repair(quality, "no keys", turn).unwrap().contains("no keys"));
}

#[test]
fn lint_finds_what_is_broken() {
    let table = [
        // Tables and keys.
        ("format = 2", "format = 3", "format = 3 is none that this version of deeplook reads"),
        ("ask = \"questions\"", "asks = \"questions\"", "pack.toml:15: unknown field `asks`"),
        ("ask = \"questions\"", "ask = \"riddles\"", "unknown variant `riddles`"),
        ("combine = \"pooled\"", "combine = \"best\"", "unknown variant `best`"),
        ("id = \"qa\"", "id = \"all\"", "\"all\" cannot name a criterion"),
        ("name = \"Quality\"\n", "", "pack.toml:32: the criterion \"quality\" has no name"),
        (
            "applies = { task = [\"Addition\", \"Removal\"] }",
            "applies = { task = [] }",
            "has no values",
        ),
        ("task = \"task.j2\"\n", "", "has no task template"),
        ("repair = \"repair.j2\"\n", "", "has no repair template"),
        // Answers and scores.
        ("form = \"keys\"", "form = \"label\"", "is a label and has keys"),
        (
            "values = [0, 0.5, 1]",
            "values = []",
            "pack.toml:39: the key \"Style_Match\" has no values",
        ),
        ("values = [0, 0.5, 1]", "values = [0, 1, 1.0]", "has the value 1.0 twice"),
        ("values = [0, 0.5, 1]", "values = [[0]]", "use texts, numbers"),
        (", worth = { right = 1, wrong = 0.25 }", "", "no value of \"Light\" has a worth"),
        ("wrong = 0.25", "false = 0.25", "\"false\" has a worth and is no value of \"Light\""),
        ("name = \"Shadow\"", "name = \"seams\"", "there are two keys \"seams\""),
        (
            "unless = { key = \"Light\"",
            "unless = { key = \"Lamp\"",
            "pack.toml:44: a gate speaks of \"Lamp\"",
        ),
        (
            "is = [\"right\", \"N/A\"]",
            "is = \"perhaps\"",
            "waits for \"perhaps\", which \"Light\" cannot be",
        ),
        ("[\"Style_Match\"], ", "[\"Stile\"], ", "\"Stile\" is no key of the answer"),
        ("root = 4", "root = 0", "a root of 1 or more"),
        ("root = 4", "lowest = 4", "it takes of, root and empty, not \"lowest\""),
        ("function = \"product\"\nof", "function = \"linear_rank\"\nof", "keys take \"product\""),
        ("function = \"equals_expected\"", "function = \"mean\"", "labels take \"linear_rank\""),
        (
            "function = \"linear_rank\"",
            "function = \"equals_expected\"",
            "only questions have an expected",
        ),
        ("function = \"linear_rank\"", "", "it has no function"),
        ("highest = 10\n", "", "has no highest"),
        ("highest = 10", "highest = -1", "its lowest not below its highest"),
        // Views.
        (
            "picture = \"layer\"",
            "picture = \"leyer\"",
            "no case has a picture \"leyer\"; name it under pictures",
        ),
        ("over = \"source\"", "over = \"sauce\"", "no case has a picture \"sauce\""),
        ("as = \"overlay\", over = \"source\", ", "as = \"overlay\", ", "is laid over nothing"),
        (
            "as = \"mark\", region = \"target\"",
            "as = \"mark\"",
            "needs to know where: name a region",
        ),
        (
            "as = \"mark\", region = \"target\"",
            "as = \"mark\", region = \"question\"",
            "the place of a question",
        ),
        ("as = \"mark\", region", "as = \"mark\", canvas = 9, region", "which takes no \"canvas\""),
        ("margin = 4", "margin = -4", "a margin below 0"),
        ("long_edge = 128", "long_edge = 0", "not within 1 to 16384"),
        (
            "views = [{ picture = \"source\" }, { picture = \"edited\" }, ",
            "views = [{ picture = \"source\" }, { picture = \"source\" }, ",
            "two pictures of a mode are called \"Picture A\"",
        ),
        ("tools = false\n", "", "does not say whether there are tools"),
        (
            "[criterion.modes.plain]\ntools = false\nviews = [{ picture = \"edited\"",
            "[criterion.modes.plain]\ntools = true\nviews = [{ picture = \"edited\"",
            "has no tools template",
        ),
        // Across criteria.
        (
            "skip = { criterion = \"quality\"",
            "skip = { criterion = \"qality\"",
            "\"qality\", which is no criterion",
        ),
        ("skip = { criterion = \"quality\"", "skip = { criterion = \"kept\"", "break the circle"),
        ("at_most = 0,", "at_most = 11,", "not on its scale"),
        (
            "of = [\"qa\", \"quality\"]",
            "of = [\"qa\", \"qualm\"]",
            "is of \"qualm\", which is no criterion",
        ),
        ("id = \"overall\"", "id = \"qa\"", "\"qa\" names something else already"),
        ("root = 2", "root = 0", "\"product\" with a root of 1 or more"),
        (
            "headline = \"overall\"",
            "headline = \"total\"",
            "the headline \"total\" is no criterion",
        ),
        ("average = \"cases\"", "average = \"medians\"", "unknown variant `medians`"),
        // Variants.
        (
            "[[variant.criterion]]\nid = \"qa\"",
            "[[variant.criterion]]\nid = \"qq\"",
            "the variant \"strict\" changes \"qq\", which is no criterion",
        ),
        (
            "score = { root = 1 }",
            "score = { root = 0 }",
            "in the variant \"strict\": the score of \"quality\"",
        ),
        ("about = \"One wrong", "abut = \"One wrong", "unknown field `abut`"),
        ("name = \"strict\"", "name = \" \"", "which is empty or taken"),
    ];
    let mut missed = Vec::new();
    for (old, new, expected) in table {
        let findings: Vec<String> =
            lint(&with("pack.toml", old, new)).iter().map(ToString::to_string).collect();
        if !findings.iter().any(|finding| finding.contains(expected)) {
            missed.push((expected, findings));
        }
    }
    for (file, old, new, expected) in [
        (
            "task.j2",
            "{% if question %}\nThe question: {{ question }}\n",
            "{% if labels %}\n",
            "no task prompt uses the variable \"question\"",
        ),
        (
            "task.j2",
            "{% for note in notes %}",
            "{% for note in labels %}",
            "uses the variable \"notes\"",
        ),
        ("quality.j2", "Seams about", "edges about", "does not explain the key \"Seams\""),
    ] {
        let findings: Vec<String> =
            lint(&with(file, old, new)).iter().map(ToString::to_string).collect();
        if !findings.iter().any(|finding| finding.contains(expected)) {
            missed.push((expected, findings));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn two_criteria_that_wait_for_each_other_are_found() {
    let files = with(
        "pack.toml",
        "id = \"quality\"\n",
        "id = \"quality\"\nskip = { criterion = \"kept\", at_most = 0, worth = 0 }\n",
    );
    let findings: Vec<String> = lint(&files).iter().map(ToString::to_string).collect();
    assert_eq!(
        findings.iter().filter(|one| one.contains("break the circle")).count(),
        2,
        "{findings:#?}"
    );
}
