//! Packs travel in traces: none of them may end the process that reads it.

use super::*;

/// Everything that the engine recurses into, so many times.
fn chained(times: usize) -> Vec<(&'static str, String)> {
    let tag = |inside: String| format!("{{{{ {inside} }}}}");
    let around = |open: &str, close: &str| {
        tag(format!("{}labels{}", open.repeat(times), close.repeat(times)))
    };
    let behind = |what: &str| tag(format!("labels{}", what.repeat(times)));
    vec![
        ("or", behind(" or 1")),
        ("and", behind(" and 1")),
        ("minus", behind(" - 1")),
        ("remainder", behind(" % 1")),
        ("division", behind(" // 1")),
        ("comparison", behind(" < 1")),
        ("in", behind(" in labels")),
        ("not in", behind(" not in labels")),
        ("attribute", behind(".a")),
        ("item", behind("[0]")),
        ("slice", behind("[0:]")),
        ("call", behind("()")),
        ("filter", behind("|a")),
        ("test", behind(" is a")),
        ("if", behind(" if 1")),
        ("if else", behind(" if 1 else 1")),
        ("not", around("not ", "")),
        ("negation", around("-", "")),
        ("spaced negation", around("- ", "")),
        ("parentheses", around("(", ")")),
        ("open parentheses", around("(", "")),
        ("lists", around("[", "]")),
        ("items in items", around("labels[", "]")),
        ("calls in calls", around("rule(", ")")),
        ("maps", around("{1: ", "}")),
        // The engine sees no end of a tag in braces.
        ("a chain behind braces", tag(format!("{{1: {{1: 1}}}}{}", " - 1".repeat(times)))),
        ("blocks", "{% if 1 %}".repeat(times) + &"{% endif %}".repeat(times)),
        ("open blocks", "{% for a in labels %}".repeat(times)),
        ("elif", format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(times))),
        ("else", "{% if 1 %}{% else %}".repeat(times) + &"{% endif %}".repeat(times)),
        ("targets", format!("{{% for {}a in labels %}}{{% endfor %}}", "(".repeat(times))),
        ("condition", format!("{{% if {}1 %}}{{% endif %}}", "not ".repeat(times))),
    ]
}

/// Does with a template all that is done with one of a pack.
fn read(text: String) -> Result<(), String> {
    template::scan(&text).map_err(|(_, message)| message)?;
    let mut environment = template::environment().map_err(|error| error.to_string())?;
    let added = environment.add_template_owned("it.j2", text);
    added.map_err(|error| error.to_string())?;
    let template = environment.get_template("it.j2").map_err(|error| error.to_string())?;
    template.undeclared_variables(true);
    let context = context! { labels => ["a", "b"] };
    template::render(&environment, "it.j2", context).map(drop).map_err(|fault| fault.message)
}

/// Threads have a quarter of the stack that a program begins with: what is let through must fit.
#[test]
fn no_chain_or_nest_overflows_the_stack() {
    for times in [20, 45, 60, 90, 130, 190, 400, 5_400, 60_000] {
        for (what, template) in chained(times) {
            let came = read(template);
            assert!(times < 400 || came.is_err(), "{what} {times} times");
        }
    }
}

#[test]
fn ordinary_templates_are_far_from_the_bounds() {
    let many = |times: usize| {
        let branch = "{% elif turns_left == 7 and dialect != \"tags\" and not tools_allowed %}x\n";
        format!("{{% if tools_allowed %}}\n{}{{% endif %}}\n", branch.repeat(times))
    };
    let long = format!("{{% if {} %}}x{{% endif %}}", ["turns_left == 7"; 30].join(" or "));
    for more in [many(30), long, many(3).repeat(2_000)] {
        Pack::from_files(with("reminder.j2", |text| text + &more)).unwrap();
    }
}

#[test]
fn a_template_of_tags_is_read_in_time() {
    let before = std::time::Instant::now();
    Pack::from_files(with("reminder.j2", |text| text + &"{{1}}\n".repeat(100_000))).unwrap();
    assert!(before.elapsed().as_secs() < 20, "{:?}", before.elapsed());
}
