//! Starting other programs, so that neither the folder that we happen to be in nor a variable that is
//! none of their business has a part in it.

use std::path::Path;
use std::process::{Command, Stdio};

/// What any program needs: where programs are, whose home it is, the language, where to put what is
/// temporary, and what nothing starts without on Windows. A `*` stands for any ending.
const USUAL: [&str; 21] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_*",
    "LD_LIBRARY_PATH",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
];

/// What pip goes by besides: its own settings, proxies, certificates, logins of package indexes, and
/// which Python a version manager takes.
pub(crate) const PIP: [&str; 11] = [
    "PIP_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NETRC",
    "PYENV_*",
];

/// What a browser needs besides: the screen, the desktop, and the user's choice.
pub(crate) const BROWSER: [&str; 13] = [
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "BROWSER",
    "SHELL",
    "KDE_*",
    "GNOME_*",
    "GTK_*",
    "QT_*",
    "MOZ_*",
    "WSL*",
];

/// `program` in the folder `at`, which is not one that anybody else has put files into. Of the
/// environment it gets the usual and `more`, and so no key of ours.
pub(crate) fn command(program: &str, at: &Path, more: &[&str]) -> Command {
    let wanted = |name: &str| USUAL.iter().chain(more).any(|known| is_meant(known, name));
    let kept = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(wanted));
    let mut command = Command::new(program);
    command.current_dir(at).env_clear().envs(kept).stdin(Stdio::null());
    command
}

/// Windows and proxies do not care for case.
fn is_meant(known: &str, name: &str) -> bool {
    match known.strip_suffix('*') {
        Some(begin) => {
            name.get(..begin.len()).is_some_and(|start| start.eq_ignore_ascii_case(begin))
        }
        None => known.eq_ignore_ascii_case(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_meant_whole_or_by_their_beginning() {
        assert!(is_meant("PATH", "Path") && is_meant("HTTP_PROXY", "http_proxy"));
        assert!(is_meant("LC_*", "LC_ALL") && is_meant("PIP_*", "PIP_INDEX_URL"));
        assert!(!is_meant("PATH", "PYTHONPATH") && !is_meant("PIP_*", "PI"));
        assert!(!is_meant("LC_*", "äöü"));
    }
}
