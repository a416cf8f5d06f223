use std::fs;
use std::sync::LazyLock;

use deeplook_tools::Size;

use super::background::Setting;
use super::plan::{Role, gap};
use super::*;
use crate::dataset::case_file::{CaseRecord, LabelRecord};

/// A small case: the same code as for a large one, in a fraction of the time.
static SMALL: LazyLock<Vec<(Plan, DrawnCase)>> = LazyLock::new(|| (0..14).map(small).collect());

fn small(index: u64) -> (Plan, DrawnCase) {
    let setting = Setting::ALL[index as usize % Setting::ALL.len()];
    let plan = Plan::set(setting, Size::new(512, 384), index, Random::new(11, index, 2)).unwrap();
    let case = draw(&plan, 11, index).unwrap();
    (plan, case)
}

fn edit(case: &DrawnCase, editor: Editor) -> Option<&Picture> {
    case.edits.iter().find(|edit| edit.editor == editor).map(|edit| &edit.picture)
}

/// The places where two pictures differ: groups of pixels that are close to each other.
fn places(a: &Picture, b: &Picture, but: &[PixelBox]) -> Vec<PixelBox> {
    const CLOSE: f64 = 9.0;
    let mut places: Vec<PixelBox> = Vec::new();
    for ((x, y, one), two) in a.rgb().enumerate_pixels().zip(b.rgb().pixels()) {
        let pixel = PixelBox::new(x.into(), y.into(), f64::from(x) + 1.0, f64::from(y) + 1.0);
        if one == two || but.iter().any(|area| gap(area, &pixel) == 0.0) {
            continue;
        }
        let mut grown = pixel;
        places.retain(|place| {
            let near = gap(place, &grown) < CLOSE;
            if near {
                grown = grown.union(place);
            }
            !near
        });
        places.push(grown);
    }
    places
}

/// An object's box with its shadow, and what a mean editor may grow it to.
fn with_shadow(boxes: &[PixelBox]) -> Vec<PixelBox> {
    let grown = |b: &PixelBox| b.grown(4.0 + b.width() * 0.25, 4.0 + b.height() * 0.25);
    boxes.iter().map(grown).collect()
}

#[test]
fn every_type_has_targets_that_one_phrase_finds() {
    let vocabulary = vocabulary();
    for (index, (plan, case)) in SMALL.iter().enumerate() {
        assert_eq!(case.kind, Kind::ALL[index % 7]);
        assert!(vocabulary.contains(&case.target), "{}", case.target);
        let whole = PixelBox::whole(case.source.size());
        for b in &case.boxes {
            let part = b.area() / whole.area();
            assert!((0.001..=0.05).contains(&part), "case {index}: {part}");
            assert_eq!(b.intersection(&whole), *b, "case {index}");
        }
        let look = plan.look().unwrap();
        for slot in plan.slots.iter().filter(|slot| slot.shown && slot.role != Role::Target) {
            assert!(!look.clashes(&slot.object.look), "case {index}: {}", case.target);
        }
        let named = case.objects.iter().filter(|object| object.phrase == case.target);
        assert_eq!(named.count(), case.boxes.len(), "case {index}");
        let several = case.kind == Kind::ChangeCount || index % 5 == 3;
        assert_eq!(case.boxes.len() > 1, several, "case {index}");
        assert!(case.objects.iter().all(|object| vocabulary.contains(&object.phrase)));
    }
}

