//! The loop without any I/O: what it asks for, and how it ends.

use deeplook_tools::{BoxConvention, Toolbox};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::wire;

fn script() -> Script {
    Script {
        reminders: (1..=8).map(|left| format!("reminder, {left} left")).collect(),
        answering: "answer".to_owned(),
        last_turn: "answer now".to_owned(),
        no_more_tools: "no more tools".to_owned(),
        repair_looking: format!("look or answer: {}", Script::PROBLEM),
        repair_answering: format!("answer: {}", Script::PROBLEM),
    }
}

fn start(limits: Limits, with_tools: bool) -> Deliberation {
    let specs =
        if with_tools { Toolbox::standard().specs(BoxConvention::PIXELS) } else { Vec::new() };
    let task = vec![Part::Text("the task".to_owned())];
    let form = AnswerForm::new(["Good Edit", "Bad Edit"]);
    let question = Question { system: "rules".to_owned(), task, data: Value::Null, form };
    Deliberation::new(question, specs, Dialect::Tags, script(), limits)
}

fn label(name: &str) -> Answer {
    Answer::Given(Answered::Label(name.to_owned()))
}

fn says(content: &str) -> Reply {
    reply(json!({ "role": "assistant", "content": content }), None)
}

fn reply(message: Value, finish_reason: Option<&str>) -> Reply {
    Reply {
        finish_reason: finish_reason.map(str::to_owned),
        usage: Usage { prompt_tokens: Some(100), completion_tokens: Some(10), ..Usage::default() },
        ..wire::unserved(message)
    }
}

const LOOK: &str =
    r#"<tool_call>{"name": "zoom_in", "parameters": {"bbox": [1, 2, 3, 4]}}</tool_call>"#;
const GOOD: &str = "<Start Final Answer>Good Edit</Start Final Answer>";

/// Plays the replies; tools see nothing. Returns what was asked and how it ended.
fn play(mut deliberation: Deliberation, replies: &[Reply]) -> (Vec<Request>, Ending, usize) {
    let mut replies = replies.iter().cycle();
    let (mut asked, mut looked) = (Vec::new(), 0);
    loop {
        match deliberation.next_step() {
            Step::AskModel(request) => {
                asked.push(request);
                assert!(asked.len() < 100, "it must end");
                deliberation.replied(replies.next().unwrap());
            }
            Step::UseTools { calls, .. } => {
                looked += calls.len();
                let saw = |call| Observation {
                    call,
                    text: "saw".into(),
                    data: Value::Null,
                    pictures: vec![],
                };
                deliberation.observed(calls.into_iter().map(saw).collect());
            }
            Step::Done(ending) => return (asked, ending, looked),
        }
    }
}

fn closing(request: &Request) -> String {
    match request.messages.last().unwrap().as_ref() {
        Message::Observations { closing, .. } => closing.clone(),
        Message::User { parts, .. } => format!("{parts:?}"),
        other => panic!("the last message must be ours: {other:?}"),
    }
}

#[test]
fn it_looks_and_then_answers() {
    let (asked, ending, looked) = play(start(Limits::default(), true), &[says(LOOK), says(GOOD)]);
    assert_eq!(ending.answer, label("Good Edit"));
    assert_eq!((asked.len(), looked), (2, 1));
    assert_eq!(closing(&asked[1]), "reminder, 7 left");
    assert_eq!(asked[1].messages[..2], asked[0].messages[..], "the beginning never changes");
}

#[test]
fn without_tools_there_is_one_turn_and_a_call_is_refused_once() {
    let (asked, ending, looked) = play(start(Limits::default(), false), &[says(LOOK), says(GOOD)]);
    assert_eq!(ending.answer, label("Good Edit"));
    assert_eq!((asked.len(), looked), (2, 0));
    let (asked, ending, _) = play(start(Limits::default(), false), &[says(LOOK)]);
    assert!(matches!(ending.answer, Answer::Abstained(_)), "{ending:?}");
    assert_eq!(asked.len(), 2);
}

#[test]
fn on_the_last_turn_tools_stay_declared_but_may_not_be_chosen() {
    let limits = Limits { turns: 3, ..Limits::default() };
    let (asked, ending, looked) = play(start(limits, true), &[says(LOOK)]);
    let choices: Vec<ToolChoice> = asked.iter().map(|request| request.tool_choice).collect();
    // Two looks, the last turn, and once more after "no more tools".
    assert_eq!(choices, [ToolChoice::Auto, ToolChoice::Auto, ToolChoice::None, ToolChoice::None]);
    assert!(asked.iter().all(|request| request.tools.len() == asked[0].tools.len()));
    assert_eq!(closing(&asked[2]), "answer now");
    assert_eq!(looked, 2);
    assert!(matches!(ending.answer, Answer::Abstained(_)), "{ending:?}");
}

#[test]
fn a_single_turn_with_tools_asks_for_the_answer_at_once() {
    let limits = Limits { turns: 1, ..Limits::default() };
    let (asked, _, looked) = play(start(limits, true), &[says(GOOD)]);
    assert_eq!((asked.len(), looked), (1, 0));
    assert_eq!(asked[0].tool_choice, ToolChoice::None);
    assert!(closing(&asked[0]).contains("answer now"));
}

#[test]
fn an_answer_beside_a_call_waits_for_the_look() {
    let both = format!("{LOOK}{GOOD}");
    let bad = "<Start Final Answer>Bad Edit</Start Final Answer>";
    let (_, ending, looked) = play(start(Limits::default(), true), &[says(&both), says(bad)]);
    assert_eq!((ending.answer, looked), (label("Bad Edit"), 1));
}

