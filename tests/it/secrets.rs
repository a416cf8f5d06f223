//! Secrets: whatever a server makes of a key that it was sent, it is in nothing that we print or keep.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use super::command::{deeplook, run as command, stderr};
use super::judging::files;
use super::runs::{data, eval};
use super::wire::server::{Server, says, text};

const KEY: &str = "sk-aB3dE6gH9jK2mN5pQ8";

/// The ways in which a server may repeat the key within the JSON that it sends.
fn echoes() -> Vec<String> {
    let coded = |form: &dyn Fn(u8) -> String| KEY.bytes().map(form).collect::<String>();
    vec![
        KEY.to_owned(),
        format!("\\u0073{}", &KEY[1..]),
        coded(&|byte| format!("\\u{byte:04x}")),
        coded(&|byte| format!("\\\\u{byte:04x}")),
        coded(&|byte| format!("%{byte:02X}")),
        coded(&|byte| format!("{byte:02x}")),
        STANDARD.encode(KEY).replace('/', "\\/"),
        URL_SAFE_NO_PAD.encode(format!("Bearer {KEY}")),
        KEY[..10].to_owned(),
        KEY[11..].to_owned(),
        format!("{}…{}", &KEY[..6], &KEY[KEY.len() - 4..]),
        format!("{}***{}", &KEY[..6], &KEY[KEY.len() - 4..]),
    ]
}

/// Pieces of the key, as it is and encoded, of which none may be anywhere.
fn traces_of_the_key() -> Vec<String> {
    let pieces = [&KEY[..6], &KEY[6..14], &KEY[KEY.len() - 4..]].map(str::to_owned);
    let base64 = STANDARD.encode(KEY);
    let shifted = URL_SAFE_NO_PAD.encode(format!("Bearer {KEY}"));
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    pieces
        .into_iter()
        .chain([base64[4..12].to_owned(), shifted[16..24].to_owned(), hex[8..24].to_owned()])
        .collect()
}

