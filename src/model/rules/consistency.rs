//! Visual consistency: is it the same scene, and how many other things changed?

use deeplook_tools::PixelBox;

use super::colours::fits;
use super::following;
use super::instruction::{Action, Wish};
use super::{Opinion, Place, View, label};

/// Judges by the places that changed. Where the target is painted over, `masked` is true and
/// everything that is left is an anomaly, unless the reference changes it too or it only reaches
/// out from under the paint.
pub(super) fn by_places(
    wish: &Wish,
    view: &View,
    reference: Option<&View>,
    masked: bool,
) -> Opinion {
    if view.everywhere {
        return Opinion::new(label::COLLAPSE, "nearly everything changed: it is another scene");
    }
    let own: Vec<usize> = if masked {
        let places = view.places.iter().enumerate();
        places.filter(|(_, place)| is_expected(wish, place, reference)).map(|(i, _)| i).collect()
    } else {
        following::targets(wish, view).into_iter().map(|(i, _)| i).collect()
    };
    let others: Vec<&Place> =
        view.places.iter().enumerate().filter(|(i, _)| !own.contains(i)).map(|(_, p)| p).collect();
    let count = others.len() + view.left_out;
    let text = format!(
        "{} places differ, and I take {} of them for the edit itself: {count} are left",
        view.places.len() + view.left_out,
        own.len()
    );
    let verdict = match count {
        0 => label::PERFECT,
        1 => label::SINGLE,
        _ => label::MULTIPLE,
    };
    let mut opinion = Opinion::new(verdict, &text);
    let shown = if others.is_empty() { view.places.iter().collect() } else { others };
    opinion.evidence = shown.into_iter().take(4).filter_map(|place| place.crop.clone()).collect();
    opinion
}

/// Whether a change outside the painted target belongs to the edit.
fn is_expected(wish: &Wish, place: &Place, reference: Option<&View>) -> bool {
    let overlaps = |other: &PixelBox| {
        let shared = place.bbox.intersection(other).area();
        shared > 0.4 * place.bbox.area().min(other.area()).max(1.0)
    };
    if reference.is_some_and(|view| view.places.iter().any(|other| overlaps(&other.bbox))) {
        return true;
    }
    let Some(sight) = &place.sight else { return false };
    // One too many is a matter of following the instruction.
    let counted = matches!(wish.action, Action::Count { from, to } if to > from)
        && sight.before.is_none()
        && sight.after.zip(wish.before).is_some_and(|(seen, meant)| fits(seen, meant));
    sight.beside_paint || counted
}