#[test]
fn calls_beyond_the_limit_are_answered_but_not_made() {
    let limits = Limits { tool_calls: 2, ..Limits::default() };
    let three = format!("{LOOK}{LOOK}{LOOK}");
    let (asked, ending, looked) = play(start(limits, true), &[says(&three), says(GOOD)]);
    assert_eq!((looked, asked.len()), (2, 2));
    assert_eq!(ending.answer, label("Good Edit"));
    let Message::Observations { observations, .. } = asked[1].messages.last().unwrap().as_ref()
    else {
        panic!("observations expected")
    };
    assert_eq!(observations.len(), 3, "every call is answered");
    assert!(observations[2].text.contains("limit of 2"), "{}", observations[2].text);
}

#[test]
fn what_cannot_be_read_is_told_twice_and_then_it_abstains() {
    let (asked, ending, _) = play(start(Limits::default(), true), &[says("hm, difficult")]);
    assert_eq!(asked.len(), 3);
    assert!(closing(&asked[1]).contains("look or answer"));
    assert!(
        matches!(&ending.answer, Answer::Abstained(why) if why.contains("no readable answer")),
        "{ending:?}"
    );

    let two = "<Start Final Answer>Good Edit, or Bad Edit</Start Final Answer>";
    let (_, ending, _) = play(start(Limits::default(), true), &[says(two)]);
    assert!(matches!(ending.answer, Answer::Abstained(_)), "never a guess: {ending:?}");
}

#[test]
fn refusals_filters_and_cut_replies_end_as_what_they_are() {
    let refusal =
        reply(json!({ "role": "assistant", "content": null, "refusal": "I will not" }), None);
    let (_, ending, _) = play(start(Limits::default(), true), &[refusal]);
    assert!(
        matches!(&ending.answer, Answer::Abstained(why) if why.contains("I will not")),
        "{ending:?}"
    );

    let filtered = reply(json!({ "role": "assistant", "content": "" }), Some("content_filter"));
    let (_, ending, _) = play(start(Limits::default(), true), &[filtered]);
    assert!(matches!(&ending.answer, Answer::Failed(why) if why.contains("filter")), "{ending:?}");

    let cut = reply(json!({ "role": "assistant", "content": "so I think that" }), Some("length"));
    let (asked, ending, _) = play(start(Limits::default(), true), &[cut]);
    assert!(
        matches!(&ending.answer, Answer::Failed(why) if why.contains("token limit")),
        "{ending:?}"
    );
    assert_eq!(asked.len(), 3);
}

#[test]
fn the_budget_of_tokens_is_a_failure_not_a_label() {
    let limits = Limits { tokens: Some(250), ..Limits::default() };
    let (asked, ending, _) = play(start(limits, true), &[says(LOOK)]);
    assert_eq!(asked.len(), 3);
    assert!(
        matches!(&ending.answer, Answer::Failed(why) if why.contains("250 tokens")),
        "{ending:?}"
    );
}

#[test]
fn a_broken_tool_ends_it() {
    let mut deliberation = start(Limits::default(), true);
    deliberation.replied(&says(LOOK));
    deliberation.fail("the tool is broken".to_owned());
    deliberation.observed(Vec::new());
    let Step::Done(ending) = deliberation.next_step() else { panic!("it must be over") };
    assert_eq!(ending.answer, Answer::Failed("the tool is broken".into()));
}

#[test]
fn absurd_counts_of_a_server_do_no_harm() {
    let usage =
        Usage { prompt_tokens: Some(u64::MAX), completion_tokens: Some(9), ..Usage::default() };
    let (_, ending, _) = play(start(Limits::default(), true), &[Reply { usage, ..says(GOOD) }]);
    assert_eq!(ending.answer, label("Good Edit"));
}

#[test]
fn evidence_is_checked_against_the_pictures_and_never_repaired() {
    let answer = format!("<Evidence>Crop 1, Crop 9</Evidence>{GOOD}");
    let (_, ending, _) = play(start(Limits::default(), true), &[says(&answer)]);
    assert_eq!(ending.evidence, Vec::<String>::new());
    assert_eq!(ending.unknown_evidence, ["Crop 1", "Crop 9"]);
}

proptest! {
    #[test]
    fn it_always_ends_and_never_asks_without_bound(
        replies in prop::collection::vec(prop_oneof![
            Just(LOOK.to_owned()), Just(GOOD.to_owned()), Just(String::from("hm")),
            Just("<tool_call>{broken</tool_call>".to_owned()), any::<String>(),
        ], 1..12),
        turns in 1u32..6, tool_calls in 0u32..6, repairs in 0u32..3, with_tools in any::<bool>(),
    ) {
        let limits = Limits { turns, tool_calls, tokens: None, repairs };
        let replies: Vec<Reply> = replies.iter().map(|text| says(text)).collect();
        let (asked, _, looked) = play(start(limits, with_tools), &replies);
        prop_assert!(asked.len() as u32 <= turns + repairs + 1, "{} questions", asked.len());
        prop_assert!(looked as u32 <= tool_calls);
        for pair in asked.windows(2) {
            prop_assert_eq!(&pair[1].messages[..pair[0].messages.len()], &pair[0].messages[..]);
        }
    }
}

#[test]
fn a_flood_of_calls_is_not_answered_one_by_one() {
    let flood = LOOK.repeat(MOST_AT_ONCE + 1);
    let (asked, ending, looked) = play(start(Limits::default(), true), &[says(&flood)]);
    assert_eq!((asked.len(), looked), (1, 0));
    let Answer::Abstained(reason) = ending.answer else { panic!("{:?}", ending.answer) };
    assert!(reason.contains("257 tool calls"), "{reason}");
}