#[test]
fn an_echo_of_the_key_is_nowhere() {
    let folder = data(1);
    let echo = echoes().join(" or ");
    let reply = format!(
        r#"{{"model": "{echo}", "choices": [{{"message": {{"role": "assistant", "refusal": "{echo}",
            "content": "{echo} <Start Final Answer>{echo}</Start Final Answer>"}}, "finish_reason": "{echo}"}}]}}"#
    );
    let script = vec![
        text(503, &format!(r#"{{"error": {{"message": "busy, {echo}"}}}}"#)),
        text(200, &reply),
        text(200, &reply),
        text(400, &format!("<html>{echo}</html>")),
        text(401, &format!(r#"{{"error": {{"message": "no such key: {echo}"}}}}"#))
            .with("Location", &format!("http://a.org/?key={KEY}")),
    ];
    let server = Server::start(script);
    let mut command = eval(folder.path(), &server, &["--json", "--log", "log.jsonl"]);
    let output = command.env("OPENAI_API_KEY", KEY).env("RUST_LOG", "trace").output().unwrap();
    assert!(server.arrived().iter().all(|arrived| arrived.head.contains(KEY)));
    let mut texts = vec![
        ("stdout".to_owned(), output.stdout.clone()),
        ("stderr".to_owned(), output.stderr.clone()),
    ];
    for file in files(folder.path()) {
        texts.push((file.display().to_string(), fs::read(&file).unwrap()));
    }
    assert!(texts.iter().any(|(name, _)| name.contains("cache/replies")), "a reply is kept");
    for (name, bytes) in texts {
        let text = String::from_utf8_lossy(&bytes);
        for piece in traces_of_the_key() {
            assert!(!text.contains(&piece), "{piece} is in {name}: {text}");
        }
    }
}

#[test]
fn user_and_password_of_an_address_are_hidden_in_every_form() {
    let folder = data(1);
    let basic = STANDARD.encode("me:pass-w0rd-of-mine");
    let server = Server::start(vec![text(
        400,
        &format!(r#"{{"error": "you sent Basic {basic} which is me:pass-w0rd-of-mine"}}"#),
    )]);
    let address = server.base_url.replace("http://", "http://me:pass-w0rd-of-mine@");
    let output = deeplook(folder.path())
        .args(["eval", "set", "--mode", "plain", "--model", "m", "--run", "run", "--json"])
        .args(["--base-url", &address])
        .output()
        .unwrap();
    assert!(server.arrived()[0].head.contains(&basic), "it is sent");
    let mut all = output.stdout;
    all.extend(output.stderr);
    for file in files(&folder.path().join("run")) {
        all.extend(fs::read(&file).unwrap());
    }
    let all = String::from_utf8_lossy(&all);
    assert!(all.contains("you sent"), "{all}");
    for secret in [&basic[..10], "pass-w0rd"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
}

#[test]
fn a_word_that_happens_to_be_a_key_destroys_nothing() {
    let folder = data(1);
    let content =
        "An EMPTY table, as everyone sees.<Start Final Answer>Wrong Action</Start Final Answer>";
    let server = Server::start(vec![says(&json!({"role": "assistant", "content": content}))]);
    for key in ["EMPTY", "table", "everyone-may-use-it"] {
        let args = ["--no-cache", "--criterion", "if", "--run", key];
        let output =
            eval(folder.path(), &server, &args).env("OPENAI_API_KEY", key).output().unwrap();
        let kept: String = files(&folder.path().join(key))
            .iter()
            .filter(|path| path.ends_with("events.jsonl"))
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        assert!(kept.contains("An EMPTY table, as everyone sees."), "{key}: {}", stderr(&output));
    }
}

#[cfg(unix)]
#[test]
fn a_key_may_be_in_a_file_and_is_nowhere_else() {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, keys) = (data(1), tempfile::tempdir().unwrap());
    let path = keys.path().join("key.txt");
    fs::write(&path, format!("  {KEY}\r\n")).unwrap();
    let server = Server::start(vec![text(400, &format!("you sent {KEY}"))]);
    let ask = |mode: u32, more: &[&str]| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = eval(folder.path(), &server, more);
        command.env("OPENAI_API_KEY_FILE", &path).output().unwrap()
    };
    let output = ask(0o600, &["--log", "log.jsonl"]);
    assert!(!stderr(&output).contains("chmod"), "{}", stderr(&output));
    let sent = server.arrived();
    assert!(!sent.is_empty() && sent.iter().all(|arrived| arrived.head.contains(KEY)));
    let mut all = [output.stdout, output.stderr].concat();
    for file in files(folder.path()) {
        all.extend(fs::read(&file).unwrap());
    }
    let all = String::from_utf8_lossy(&all);
    for secret in [KEY, &KEY[..8], "key.txt"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }

    let output = ask(0o644, &["--run", "open"]);
    assert!(stderr(&output).contains("chmod 600"), "{}", stderr(&output));
    fs::write(&path, "two words").unwrap();
    let asked = server.arrived().len();
    let output = ask(0o600, &["--run", "none"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("OPENAI_API_KEY_FILE"), "{}", stderr(&output));
    assert_eq!(server.arrived().len(), asked, "nobody is asked without the key");
}

#[test]
fn secrets_among_the_parameters_are_refused() {
    let folder = data(1);
    let hidden = "hidden-0123456789-hidden";
    let profile = folder.path().join("mine.toml");
    fs::write(&profile, format!("api_key = \"{hidden}\"\n")).unwrap();
    let plan = folder.path().join("plan.toml");
    let model = format!("[[models]]\nname = \"m\"\nparams = {{ Authorization = \"{hidden}\" }}\n");
    fs::write(&plan, format!("name = \"x\"\ncases = \"set/cases.jsonl\"\n{model}")).unwrap();
    let judge = ["eval", "set", "--model", "m", "--run", "run", "--base-url", "http://localhost:1"];
    let mut tries: Vec<Vec<String>> = [
        "Api-Key",
        "api_key",
        "token",
        "access_token",
        "headers",
        "extra_headers",
        "authorization",
        "Authorization",
        "password",
        "client_secret",
    ]
    .iter()
    .map(|name| {
        let param = ["--param".to_owned(), format!("{name}={hidden}")];
        judge.iter().map(ToString::to_string).chain(param).collect()
    })
    .collect();
    let with = |more: &[&str]| -> Vec<String> {
        judge.iter().chain(more).map(ToString::to_string).collect()
    };
    tries.push(with(&["--param", &format!("extra_body={{\"api_key\": \"{hidden}\"}}")]));
    tries.push(with(&["--param", &format!("user=Bearer {hidden}")]));
    tries.push(with(&["--profile", "mine.toml"]));
    tries.push(["experiment", "run", "plan.toml", "--out", "x"].map(str::to_owned).to_vec());
    for args in tries {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = command(folder.path(), &args);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains("environment variable"), "{args:?}: {told}");
        assert!(!told.contains(hidden), "{told}");
        assert!(!folder.path().join("run").exists(), "{args:?}");
    }
}
