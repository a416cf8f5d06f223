//! The offline judge: a deterministic policy that drives the same loop with the same tools.
//!
//! It is a baseline, not a judge to trust: it knows a few words, a few colours, and how to compare
//! pixels. It sees what any judge sees: the pictures as they were sent and the data of the
//! observations; never the truth, a file name or an editor's name.

mod colours;
mod consistency;
mod following;
mod instruction;
mod look;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use deeplook_tools::difference::{Settings, compare};
use deeplook_tools::scene::{EDITED, ORIGINAL, REFERENCE};
use deeplook_tools::{BoxConvention, Picture, PixelBox};
use serde_json::{Value, json};

use self::instruction::{Action, Wish};
use self::look::{Sight, sight};
use super::{ChatModel, FailedAttempt, ModelError, ModelRecord, Price};
use crate::message::{
    Dialect, Message, Observation, Part, Reply, Request, SentPicture, ToolChoice,
};
use crate::wire;

/// The tools that it uses.
const COMPARING: &str = "localize_differences";
const DETECTING: &str = "detect_object";
/// A detector that is less sure than this is not believed.
const SURE: f64 = 0.5;
/// How many differing places it asks for.
const MOST_PLACES: usize = 12;

/// The labels that it can give.
mod label {
    pub(super) const FLAWLESS: &str = "Flawless Execution";
    pub(super) const OVER_MODIFIED: &str = "Over Modification";
    pub(super) const WRONG_ACTION: &str = "Wrong Action";
    pub(super) const NOT_LOCALISED: &str = "Localization Failure";
    pub(super) const PERFECT: &str = "Perfect Consistency";
    pub(super) const SINGLE: &str = "Single Anomaly";
    pub(super) const MULTIPLE: &str = "Multiple Anomalies";
    pub(super) const COLLAPSE: &str = "Scene Collapse";
}

/// The offline judge.
#[derive(Debug, Clone, Default)]
pub struct Rules {}

impl Rules {
    /// The name by which it is chosen.
    pub const NAME: &str = "rules";

    /// How traces describe it.
    pub fn record(dialect: Dialect) -> ModelRecord {
        ModelRecord {
            id: Self::NAME.to_owned(),
            base_url: None,
            profile: Value::Null,
            params: BTreeMap::new(),
            dialect,
            boxes: BoxConvention::PIXELS,
            price: Some(Price::FREE),
        }
    }
}

impl ChatModel for Rules {
    async fn ask(
        &self,
        request: &Request,
        _on_attempt: &(dyn Fn(FailedAttempt) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        let request = request.clone();
        let message = tokio::task::spawn_blocking(move || decide(&request))
            .await
            .map_err(|_| ModelError::Server("the offline judge stopped".to_owned()))?
            .ok_or_else(|| {
                ModelError::Refused(
                    "the offline judge knows only the criteria `if` and `vc`; name a model with --model"
                        .to_owned(),
                )
            })?;
        let mut reply = wire::unserved(message);
        reply.finish_reason = Some("stop".to_owned());
        reply.served.model = Some(Self::NAME.to_owned());
        Ok(reply)
    }
}

/// What it thinks in the end.
#[derive(Debug, Clone)]
struct Opinion {
    label: &'static str,
    thought: String,
    /// Names of pictures.
    evidence: Vec<String>,
}

impl Opinion {
    fn new(label: &'static str, thought: &str) -> Self {
        Self { label, thought: thought.to_owned(), evidence: Vec::new() }
    }
}

/// Where two pictures differ.
#[derive(Debug, Clone)]
struct View {
    places: Vec<Place>,
    /// Where the detector is sure to have seen what is meant.
    named: Vec<PixelBox>,
    left_out: usize,
    everywhere: bool,
}

/// A place where two pictures differ.
#[derive(Debug, Clone)]
struct Place {
    bbox: PixelBox,
    sight: Option<Sight>,
    /// The name of the picture that shows it.
    crop: Option<String>,
}

/// All that a request tells.
struct Facts<'a> {
    request: &'a Request,
    task: &'a Value,
    parts: &'a [Part],
}

