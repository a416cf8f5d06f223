//! The pictures of a mode: which treatment takes which parameters.

use std::collections::BTreeSet;

use toml::Spanned;

use super::criterion::{Area, Ask, Context, Margin, Mode, PictureView, Treatment};
use super::file::{ModeEntry, TreatmentName, ViewEntry};
use super::lint::Check;
use super::making::Making;

/// The place that a question is about, as views name it.
const QUESTION: &str = "question";
/// Longer edges are a slip of the keyboard.
const LONGEST_EDGE: u32 = 16_384;

/// The pictures of a mode, in order.
pub(super) fn of_mode(
    making: &mut Making<'_>,
    mode: Mode,
    entry: &ModeEntry,
    ask: &Ask,
    id: &Spanned<String>,
) -> Vec<PictureView> {
    let (criterion, at) = (id.get_ref(), id.span().start);
    let mut wrong = |message: String| {
        making.wrong(Check::Format, at, format!("the mode {mode} of {criterion:?} {message}"))
    };
    if entry.tools.is_none() {
        wrong("does not say whether there are tools; add tools = true or false".to_owned());
    }
    if entry.views.as_ref().is_none_or(Vec::is_empty) {
        wrong("shows nothing; list pictures under views".to_owned());
    }
    let mut views: Vec<PictureView> = Vec::new();
    for view in entry.views.iter().flatten() {
        let made = of_entry(making, view, ask);
        if views.iter().any(|other| other.name.eq_ignore_ascii_case(&made.name)) {
            let message =
                format!("two pictures of a mode are called {:?}; give one another name", made.name);
            making.wrong(Check::Format, view.span().start, message);
        }
        views.push(made);
    }
    views
}

fn of_entry(making: &mut Making<'_>, entry: &Spanned<ViewEntry>, ask: &Ask) -> PictureView {
    let at = entry.span().start;
    let view = entry.get_ref();
    making.known_pictures(std::iter::once(&view.picture).chain(&view.over).chain(&view.fit), at);
    let problems = problems(view, ask);
    for problem in problems {
        making.wrong(Check::Format, at, format!("the view of {:?} {problem}", view.picture));
    }
    let own = |region: &String| match ask {
        Ask::Whole => false,
        Ask::Targets { region: own, .. } => region == own,
        Ask::Questions => region == QUESTION,
    };
    let area = Area {
        region: view.region.clone().filter(|region| !own(region)),
        place: view.place.unwrap_or_default(),
    };
    let margin =
        Margin { pixels: view.margin.unwrap_or(0.0), share: view.margin_share.unwrap_or(0.0) };
    let treatment = match view.treatment {
        TreatmentName::Whole => Treatment::Whole,
        TreatmentName::Crop => Treatment::Crop {
            area,
            context: view.context.map_or(Context::Margin(margin), Context::Adaptive),
            canvas: view.canvas,
            enlarge_to: view.enlarge_to,
            enlarge_place: view.enlarge_place,
            enlarge_most: view.enlarge_most,
        },
        TreatmentName::Mask => Treatment::Mask { area, margin },
        TreatmentName::Mark => Treatment::Mark { area, margin },
        TreatmentName::Overlay => {
            Treatment::Overlay { over: view.over.clone().unwrap_or_default() }
        }
    };
    let called = making.pictures.get(&view.picture).unwrap_or(&view.picture);
    PictureView {
        name: view.name.as_ref().unwrap_or(called).clone(),
        picture: view.picture.clone(),
        optional: view.optional,
        treatment,
        long_edge: view.long_edge,
        fit: view.fit.clone(),
        sizes: view.sizes,
        jpeg: view.jpeg,
        caption: view.caption.clone(),
    }
}

/// What is wrong with the parameters of a view.
fn problems(view: &ViewEntry, ask: &Ask) -> Vec<String> {
    let ViewEntry { treatment, .. } = view;
    let given: BTreeSet<&str> = [
        ("region", view.region.is_some()),
        ("place", view.place.is_some()),
        ("margin", view.margin.is_some()),
        ("margin_share", view.margin_share.is_some()),
        ("context", view.context.is_some()),
        ("canvas", view.canvas.is_some()),
        ("enlarge_to", view.enlarge_to.is_some()),
        ("enlarge_place", view.enlarge_place.is_some()),
        ("enlarge_most", view.enlarge_most.is_some()),
        ("over", view.over.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, given)| given.then_some(name))
    .collect();
    let area = ["region", "place", "margin", "margin_share"];
    let more = ["context", "canvas", "enlarge_to", "enlarge_place", "enlarge_most"];
    let (word, takes): (&str, Vec<&str>) = match treatment {
        TreatmentName::Whole => ("whole", Vec::new()),
        TreatmentName::Crop => ("crop", area.iter().chain(&more).copied().collect()),
        TreatmentName::Mask => ("mask", area.to_vec()),
        TreatmentName::Mark => ("mark", area.to_vec()),
        TreatmentName::Overlay => ("overlay", vec!["over"]),
    };
    let mut problems: Vec<String> = given
        .iter()
        .filter(|name| !takes.contains(*name))
        .map(|name| format!("is as = {word:?}, which takes no {name:?}; drop it"))
        .collect();
    let mut wrong = |problem: &str| problems.push(problem.to_owned());
    let placed = !matches!(treatment, TreatmentName::Whole | TreatmentName::Overlay);
    if placed && *ask == Ask::Whole && view.region.is_none() {
        wrong("needs to know where: name a region");
    }
    if placed && view.region.as_deref() == Some(QUESTION) && *ask != Ask::Questions {
        wrong("speaks of the place of a question; set ask = \"questions\", or name a region");
    }
    if view.context.is_some() && (view.margin.is_some() || view.margin_share.is_some()) {
        wrong("has a context and a margin; drop either");
    }
    if view.context.is_some_and(|c| !(c.small < c.large && c.least >= 0.0 && c.most >= c.least)) {
        wrong("has a context that cannot be: small < large, and 0 ≤ least ≤ most");
    }
    let bad = |number: Option<f64>| number.is_some_and(|n| !(n.is_finite() && n >= 0.0));
    if bad(view.margin) || bad(view.margin_share) {
        wrong("has a margin below 0");
    }
    if view.enlarge_most.is_some_and(|most| !(most.is_finite() && most >= 1.0)) {
        wrong("has enlarge_most below 1");
    }
    let ends = [
        view.enlarge_to.or(view.enlarge_place).is_some(),
        view.long_edge.is_some(),
        view.fit.is_some(),
    ]
    .into_iter();
    if ends.filter(|given| *given).count() > 1 {
        wrong("has two of enlarge_to, long_edge and fit; keep one");
    }
    if view.jpeg.is_some_and(|quality| !(1..=100).contains(&quality)) {
        wrong("has a jpeg quality that is not within 1 to 100");
    }
    for edge in
        [view.canvas, view.enlarge_to, view.enlarge_place, view.long_edge].into_iter().flatten()
    {
        if !(1..=LONGEST_EDGE).contains(&edge) {
            wrong("has an edge that is not within 1 to 16384 pixels");
        }
    }
    if *treatment == TreatmentName::Overlay && view.over.is_none() {
        wrong("is laid over nothing; name a picture under over");
    }
    problems
}
