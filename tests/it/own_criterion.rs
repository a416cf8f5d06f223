//! `docs/own-criterion.md`: its commands, as printed.

use std::fs;
use std::path::Path;
use std::process::Command;

#[cfg(unix)]
#[test]
fn the_walkthrough_does_what_it_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/own-criterion.md");
    let text = fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> =
        text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 4);
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_deeplook")).parent().unwrap();
    let path = std::env::join_paths(
        [program.to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut printed = String::new();
    for block in blocks {
        let output = Command::new("sh")
            .args(["-e", "-c", block])
            .current_dir(folder.path())
            .env("PATH", path.as_ref().unwrap())
            .env("DEEPLOOK_OFFLINE", "1")
            .env_remove("DEEPLOOK_MODEL")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{block}\n{told}");
        printed.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    for words in ["neat: clean", "SIMULATED answers", "Neatness", "What stayed the same"] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    assert!(folder.path().join("pages/index.html").is_file());
}