impl<'a> Facts<'a> {
    fn read(request: &'a Request) -> Option<Self> {
        request.messages.iter().find_map(|message| match message.as_ref() {
            Message::User { data, parts } if data.is_object() => {
                Some(Self { request, task: data, parts })
            }
            _ => None,
        })
    }

    fn text(&self, key: &str) -> &'a str {
        self.task[key].as_str().unwrap_or_default()
    }

    fn may_look(&self) -> bool {
        self.has_tool(COMPARING) && self.request.tool_choice == ToolChoice::Auto
    }

    fn has_tool(&self, name: &str) -> bool {
        self.request.tools.iter().any(|tool| tool.name == name)
    }

    fn has(&self, name: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Picture(sent) if sent.name == name))
    }

    fn picture(&self, name: &str) -> Option<Picture> {
        self.parts.iter().find_map(|part| match part {
            Part::Picture(sent) if sent.name == name => decoded(sent),
            _ => None,
        })
    }

    fn observations(&self) -> impl Iterator<Item = &'a Observation> {
        self.request.messages.iter().flat_map(|message| match message.as_ref() {
            Message::Observations { observations, .. } => observations.as_slice(),
            _ => &[],
        })
    }

    /// What the tool said of the original and `second`, if it was asked.
    fn observed(&self, second: &str) -> Option<&'a Observation> {
        self.observations().find(|seen| {
            seen.call.name == COMPARING && seen.call.arguments["comparison_image_2"] == second
        })
    }

    /// Where the original and `second` differ: by the tool, or else with its own eyes.
    fn view(&self, second: &str) -> Option<View> {
        let told = self.observed(second).filter(|seen| seen.data["regions"].is_array());
        let own = || Some(own_view(&self.picture(ORIGINAL)?, &self.picture(second)?));
        let named = self.detected();
        told.map(told_view).or_else(own).map(|view| View { named, ..view })
    }

    /// Where the detector is sure to have seen what is meant, in the original.
    fn detected(&self) -> Vec<PixelBox> {
        let looks = self.observations().filter(|seen| seen.call.name == DETECTING);
        let boxes = looks.flat_map(|seen| seen.data["boxes"].as_array().into_iter().flatten());
        let sure = boxes.filter(|found| found["score"].as_f64().is_some_and(|score| score > SURE));
        sure.filter_map(|found| serde_json::from_value(found["bbox"].clone()).ok()).collect()
    }
}

/// Whether what differs, in percent of the picture, is more than things.
fn is_everywhere(percent: f64) -> bool {
    percent > 33.0
}

fn decoded(sent: &SentPicture) -> Option<Picture> {
    Picture::decode(&sent.name, &sent.bytes).ok()
}

/// The regions that the tool found, each with a look at its crop.
fn told_view(seen: &Observation) -> View {
    let place = |region: &Value| {
        let crop = region["crop"].as_str().unwrap_or_default();
        let sent = seen.pictures.iter().find(|sent| sent.name == crop);
        let halves = sent.and_then(|sent| decoded(sent)).map(|pair| halves(&pair));
        Some(Place {
            bbox: serde_json::from_value(region["bbox"].clone()).ok()?,
            sight: halves.and_then(|(left, right)| sight(&left, &right)),
            crop: sent.map(|sent| sent.name.clone()),
        })
    };
    let regions = seen.data["regions"].as_array().map_or(&[][..], Vec::as_slice);
    View {
        places: regions.iter().filter_map(place).collect(),
        named: Vec::new(),
        left_out: seen.data["left_out"].as_u64().unwrap_or(0) as usize,
        everywhere: seen.data["changed_everywhere"] == true
            || seen.data["differing_percent"].as_f64().is_some_and(is_everywhere)
            || regions.iter().any(|r| r["percent"].as_f64().is_some_and(is_everywhere)),
    }
}

