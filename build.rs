//! Which commit this is built from, for the manifests of traces.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the program is made of. Nothing else is looked at, so that this runs again only where the
/// crate is compiled again anyway.
const SOURCES: [&str; 5] = ["src", "prompts", "tools/src", "Cargo.toml", "build.rs"];

fn main() {
    let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let folder = Path::new(&folder);
    for path in SOURCES.iter().filter(|path| folder.join(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=DEEPLOOK_COMMIT");
    let given = env::var("DEEPLOOK_COMMIT").ok().filter(|commit| !commit.is_empty());
    if let Some(commit) = given.or_else(|| packaged(folder)).or_else(|| checked_out(folder)) {
        println!("cargo::rustc-env=DEEPLOOK_COMMIT={commit}");
    }
}

/// What cargo wrote into a package: `{"git": {"sha1": "…"}, …}`.
fn packaged(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join(".cargo_vcs_info.json")).ok()?;
    let (_, after) = text.split_once("\"sha1\"")?;
    let commit = after.split('"').nth(1)?;
    let dirty = if text.contains("\"dirty\": true") { "+" } else { "" };
    is_commit(commit).then(|| format!("{commit}{dirty}"))
}

/// What git says, if this folder is a repository of its own.
fn checked_out(folder: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(folder).arg("--no-optional-locks").args(arguments);
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if fs::canonicalize(top).ok()? != fs::canonicalize(folder).ok()? {
        return None;
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&[&["status", "--porcelain", "--"], &SOURCES[..]].concat())?;
    let dirty = if changed.is_empty() { "" } else { "+" };
    is_commit(&commit).then(|| format!("{commit}{dirty}"))
}

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
