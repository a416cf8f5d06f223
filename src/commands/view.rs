//! `deeplook view`: traces as web pages, on this machine or in a folder.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use anyhow::Context as _;

use crate::child;
use crate::cli::ViewArgs;
use crate::terminal;
use crate::view::{self, Index};

pub(super) fn run(args: &ViewArgs) -> anyhow::Result<ExitCode> {
    let reading = super::progress("reading traces", 0)?;
    let index = Index::open(&args.path, &|| reading.inc(1))?;
    reading.finish_and_clear();
    match &args.out {
        Some(out) => export(&index, out)?,
        None => {
            let runtime = crate::run::runtime()?;
            let served = runtime.block_on(serve(index, args));
            // Nor does it wait for a page that is being made.
            runtime.shutdown_background();
            served?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn export(index: &Index, out: &Path) -> anyhow::Result<()> {
    let bar = super::progress("writing pages", index.len())?;
    view::export(index, out, &|| bar.inc(1)).context("--out")?;
    bar.finish_and_clear();
    let page = out.join("index.html");
    writeln!(terminal::stdout(), "Wrote {} judgements. Open {}", index.len(), page.display())?;
    Ok(())
}

async fn serve(index: Index, args: &ViewArgs) -> anyhow::Result<()> {
    let count = index.len();
    let ready = |address: SocketAddr| {
        let url = format!("http://{address}/");
        let mut out = terminal::stdout();
        writeln!(out, "{count} judgements: open {url}\nPress Ctrl-C to stop.")?;
        out.flush()?;
        if args.open
            && let Err(error) = open(&url)
        {
            writeln!(
                terminal::stderr(),
                "cannot open the browser: {error:#}; open the address yourself"
            )?;
        }
        Ok(())
    };
    let stop = async {
        // Without a signal to wait for, it serves until it is ended otherwise.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    view::serve(index, args.port, ready, stop).await
}

fn open(url: &str) -> anyhow::Result<()> {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    // Not in the folder that is looked at: it may be anybody's.
    child::command(opener, Path::new("/"), &child::BROWSER)
        .arg(url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{opener} cannot be started"))?;
    Ok(())
}