/// The halves of a pair with a red line of four pixels between, beside or above each other.
fn halves(pair: &Picture) -> (Picture, Picture) {
    let whole = PixelBox::whole(pair.size());
    let (width, height) = (pair.size().width, pair.size().height);
    let red = |x: u32, y: u32| pair.rgb().get_pixel(x, y).0 == [255, 0, 0];
    if height > 4 && (0..width).all(|x| red(x, height / 2)) {
        let middle = whole.y2 / 2.0;
        let top = PixelBox { y2: middle - 2.0, ..whole };
        let bottom = PixelBox { y1: middle + 2.0, ..whole };
        return (pair.cropped(&top), pair.cropped(&bottom));
    }
    let middle = whole.x2 / 2.0;
    let left = PixelBox { x2: middle - 2.0, ..whole };
    let right = PixelBox { x1: middle + 2.0, ..whole };
    (pair.cropped(&left), pair.cropped(&right))
}

/// Where two pictures differ, without the tool.
fn own_view(first: &Picture, second: &Picture) -> View {
    let seen = compare(first, second, MOST_PLACES, &Settings::default());
    let places = seen.regions.iter().map(|region| {
        let margin = 0.5 * region.bbox.width().max(region.bbox.height());
        let left = region.bbox.grown(margin, margin).whole_pixels(first.size());
        let right = seen.registration.to_second(&left);
        let sight = sight(&first.cropped(&left), &second.cropped(&right));
        Place { bbox: region.bbox, sight, crop: None }
    });
    View {
        places: places.collect(),
        named: Vec::new(),
        left_out: seen.left_out,
        everywhere: seen.changed_everywhere
            || is_everywhere(seen.differing * 100.0)
            || seen.regions.iter().any(|r| is_everywhere(r.area_fraction * 100.0)),
    }
}

/// The next message; `None` where it does not know the criterion.
fn decide(request: &Request) -> Option<Value> {
    let facts = Facts::read(request)?;
    let wish = instruction::read(facts.text("instruction"));
    let following = match facts.text("criterion") {
        "if" => true,
        "vc" => false,
        _ => return None,
    };
    if facts.may_look() && facts.observations().next().is_none() {
        return Some(look_first(&facts, &wish));
    }
    let oracle = facts.text("mode") == "oracle";
    let opinion = if following && oracle {
        at_the_target(&facts, &wish)
    } else {
        by_places(&facts, &wish, following, oracle)
    };
    let refuse = |why: &str| Some(json!({ "role": "assistant", "content": null, "refusal": why }));
    let opinion = match opinion {
        Ok(opinion) => opinion,
        Err(why) => return refuse(why),
    };
    // Only a picture of what is meant, or a mask over it, can stand for words that are not understood.
    let shown = match following {
        true => oracle && facts.has(REFERENCE),
        false => oracle || facts.has(REFERENCE),
    };
    if wish.action == Action::Unknown && !shown {
        return refuse(
            "the offline judge does not understand the instruction; ask a model with --model",
        );
    }
    Some(answer(&wish, &opinion))
}

const UNSEEN: &str = "the offline judge could not see the pictures";

/// Judges by the places that changed; the error says why it cannot.
fn by_places(
    facts: &Facts<'_>,
    wish: &Wish,
    following: bool,
    masked: bool,
) -> Result<Opinion, &'static str> {
    let view = facts.view(EDITED).ok_or(UNSEEN)?;
    let mut opinion = if following {
        following::by_places(wish, &view)
    } else {
        let reference = facts.has(REFERENCE).then(|| facts.view(REFERENCE)).flatten();
        consistency::by_places(wish, &view, reference.as_ref(), masked)
    };
    let places = view.places.iter().filter_map(|place| {
        let what = following::in_words(place.sight.as_ref()?);
        Some(format!("{}: {what}. ", place.crop.as_deref().unwrap_or("One place")))
    });
    opinion.thought = places.chain([opinion.thought]).collect();
    Ok(opinion)
}

