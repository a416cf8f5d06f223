//! Untrusted text for people: what would be invisible, turn the reading direction around or make a
//! terminal do something is spelled out.

use std::fmt::Write as _;

/// `text` with its invisible characters in words, e.g. `[U+202E]`.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_deceptive(c) {
            let _ = write!(shown, "[U+{:04X}]", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The same for a name, which has one line.
pub(crate) fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "[U+000A]").replace('\r', "[U+000D]").replace('\t', "[U+0009]")
}

/// Control characters, marks and overrides of direction, and characters of no width.
fn is_deceptive(c: char) -> bool {
    let is_space = matches!(c, '\n' | '\t' | '\r');
    let is_direction = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_nothing = matches!(c, '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}' | '\u{feff}');
    c.is_control() && !is_space
        || is_direction
        || is_nothing
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// JSON for the eyes of a person: the same value, with nothing invisible in it. A template escapes
/// it as any text.
pub(crate) fn honest_json(json: &str) -> String {
    escaped(json, is_deceptive)
}

/// JSON that may stand in a script.
pub(crate) fn script_json(json: &str) -> String {
    escaped(json, |c| matches!(c, '<' | '>' | '&') || is_deceptive(c))
}

/// Characters that JSON only has in strings, written as `\u…`.
fn escaped(json: &str, which: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if which(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_spelled_out() {
        assert_eq!(visible("photo\u{202e}gpj.exe"), "photo[U+202E]gpj.exe");
        assert_eq!(visible("a\u{0}b\u{1b}[31m"), "a[U+0000]b[U+001B][31m");
        assert_eq!(visible_line("a\r\nerror: b"), "a[U+000D][U+000A]error: b");
        assert_eq!(visible("שלום\nline\tتجربة"), "שלום\nline\tتجربة");
    }

    #[test]
    fn json_stays_the_same_value_and_cannot_close_a_script() {
        let value = serde_json::json!({"</script>": "<!-- &\u{2028}\u{202e}\u{e0041} ü"});
        let script = script_json(&value.to_string());
        assert!(!script.contains(['<', '>', '&', '\u{2028}', '\u{202e}', '\u{e0041}']));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&script).unwrap(), value);
    }
}
