//! The one place through which anything reaches a terminal.
//!
//! Names of files, labels, words of servers and models are in what is printed, and a terminal obeys
//! what is in its text: it moves, erases, colours, renames the window, or turns the direction of
//! reading. So nothing passes but plain text and our own styles, whoever printed it.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, IsTerminal as _, Write};
use std::sync::LazyLock;

use crate::visible::visible;

/// Bold, a colour, or both: `{style}text{style:#}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style(&'static str);

impl Style {
    pub(crate) const NONE: Self = Self("0");
    pub(crate) const BOLD: Self = Self("1");
    pub(crate) const DIM: Self = Self("2");
    pub(crate) const TITLE: Self = Self("1;4");
    pub(crate) const RED: Self = Self("31");
    pub(crate) const GREEN: Self = Self("32");
    pub(crate) const STRONG_RED: Self = Self("1;4;31");
    pub(crate) const STRONG_GREEN: Self = Self("1;4;32");
    pub(crate) const BOLD_RED: Self = Self("1;31");
    pub(crate) const BOLD_GREEN: Self = Self("1;32");
    pub(crate) const BOLD_YELLOW: Self = Self("1;33");
    pub(crate) const BOLD_MAGENTA: Self = Self("1;35");
    pub(crate) const BOLD_CYAN: Self = Self("1;36");
    const ALL: [Self; 13] = [
        Self::NONE,
        Self::BOLD,
        Self::DIM,
        Self::TITLE,
        Self::RED,
        Self::GREEN,
        Self::STRONG_RED,
        Self::STRONG_GREEN,
        Self::BOLD_RED,
        Self::BOLD_GREEN,
        Self::BOLD_YELLOW,
        Self::BOLD_MAGENTA,
        Self::BOLD_CYAN,
    ];
}

/// What our own styles begin with. It is drawn anew for every process, so that no text that comes
/// from elsewhere can hold it.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let random = || RandomState::new().build_hasher().finish();
    format!("\u{1b}{:016x}{:016x};", random(), random())
});

impl fmt::Display for Style {
    /// The alternate form ends it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = if f.alternate() { Self::NONE.0 } else { self.0 };
        f.write_str(&format!("{}{code}m", *MARK))
    }
}

/// Standard output, for texts.
pub(crate) fn stdout() -> Screen<impl Write> {
    #[expect(clippy::disallowed_methods, reason = "what is written to it is made harmless first")]
    Screen(anstream::stdout())
}

/// Standard error, for texts.
pub(crate) fn stderr() -> Screen<impl Write> {
    #[expect(clippy::disallowed_methods, reason = "what is written to it is made harmless first")]
    Screen(anstream::stderr())
}

/// Whether somebody sees standard error.
pub(crate) fn is_watched() -> bool {
    #[expect(clippy::disallowed_methods, reason = "nothing is written to it")]
    io::stderr().is_terminal()
}

/// A stream to which only harmless text goes. It is text, not bytes: each write is whole characters.
pub(crate) struct Screen<W>(W);

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(styled(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Plain text with our own styles as the terminal wants them, and nothing else that it would obey.
fn styled(text: &str) -> String {
    let mut parts = text.split(MARK.as_str());
    let mut out = plain(parts.next().unwrap_or_default());
    for part in parts {
        let style = |style: &Style| part.strip_prefix(style.0)?.strip_prefix('m').map(|_| *style);
        match Style::ALL.iter().find_map(style) {
            Some(Style(code)) => {
                out.push_str(&format!("\u{1b}[{code}m"));
                out.push_str(&plain(&part[code.len() + 1..]));
            }
            None => out.push_str(&plain(part)),
        }
    }
    out
}

fn plain(text: &str) -> String {
    // At the end of a line it belongs to it; elsewhere it goes back to the line's beginning.
    visible(&text.replace("\r\n", "\n")).replace('\r', "[U+000D]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut screen = Screen(Vec::new());
        write!(screen, "{text}").unwrap();
        String::from_utf8(screen.0).unwrap()
    }

    #[test]
    fn only_our_own_styles_reach_the_terminal() {
        let bold = Style::BOLD;
        assert_eq!(shown(&format!("{bold}x{bold:#}\ty\n")), "\u{1b}[1mx\u{1b}[0m\ty\n");
        let hostile = "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7} \u{9b}2J \u{202e}txt.exe\u{2028}";
        let told = shown(&format!("{bold}{hostile}{bold:#}"));
        assert_eq!(told.matches('\u{1b}').count(), 2, "{told:?}");
        assert!(told.contains("[U+001B][31mred") && told.contains("[U+202E]txt.exe[U+2028]"));
        assert!(!told.contains(['\u{7}', '\u{9b}', '\u{202e}', '\u{2028}']), "{told:?}");
        assert_eq!(shown("one\rtwo\r\nthree"), "one[U+000D]two\nthree");
    }

    #[test]
    fn a_mark_that_was_cut_or_misused_is_no_style() {
        let mark = MARK.as_str();
        assert_eq!(shown(&format!("{mark}5;999m{mark}")), "5;999m");
        assert!(shown(&mark[..10]).starts_with("[U+001B]"));
        assert_eq!(mark, MARK.as_str());
    }
}