/// Judges the crops around a target; the error says why it cannot.
fn at_the_target(facts: &Facts<'_>, wish: &Wish) -> Result<Opinion, &'static str> {
    let (source, edited) = facts.picture(ORIGINAL).zip(facts.picture(EDITED)).ok_or(UNSEEN)?;
    let mut opinion = match facts.picture(REFERENCE) {
        Some(reference) => following::with_reference(wish, &source, &edited, &reference).ok_or(
            "the reference changes nothing in this crop, so that the offline judge cannot tell what \
             was to change; ask a model with --model",
        )?,
        // Things that came or went are anywhere in the crop.
        None if matches!(wish.action, Action::Count { .. }) => {
            following::by_places(wish, &own_view(&source, &edited))
        }
        None => {
            let place = |sight: Sight| Place {
                bbox: PixelBox::whole(source.size()),
                sight: Some(sight),
                crop: None,
            };
            let places = sight(&source, &edited).map(place).into_iter().collect();
            // The place is given, so the thing is the one that is meant.
            let wish = Wish { before: None, ..wish.clone() };
            following::by_places(&wish, &View { places, named: Vec::new(), left_out: 0, everywhere: false })
        }
    };
    opinion.evidence = vec![ORIGINAL.to_owned(), EDITED.to_owned()];
    Ok(opinion)
}

/// Asks the tools where the pictures differ, also from the reference where there is one, and where
/// the thing is that is meant. A masked picture does not show it.
fn look_first(facts: &Facts<'_>, wish: &Wish) -> Value {
    let seconds = [EDITED, REFERENCE].into_iter().filter(|name| facts.has(name));
    let compare = seconds.map(|second| {
        let arguments = json!({
            "comparison_image_1": ORIGINAL,
            "comparison_image_2": second,
            "max_regions": MOST_PLACES,
        });
        (COMPARING, arguments)
    });
    let searches = facts.has_tool(DETECTING) && facts.text("mode") != "oracle";
    let detect =
        wish.name.as_ref().filter(|_| searches).map(|name| {
            (DETECTING, json!({ "target_image": ORIGINAL, "detect_object_name": name }))
        });
    let calls: Vec<(&str, Value)> = compare.chain(detect).collect();
    let thought = thinking("I compare the pictures first.");
    match facts.request.dialect {
        Dialect::Native => {
            let call = |(number, (name, arguments)): (usize, &(&str, Value))| {
                json!({
                    "id": format!("call_{}", number + 1),
                    "type": "function",
                    "function": { "name": name, "arguments": arguments.to_string() },
                })
            };
            let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
            json!({ "role": "assistant", "content": thought, "tool_calls": calls })
        }
        Dialect::Tags => {
            let call = |(name, arguments): &(&str, Value)| {
                json!({ "name": name, "parameters": arguments }).to_string()
            };
            let calls: Vec<String> = calls.iter().map(call).collect();
            let text = format!("{thought}\n<tool_call>\n{}\n</tool_call>", calls.join("\n"));
            json!({ "role": "assistant", "content": text })
        }
    }
}

fn thinking(thought: &str) -> String {
    format!(
        "<Start Thinking>I am the offline judge, a baseline of fixed rules. {thought}</Start Thinking>"
    )
}

fn answer(wish: &Wish, opinion: &Opinion) -> Value {
    let understood = format!("I take the instruction for {}. ", wish.action.in_words());
    let thought = thinking(&format!("{understood}{}.", opinion.thought));
    let evidence = match opinion.evidence.as_slice() {
        [] => String::new(),
        names => format!("\n<Evidence>{}</Evidence>", names.join(", ")),
    };
    let answer = format!("\n<Start Final Answer>{}</Start Final Answer>", opinion.label);
    json!({ "role": "assistant", "content": format!("{thought}{evidence}{answer}") })
}
