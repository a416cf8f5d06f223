//! A key from a file, for whoever does not want it in the environment: the variable that would hold the
//! key, with `_FILE` behind it, names the file. Neither the key nor the file's name is ever recorded.

use std::io::Write as _;
use std::path::Path;
use std::sync::Once;

use super::endpoint::Secret;
use crate::received;
use crate::terminal;

/// What stands behind the name of a variable.
const SUFFIX: &str = "_FILE";
const LARGEST: u64 = 16 << 10;

/// The key in the file that the environment names for `variable`; `None` if it names none. The error
/// says what is wrong with the file.
pub(super) fn find(variable: &str) -> Result<Option<Secret>, String> {
    let name = format!("{variable}{SUFFIX}");
    match std::env::var_os(&name) {
        Some(path) if !path.is_empty() => {
            let path = Path::new(&path);
            let say = |what: String| format!("the key file {} ({name}): {what}", path.display());
            read(path).map(Some).map_err(say)
        }
        _ => Ok(None),
    }
}

fn read(path: &Path) -> Result<Secret, String> {
    let bytes = received::read_named(path, LARGEST).map_err(|error| error.to_string())?;
    // Not a word of what is in it: it may be the key all the same.
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let key = Secret::new(&text).ok_or("it is empty; it must hold the key and nothing else")?;
    if key.expose().contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("it holds more than one word; it must hold the key and nothing else".to_owned());
    }
    if is_open_to_others(path) {
        static TOLD: Once = Once::new();
        let warning = "warning: others on this machine may read the key file: `chmod 600` it";
        TOLD.call_once(|| drop(writeln!(terminal::stderr(), "{warning}")));
    }
    Ok(key)
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_the_key_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let read_from = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(&path).map(|key| key.expose().to_owned())
        };
        assert_eq!(read_from(b" sk-hidden\r\n\n").unwrap(), "sk-hidden");
        for (bytes, said) in [
            (&b""[..], "empty"),
            (b" \n", "empty"),
            (b"OPENAI_API_KEY = sk-hidden", "more than one word"),
            (b"sk-hidden\nsk-hidden-2\n", "more than one word"),
            (b"sk-\x1b[31mhidden", "more than one word"),
            (b"sk-hidden\xff", "UTF-8"),
            (&[b'k'; LARGEST as usize + 1], "larger"),
        ] {
            let error = read_from(bytes).unwrap_err();
            assert!(error.contains(said) && !error.contains("hidden"), "{error}");
        }
        assert!(read(folder.path()).is_err() && read(&folder.path().join("none")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn others_may_not_read_it_unnoticed() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, open) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), permissions).unwrap();
            assert_eq!(is_open_to_others(file.path()), open, "{mode:o}");
        }
    }
}