#[test]
fn editors_change_what_their_labels_say() {
    for (index, (plan, case)) in SMALL.iter().enumerate() {
        let touched = with_shadow(&case.touched);
        let elsewhere = |editor| {
            let picture = edit(case, editor)?;
            Some(places(&case.source, picture, &touched).len())
        };
        assert_eq!(elsewhere(Editor::Perfect), Some(0), "case {index}");
        // A wrong count may be one too many.
        let spare = plan.slots.iter().any(|slot| slot.role == Role::Wanted);
        assert!(elsewhere(Editor::WrongAction) <= Some(spare.into()), "case {index}");
        assert_ne!(edit(case, Editor::Perfect), Some(&case.source), "case {index}");
        assert_ne!(edit(case, Editor::WrongAction), edit(case, Editor::Perfect));
        assert_eq!(elsewhere(Editor::WrongObject), Some(1), "case {index}");
        assert_eq!(elsewhere(Editor::HarmsOnce), Some(1), "case {index}");
        let several = elsewhere(Editor::HarmsSeveral).unwrap();
        assert!((2..=4).contains(&several), "case {index}: {several}");

        let target = |editor: Editor| {
            let picture = edit(case, editor).unwrap();
            case.boxes.iter().map(|area| picture.cropped(area)).collect::<Vec<_>>()
        };
        assert_eq!(target(Editor::HarmsOnce), target(Editor::Perfect), "case {index}");
        let skipped = matches!(case.kind, Kind::RemovalObject | Kind::ReplaceObject);
        assert_eq!(edit(case, Editor::OverModifies).is_none(), skipped, "case {index}");
        assert_eq!(case.edits.len(), if skipped { 8 } else { 9 }, "case {index}");
        assert_ne!(edit(case, Editor::Perfect), Some(&case.reference));
    }
}

#[test]
fn the_wrong_object_leaves_the_targets_alone() {
    for (index, (_, case)) in SMALL.iter().enumerate() {
        let wrong = edit(case, Editor::WrongObject).unwrap();
        for area in &case.boxes {
            assert_eq!(wrong.cropped(area), case.source.cropped(area), "case {index}");
        }
    }
}

#[test]
fn what_a_killed_run_left_is_taken_away_but_not_what_another_is_drawing() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join(".drawn.unfinished");
    fs::create_dir_all(left.join("edits/somebody")).unwrap();
    fs::write(left.join("edits/somebody/0001.png"), b"half").unwrap();
    let out = folder.path().join("drawn");
    let lock = fs::File::create(left.join(".lock")).unwrap();
    lock.lock().unwrap();
    let error = make(&out, 1, 5, &|| ()).unwrap_err();
    assert!(matches!(error, DrawError::Busy { .. }), "{error}");
    assert!(left.join("edits/somebody").is_dir());
    drop(lock);
    let drawn = std::sync::atomic::AtomicUsize::new(0);
    let count = || {
        drawn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    make(&out, 1, 5, &count).unwrap();
    assert_eq!(drawn.into_inner(), 1);
    assert!(!left.exists() && !out.join("edits/somebody").exists() && !out.join(".lock").exists());
}

#[test]
fn the_same_seed_gives_the_same_files_however_many_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/drawn");
    let made = make(&out, 2, 5, &|| ()).unwrap();
    assert_eq!((made.cases, made.labels), (2, made.edits * 2));

    let lines = fs::read_to_string(&made.cases_file).unwrap();
    let record: CaseRecord = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    let again = case(5, 1).unwrap();
    assert_eq!((&record.id, &record.boxes), (&again.id, &again.boxes));
    assert_eq!(fs::read(out.join(&record.source)).unwrap(), again.source.to_png());
    assert_eq!(fs::read(out.join(record.reference.unwrap())).unwrap(), again.reference.to_png());
    for edit in &again.edits {
        let path = &record.edits[edit.editor.name()];
        assert_eq!(fs::read(out.join(path)).unwrap(), edit.picture.to_png(), "{path}");
    }
    let labels = fs::read_to_string(&made.labels_file).unwrap();
    let labels: Vec<LabelRecord> =
        labels.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(labels.len(), made.labels);
    assert!(labels.iter().all(|label| label.annotator == "truth"));
    assert_eq!(fs::read_dir(out.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");

    let refused = make(&out, 2, 5, &|| ()).unwrap_err();
    assert!(refused.to_string().contains("is not empty"), "{refused}");
}

#[test]
fn absurd_numbers_of_cases_are_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    for (cases, advice) in [(0, "at least one"), (MOST_CASES + 1, "ask for fewer")] {
        let error = make(&folder.path().join("drawn"), cases, 1, &|| ()).unwrap_err().to_string();
        assert!(error.contains(advice), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_vocabulary_has_no_phrase_twice() {
    let mut phrases = vocabulary();
    let count = phrases.len();
    phrases.sort();
    phrases.dedup();
    assert_eq!((phrases.len(), count), (count, 20 * 20 + 24));
}
