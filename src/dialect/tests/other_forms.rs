//! Replies in the habits of other protocols, and labels in the ways people really put them.

use super::*;

#[test]
fn answers_that_are_read() {
    let replies = [
        "<Start Final Answer>“Wrong Action”</Start Final Answer>",
        "<Start Final Answer>'Wrong Action'</Start Final Answer>",
        "<Start Final Answer>`Wrong Action`</Start Final Answer>",
        "<Start Final Answer>Wrong\nAction</Start Final Answer>",
        "<Start Final Answer>[Wrong Action]</Start Final Answer>",
        "<Start Final Answer><label>Wrong Action</label></Start Final Answer>",
        "<Start Final Answer>***Wrong Action***</Start Final Answer>",
        "<Start Final Answer># Wrong Action</Start Final Answer>",
        "<Start Final Answer>- Wrong Action</Start Final Answer>",
        "<Start Final Answer>$\\boxed{\\textbf{Wrong Action}}$</Start Final Answer>",
        "<Start Final Answer>label=Wrong Action</Start Final Answer>",
        r#"<Start Final Answer>{"label": "Wrong Action"}</Start Final Answer>"#,
        "<Start Final Answer>{'final_answer': 'Wrong Action',}</Start Final Answer>",
        "<Start Final Answer>Wrong Action<\\Start Final Answer>",
        "<start final answer>: Wrong Action",
        "Start Final Answer: Wrong Action",
        "**Start Final Answer** Wrong Action",
        "Start Final Answer>Wrong Action</Start Final Answer>",
        "<Start Final Answer Wrong Action</Start Final Answer>",
        "<FinalAnswer>Wrong Action</FinalAnswer>",
        "<label>Wrong Action</label>",
        r#"{"answer": "Wrong Action"}"#,
        r#"{"Final Answer": "**wrong action**."}"#,
        "[Label] → Wrong Action",
    ];
    for reply in replies {
        case(reply).answers(WRONG).check();
    }
    let with_thoughts = [
        (
            "<Start Final Answer>```json\n{\"label\": \"Wrong Action\"}\n```</Start Final Answer>",
            "```json\n{\"label\": \"Wrong Action\"}\n```",
        ),
        (
            "<Start Final Answer>Wrong Action<|im_end|></Start Final Answer>",
            "Wrong Action<|im_end|>",
        ),
        ("<Start Final Answer><b>Wrong Action</b></Start Final Answer>", "<b>Wrong Action</b>"),
        ("<Start Final Answer>1. Wrong Action</Start Final Answer>", "1. Wrong Action"),
        ("<Start Final Answer>Wrong Action (2)</Start Final Answer>", "Wrong Action (2)"),
        (
            "<Start Final Answer>I choose Wrong Action.</Start Final Answer>",
            "I choose Wrong Action.",
        ),
        (
            "<Start Final Answer>The scarf is not green, which makes it Wrong Action</Start Final Answer>",
            "The scarf is not green, which makes it Wrong Action",
        ),
        (
            r#"<Start Final Answer>{"label": "Wrong Action", "reason": "not Flawless Execution"}</Start Final Answer>"#,
            r#"{"label": "Wrong Action", "reason": "not Flawless Execution"}"#,
        ),
        (r#"{"thinking": "It is blue.", "final_answer": "Wrong Action"}"#, "It is blue."),
        (
            "```json\n{\n  \"thought\": \"It is blue, not green.\",\n  \"label\": \"Wrong Action\"\n}\n```",
            "It is blue, not green.",
        ),
        (r#"<think>Blue.</think>{"label": "Wrong Action"}"#, "Blue."),
        ("Blue.\n\n**Final Answer:** Wrong Action", "Blue."),
        ("Blue.\nMy judgement: Wrong Action\n---", "Blue."),
        (
            "Blue.<Start Final Answer>Wrong Action</Start Final Answer>\nI hope this helps!",
            "Blue.\n\nI hope this helps!",
        ),
        (
            "<Start Thinking>Blue</Start Thinking><Start Final Answer>Wrong Action</Start Final Answer>\nNot Flawless Execution.",
            "Blue\n\nNot Flawless Execution.",
        ),
    ];
    for (reply, thought) in with_thoughts {
        case(reply).thinks(thought).answers(WRONG).check();
    }
    let spelled = ["Localisation failure", "LOCALIZATION_FAILURE", "localization-failures"];
    for label in spelled {
        let reply = format!("<Start Final Answer>{label}</Start Final Answer>");
        let reading = read(&json!({ "content": reply }), &form());
        assert_eq!(reading.label(), Some(LOST), "{label}");
    }
}

#[test]
fn answers_in_doubt() {
    let answers = [
        ("This is far from Flawless Execution", "negated"),
        ("Anything but Flawless Execution", "negated"),
        ("It fails to be a Flawless Execution", "negated"),
        ("Flawless Execution is incorrect", "negated"),
        ("Possibly Flawless Execution", "doubt"),
        ("It might be Flawless Execution", "doubt"),
        ("no longer a Flawless Execution", "negated"),
        ("Rather than Flawless Execution", "negated"),
        ("Flawless Execution? No.", "doubt"),
        ("Flawless Execution does not apply", "negated"),
        // What stands beside a label may turn it, and no list of such words is ever complete.
        ("Flawless Execution is wrong", "negated"),
        ("Flawless Execution: no", "negated"),
        ("Flawless Execution: 0", "negated"),
        ("Flawless Execution = false", "negated"),
        ("I doubt Flawless Execution", "doubt"),
        ("I refuse to say Flawless Execution", "negated"),
        ("N/A (Flawless Execution is impossible)", "negated"),
        ("N/A: Flawless Execution", "negated"),
        ("If the scarf counts: Flawless Execution", "doubt"),
        ("If the scarf counts, the label is Flawless Execution", "doubt"),
        ("If the scarf counts, nothing changed, so Flawless Execution", "doubt"),
        ("One could say that it is green, so Flawless Execution", "doubt"),
        ("Everything except Flawless Execution", "negated"),
        ("Opposite of Flawless Execution", "negated"),
        ("Rejected: Flawless Execution", "negated"),
        ("Flawless Execution (rejected)", "negated"),
        ("Flawless Execution - not", "negated"),
        ("Flawless Execution - not green", "negated"),
        ("Flawless Execution, I guess", "doubt"),
        ("Is it Flawless Execution", "doubt"),
        ("!Flawless Execution", "negated"),
        ("Flawless Execution 👎", "negated"),
        ("🚫 Flawless Execution", "negated"),
        ("[ ] Flawless Execution", "negated"),
        ("<s>Flawless Execution</s>", "negated"),
        ("<del>Flawless Execution</del>", "negated"),
        ("¬ Flawless Execution", "negated"),
        (r#"{"answer": "not Flawless Execution"}"#, "negated"),
        (r#"{"answer": "Flawless Execution", "applies": false}"#, "negated"),
        (r#"{"Flawless Execution": false}"#, "negated"),
        (r#"{"answer": "Flawless Execution", "answer": "none"}"#, "negated"),
        ("Wrong Action (not Flawless Execution)", "two different labels"),
        ("Not Flawless Execution: Wrong Action", "two different labels"),
        ("Wrong Action/Over Modification", "two different labels"),
        (r#"{"label": "Wrong Action", "verdict": "Over Modification"}"#, "two different labels"),
        ("Action Wrong", "not a label"),
        ("Over-Modified", "not a label"),
        ("None", "not a label"),
        ("Perfect Consistency", "not a label"),
    ];
    for (answer, problem) in answers {
        let reply = format!("<Start Final Answer>{answer}</Start Final Answer>");
        let reading = read(&json!({ "content": reply }), &form());
        assert_eq!(reading.answer, None, "{answer}");
        let told = reading.problems.iter().any(|told| told.contains(problem));
        assert!(told, "{answer}: {:?}", reading.problems);
    }
}

#[test]
fn doubt_outside_of_tags_is_not_read_either() {
    for reply in [
        r#"{"answer": "not Flawless Execution"}"#,
        r#"{"answer": "Flawless Execution", "applies": false}"#,
        "I doubt Flawless Execution",
        "Flawless Execution: no",
        "Final answer: Flawless Execution 👎",
        "!Flawless Execution",
    ] {
        assert_eq!(read(&json!({ "content": reply }), &form()).answer, None, "{reply}");
    }
}

#[test]
fn a_label_may_be_led_in_and_explained() {
    for answer in [
        "Wrong Action because the scarf is not green",
        "The label is Wrong Action since it turned red, not green.",
        "This is a Wrong Action.",
        "Therefore: **Wrong Action**!",
        "It turned red, so the final answer is Wrong Action.",
        "✅ Wrong Action",
        "My verdict → `Wrong Action`",
        "<strong>Wrong Action</strong>",
        "2) Wrong Action [2]",
    ] {
        let reply = format!("<Start Final Answer>{answer}</Start Final Answer>");
        let reading = read(&json!({ "content": reply }), &form());
        assert_eq!(reading.label(), Some(WRONG), "{answer}: {:?}", reading.problems);
    }
}

#[test]
fn calls_of_other_protocols() {
    let replies = [
        "```tool_call\n{\"name\": \"zoom_in\", \"parameters\": {\"target_image\": \"Edited Image\", \"bbox\": [10, 20, 30, 40]}}\n```",
        "```json\n{\"name\": \"zoom_in\", \"parameters\": {\"target_image\": \"Edited Image\", \"bbox\": [10, 20, 30, 40]}}\n```",
        r#"{"name": "zoom_in", "parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}"#,
        r#"[{"name": "zoom_in", "parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}]"#,
        r#"[TOOL_CALLS] [{"name": "zoom_in", "arguments": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}]"#,
        r#"<|python_tag|>{"name": "zoom_in", "parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}"#,
        r#"<tools>{"name": "zoom_in", "parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}</tools>"#,
        "<tool_call><function=zoom_in>\n<parameter=target_image>\nEdited Image\n</parameter>\n<parameter=bbox>\n[10, 20, 30, 40]\n</parameter>\n</function></tool_call>",
        "<tool_call>zoom_in\n<arg_key>target_image</arg_key>\n<arg_value>Edited Image</arg_value>\n<arg_key>bbox</arg_key>\n<arg_value>[10, 20, 30, 40]</arg_value>\n</tool_call>",
        r#"<tool_call><name>zoom_in</name><parameters>{"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}</parameters></tool_call>"#,
        "<tool_call><name>zoom_in</name><parameters><target_image>Edited Image</target_image><bbox>10, 20, 30, 40</bbox></parameters></tool_call>",
        r#"<tool_call><invoke name="zoom_in"><parameter name="target_image">Edited Image</parameter><parameter name="bbox">[10, 20, 30, 40]</parameter></invoke></tool_call>"#,
        r#"<function_calls><invoke name="zoom_in"><parameter name="target_image">Edited Image</parameter><parameter name="bbox">[10, 20, 30, 40]</parameter></invoke></function_calls>"#,
        r#"<function=zoom_in>{"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}</function>"#,
        r#"<tool_call><zoom_in>{"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}</zoom_in></tool_call>"#,
        r#"<tool_call><tool>{"name": "zoom_in", "parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}</tool></tool_call>"#,
        r#"<tool_call>[zoom_in(target_image="Edited Image", bbox=[10, 20, 30, 40])]</tool_call>"#,
        r#"<tool_call>{{"name": "zoom_in", "parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}}</tool_call>"#,
        r#"<tool_call>{{"name": "zoom_in", "parameters": {{"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}}}</tool_call>"#,
        r#"<tool_call>{"name": "zoom_in" "parameters": {"target_image": "Edited Image" "bbox": [10 20 30 40]}}</tool_call>"#,
        r#"<tool_call>{"Name": "zoom_in", "Parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}</tool_call>"#,
        r#"<tool_call>{"tool_name": "zoom_in", "tool_arguments": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}</tool_call>"#,
        r#"<tool_call>{"tool": {"name": "zoom_in", "parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}}</tool_call>"#,
        r#"<tool_call>{"type": "function", "function": {"name": "zoom_in", "parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}}</tool_call>"#,
        r#"<tool_call>{"name": "zoom_in", "parameters": {"target_image": "Edited Image", "bbox": [[10, 20], [30, 40]]}}</tool_call>"#,
        r#"<tool_call>{"name": "zoom_in", "parameters": {"parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}}</tool_call>"#,
        r#"<tool_call>{"name": "zoom_in", "parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}</tool_call"#,
        r#"<|tool_call_begin|>{"name": "zoom_in", "parameters": {"target_image": "Edited Image", "bbox": [10, 20, 30, 40]}}<|tool_call_end|>"#,
    ];
    for reply in replies {
        case(reply).zooms().check();
    }
    case("I look closer.\n\n```json\n{\"name\": \"a\", \"arguments\": {}}\n```")
        .thinks("I look closer.")
        .calls("a", json!({}))
        .check();
    case(r#"<think>Hm.</think>{"name": "a", "parameters": {}} {"name": "b", "parameters": {}}"#)
        .thinks("Hm.")
        .calls("a", json!({}))
        .calls("b", json!({}))
        .check();
    // Quoted within a sentence, it is not a call.
    let quoted = r#"I could call {"name": "a", "parameters": {}} next."#;
    case(quoted).thinks(quoted).check();
}

#[test]
fn native_arguments_that_hold_the_whole_call() {
    let whole = json!({"name": "zoom_in", "arguments": zoom()}).to_string();
    let inner = json!({ "parameters": zoom() }).to_string();
    for arguments in [whole, inner] {
        let call = json!({"id": "1", "function": {"name": "zoom_in", "arguments": arguments}});
        let (calls, problems) = native(json!({ "tool_calls": [call] }));
        assert_eq!((calls[0].2.clone(), problems), (zoom(), vec![]));
    }
}
