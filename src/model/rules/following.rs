//! Instruction following: was the right thing changed, in the right way, and nothing more of it?

use deeplook_tools::Picture;

use super::colours::{Rgb, distance, fits, name};
use super::instruction::{Action, Wish};
use super::look::{Mask, Palette, Patch, Piece, Sight};
use super::{Opinion, Place, View, label};

/// The side at which the crops of the oracle mode are looked at.
const SIDE: u32 = 224;

/// Judges a crop around the target by what the reference makes of it; `None` where that is nothing,
/// for then it tells nothing.
pub(super) fn with_reference(
    wish: &Wish,
    source: &Picture,
    edited: &Picture,
    reference: &Picture,
) -> Option<Opinion> {
    let size = source.size().with_long_side(source.size().long_side().min(SIDE));
    let source = Patch::of(source, size);
    let seen = Trio {
        edited: Patch::of(edited, size).laid_onto(&source),
        reference: Patch::of(reference, size).laid_onto(&source),
        source,
    };
    let asked = seen.source.differs_from(&seen.reference);
    if asked.count() == 0 {
        return None;
    }
    Some(compared(wish, &seen, &asked))
}

fn compared(wish: &Wish, seen: &Trio, asked: &Mask) -> Opinion {
    let made = seen.source.differs_from(&seen.edited);
    if made.minus(asked).share() > 0.5 {
        return Opinion::new(
            label::NOT_LOCALISED,
            "the edited crop shows something else altogether, so the target is not there",
        );
    }
    if let Action::Count { .. } = wish.action {
        return counted(seen, asked, &made);
    }
    let near = around(asked);
    let made = made.and(&near);
    let wrong = seen.reference.differs_from(&seen.edited).and(&near);
    let either = asked.or(&made);
    let (missing, left) = (part(&wrong, &either), part(&made.and(&asked.grown(1)), asked));
    let numbers = format!(
        "of what the reference changes here {:.0} % changed; {:.0} % of all changes differ from it",
        left * 100.0,
        missing * 100.0
    );
    if left < 0.15 && made.count() < asked.count() / 3 {
        return Opinion::new(
            label::NOT_LOCALISED,
            &format!("{numbers}: the target was left alone"),
        );
    }
    if missing < 0.10 {
        return Opinion::new(label::FLAWLESS, &format!("{numbers}: it looks like the reference"));
    }
    let over = match wish.action {
        Action::Remove | Action::Replace => false,
        Action::Retext | Action::Reshape => {
            let known = asked.grown(3);
            let palette =
                Palette::of(seen.source.under(&known).chain(seen.reference.under(&known)));
            let new = made.filtered(&seen.edited, |rgb| !palette.has(rgb));
            let beyond = made.minus(&asked.grown(1)).count() as f32 / asked.count() as f32;
            part(&new, &made) > 0.25 || (wish.action == Action::Retext && beyond > 0.8)
        }
        _ => {
            let ring = asked.hull().grown(6).minus(&asked.hull().grown(2));
            let ground = Palette::of(seen.source.under(&ring));
            let palette = Palette::of(seen.reference.under(asked));
            let right = made.filtered(&seen.edited, |rgb| palette.has(rgb) && !ground.has(rgb));
            part(&right, &made) > 0.2
        }
    };
    if over {
        let text = format!("{numbers}: it was done, but the target changed beyond it");
        Opinion::new(label::OVER_MODIFIED, &text)
    } else {
        let text = format!("{numbers}: the target changed, but not as asked");
        Opinion::new(label::WRONG_ACTION, &text)
    }
}

/// Three crops of the same place, laid onto the first.
struct Trio {
    source: Patch,
    edited: Patch,
    reference: Patch,
}

fn part(some: &Mask, all: &Mask) -> f32 {
    some.count() as f32 / all.count().max(1) as f32
}

/// The boxes around what belongs together, with some room.
fn around(mask: &Mask) -> Mask {
    let (w, h) = mask.size();
    let boxes = mask.grown(4).pieces().into_iter().map(|piece| {
        let [x1, y1, x2, y2] = piece.bounds.map(|v| v as f32);
        let room = 0.3 * (x2 - x1).max(y2 - y1);
        let (w, h) = (w as f32, h as f32);
        mask.block([(x1 - room) / w, (y1 - room) / h, (x2 + room) / w, (y2 + room) / h])
    });
    boxes.reduce(|a, b| a.or(&b)).unwrap_or_else(|| mask.clone())
}

