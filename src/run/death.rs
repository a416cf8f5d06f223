//! How the process before us ended: on purpose, through its own doing, or by somebody's hand.
//!
//! A process that is killed can say nothing, and one that aborts next to nothing. So it leaves a file
//! while it works, in which stands how many processes the system has ended so far for want of memory, and
//! to which an abort adds a byte.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::sync::Arc;

use crate::received;

/// What an abort leaves behind what was written.
const ABORTED: u8 = b'X';
const LARGEST: u64 = 1 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// There was none, or it came to its end.
    Ended,
    /// Somebody killed it, or the power went: whatever it did is not to blame.
    Killed,
    /// It aborted, or the system ended a process for want of memory meanwhile.
    ByItself,
}

/// How the process that left the file at `path` ended. The file is taken away.
pub(super) fn of_the_last(path: &Path) -> End {
    let left = received::read(path, LARGEST);
    // Also what cannot be read: it would be in our way.
    let _ = fs::remove_file(path);
    let Ok(left) = left else { return End::Ended };
    if left.last() == Some(&ABORTED) {
        return End::ByItself;
    }
    let before = std::str::from_utf8(&left).ok().and_then(|text| text.trim().parse().ok());
    match before.zip(ended_for_memory()) {
        Some((before, now)) if now > before => End::ByItself,
        _ => End::Killed,
    }
}

/// How many processes the system has ended for want of memory since it started, where it says so.
fn ended_for_memory() -> Option<u64> {
    let counters = fs::read_to_string("/proc/vmstat").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// The file that says that a process is at work.
#[derive(Debug)]
pub(super) struct AtWork {
    path: PathBuf,
    #[cfg(unix)]
    aborts: Vec<signal_hook::SigId>,
}

impl AtWork {
    /// Only a help: where it cannot be written, no death is anybody's fault.
    pub(super) fn begin(path: PathBuf) -> Option<Self> {
        let mut file = File::options().append(true).create_new(true).open(&path).ok()?;
        writeln!(file, "{}", ended_for_memory().unwrap_or(0)).ok()?;
        #[cfg(unix)]
        let aborts = {
            use signal_hook::{consts::SIGABRT, flag, low_level::pipe};
            let written = pipe::register(SIGABRT, file);
            // And then what an abort does without us, also one that somebody else has sent.
            let dies = flag::register_conditional_default(SIGABRT, Arc::new(true.into()));
            [written, dies].into_iter().flatten().collect()
        };
        Some(Self {
            path,
            #[cfg(unix)]
            aborts,
        })
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        #[cfg(unix)]
        for action in self.aborts.drain(..) {
            signal_hook::low_level::unregister(action);
        }
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("process");
        assert_eq!(of_the_last(&path), End::Ended);
        drop(AtWork::begin(path.clone()).unwrap());
        assert_eq!(of_the_last(&path), End::Ended);

        std::mem::forget(AtWork::begin(path.clone()).unwrap());
        assert_eq!(of_the_last(&path), End::Killed);
        assert!(!path.exists());
        for (left, end) in [
            (&b""[..], End::Killed),
            (b"0", End::Killed),
            (b"99999999999999\n", End::Killed),
            (b"-1\n", End::Killed),
            (b"not a number\n", End::Killed),
            (b"0\nX", End::ByItself),
            (b"X", End::ByItself),
        ] {
            fs::write(&path, left).unwrap();
            let now = ended_for_memory().unwrap_or(0);
            let end = if left == b"0" && now > 0 { End::ByItself } else { end };
            assert_eq!(of_the_last(&path), end, "{}", left.escape_ascii());
        }
        if let Some(before) = ended_for_memory().and_then(|now| now.checked_sub(1)) {
            fs::write(&path, before.to_string()).unwrap();
            assert_eq!(of_the_last(&path), End::ByItself, "for want of memory");
        }
    }
}