/// Another number of things: which came or went, compared with the reference.
fn counted(seen: &Trio, asked: &Mask, made: &Mask) -> Opinion {
    let objects: Vec<Mask> = asked
        .grown(2)
        .pieces()
        .into_iter()
        .map(|p| asked.joined([p].into_iter()).and(asked))
        .collect();
    let largest = objects.iter().map(Mask::count).max().unwrap_or(0);
    let objects: Vec<&Mask> = objects.iter().filter(|o| o.count() * 4 > largest).collect();
    let done = objects.iter().filter(|object| part(&made.and(object), object) > 0.3).count();
    // What the counted things look like: the side of the change that is not the ground.
    let look = |object: &Mask| {
        let ring = object.hull().grown(6).minus(&object.hull().grown(2));
        let ground = Palette::of(seen.source.under(&ring));
        let figure = |patch: &Patch| object.filtered(patch, |rgb| !ground.has(rgb));
        let (was, is) = (figure(&seen.source), figure(&seen.reference));
        if was.count() > is.count() { seen.source.median(&was) } else { seen.reference.median(&is) }
    };
    let looks: Vec<Rgb> = objects.iter().filter_map(|object| look(object)).collect();
    let alike = |rgb: Rgb| looks.iter().any(|own| distance(*own, rgb) < 45.0);
    // What differs from the reference and has their colour in one of the two.
    let wrong = seen.reference.differs_from(&seen.edited);
    let of_theirs = |patch: &Patch| wrong.filtered(patch, alike);
    let differing = of_theirs(&seen.reference).or(&of_theirs(&seen.edited));
    let pieces: Vec<Piece> =
        differing.pieces().into_iter().filter(|piece| piece.pixels.len() * 5 > largest).collect();
    // A thing that only grew or shrank is there in both.
    let resized = |piece: &&Piece| {
        let place = wrong.within(piece.bounds);
        let held = |patch: &Patch| place.filtered(patch, alike).count();
        let (theirs, own) = (held(&seen.reference), held(&seen.edited));
        theirs.min(own) * 5 > theirs.max(own)
    };
    let resized = pieces.iter().filter(resized).count();
    let numbers = format!(
        "of {} things that should come or go {done} did; {} more differ from the reference, {resized} \
         of them in size only",
        objects.len(),
        pieces.len()
    );
    let verdict = match (done, pieces.len()) {
        (0, _) => label::NOT_LOCALISED,
        (_, 0) => label::FLAWLESS,
        (_, n) if resized * 2 >= n => label::OVER_MODIFIED,
        _ => label::WRONG_ACTION,
    };
    Opinion::new(verdict, &numbers)
}

/// How a place that changed fits what was asked for, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// As asked.
    Done,
    /// As asked, and more.
    Over,
    /// The right thing, the wrong change.
    Wrong,
    /// Not the thing that was meant.
    Other,
}

/// The places where the target is, as far as can be told, and how each fits.
pub(super) fn targets(wish: &Wish, view: &View) -> Vec<(usize, Fit)> {
    let fit = |place: &Place| place.sight.as_ref().map_or(Fit::Other, |sight| fit(wish, sight));
    let mut found: Vec<(usize, Fit)> = view.places.iter().map(fit).enumerate().collect();
    found.retain(|(_, fit)| *fit != Fit::Other);
    found.sort_by_key(|(index, fit)| (*fit, *index));
    if let Action::Count { .. } = wish.action {
        return found;
    }
    // Where the detector saw what is meant, the other places are something else.
    let seen = |index: usize| {
        let place = &view.places[index].bbox;
        view.named.iter().any(|named| !named.intersection(place).is_empty())
    };
    if found.iter().any(|(index, _)| seen(*index)) {
        found.retain(|(index, _)| seen(*index));
    }
    let best = found.first().map(|(_, fit)| *fit);
    found.retain(|(_, fit)| Some(*fit) == best);
    if wish.targets > 0 {
        found.truncate(wish.targets);
    }
    found
}

/// Judges by the places that changed.
pub(super) fn by_places(wish: &Wish, view: &View) -> Opinion {
    if view.everywhere {
        return Opinion::new(label::NOT_LOCALISED, "the picture changed everywhere");
    }
    let targets = targets(wish, view);
    let mut opinion = match (wish.action, targets.first()) {
        (_, None) if view.places.is_empty() => {
            Opinion::new(label::NOT_LOCALISED, "nothing changed at all")
        }
        (_, None) => Opinion::new(
            label::NOT_LOCALISED,
            "something changed, but nothing that looks like what is meant",
        ),
        (Action::Count { from, to }, Some(_)) => number(from, to, &targets),
        (_, Some((_, Fit::Done))) => Opinion::new(
            label::FLAWLESS,
            "what is meant changed, and as asked, as far as I can tell",
        ),
        (_, Some((_, Fit::Over))) => Opinion::new(
            label::OVER_MODIFIED,
            "what is meant changed as asked, and more of it than that",
        ),
        (_, Some(_)) => {
            Opinion::new(label::WRONG_ACTION, "what is meant changed, but not as asked")
        }
    };
    opinion.evidence = targets.iter().filter_map(|(i, _)| view.places[*i].crop.clone()).collect();
    if opinion.evidence.is_empty() {
        opinion.evidence = view.places.iter().take(2).filter_map(|p| p.crop.clone()).collect();
    }
    opinion
}

fn number(from: usize, to: usize, targets: &[(usize, Fit)]) -> Opinion {
    let moved = targets.iter().filter(|(_, fit)| *fit == Fit::Done).count();
    let resized = targets.iter().filter(|(_, fit)| *fit == Fit::Over).count();
    let text = format!(
        "{moved} things of the right colour came or went where {} were asked for; {resized} more changed",
        from.abs_diff(to)
    );
    let verdict = match moved {
        0 => label::NOT_LOCALISED,
        n if n != from.abs_diff(to) => label::WRONG_ACTION,
        _ if resized > 0 => label::OVER_MODIFIED,
        _ => label::FLAWLESS,
    };
    Opinion::new(verdict, &text)
}

/// How what is seen at one place fits the wish.
fn fit(wish: &Wish, sight: &Sight) -> Fit {
    let is = |seen: Option<Rgb>, meant: Option<Rgb>| match (seen, meant) {
        (Some(seen), Some(meant)) => fits(seen, meant),
        _ => false,
    };
    let same_outline = sight.outline > 0.72;
    let same_colour = match (sight.before, sight.after) {
        (Some(a), Some(b)) => distance(a, b) < 50.0,
        _ => false,
    };
    let (before, after) = (sight.before, sight.after);
    if let Action::Count { from, to } = wish.action {
        let (gone, there) = if to > from { (before, after) } else { (after, before) };
        return match (gone, is(there, wish.before)) {
            (None, true) => Fit::Done,
            (Some(_), true) if same_colour && !same_outline => Fit::Over,
            _ => Fit::Other,
        };
    }
    let meant = wish.before.map_or(before.is_some(), |_| is(before, wish.before));
    if !meant || wish.action == Action::Nothing {
        return Fit::Other;
    }
    // A pattern has the colour in some of its pixels only.
    let share = |meant: Rgb| {
        let own = sight.shown.iter().filter(|rgb| distance(**rgb, meant) < 58.0).count();
        own as f32 / sight.shown.len().max(1) as f32
    };
    let in_part = after.is_some() && wish.after.is_some_and(|meant| share(meant) > 0.25);
    let reached = wish.after.map_or(after.is_some() && !same_colour, |_| is(after, wish.after));
    match wish.action {
        Action::Recolour | Action::Rematerial if !reached && !in_part => Fit::Wrong,
        Action::Recolour if reached && same_outline && sight.motley < 0.35 => Fit::Done,
        Action::Rematerial if same_outline => Fit::Done,
        Action::Recolour | Action::Rematerial => Fit::Over,
        Action::Retext if same_colour => Fit::Done,
        Action::Retext if after.is_some() => Fit::Over,
        Action::Retext => Fit::Wrong,
        Action::Reshape if after.is_none() => Fit::Wrong,
        Action::Reshape if same_colour => Fit::Done,
        Action::Reshape => Fit::Over,
        Action::Remove if after.is_none() => Fit::Done,
        Action::Remove => Fit::Wrong,
        Action::Replace if reached => Fit::Done,
        Action::Replace => Fit::Wrong,
        Action::Count { .. } | Action::Nothing | Action::Unknown => Fit::Done,
    }
}

/// What is seen at a place, in words.
pub(super) fn in_words(sight: &Sight) -> String {
    let thing = |rgb: Option<Rgb>| match rgb {
        Some(rgb) => format!("something {}", name(rgb)),
        None => "nothing".to_owned(),
    };
    format!(
        "{} became {} (outlines agree to {:.0} %, {:.0} % of it changed, {:.0} % is of several colours)",
        thing(sight.before),
        thing(sight.after),
        sight.outline * 100.0,
        sight.changed * 100.0,
        sight.motley * 100.0
    )
}
