//! `deeplook view`: traces as web pages, on this machine or in a folder.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;

use crate::cli::ViewArgs;
use crate::view::{self, Index};

pub(super) fn run(args: &ViewArgs) -> anyhow::Result<ExitCode> {
    let reading = super::progress("reading traces", 0)?;
    let index = Index::open(&args.path, &|| reading.inc(1))?;
    reading.finish_and_clear();
    match &args.out {
        Some(out) => export(&index, out)?,
        None => super::runtime()?.block_on(serve(index, args))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn export(index: &Index, out: &Path) -> anyhow::Result<()> {
    let bar = super::progress("writing pages", index.len())?;
    view::export(index, out, &|| bar.inc(1))?;
    bar.finish_and_clear();
    let page = out.join("index.html");
    writeln!(anstream::stdout(), "Wrote {} judgements. Open {}", index.len(), page.display())?;
    Ok(())
}

async fn serve(index: Index, args: &ViewArgs) -> anyhow::Result<()> {
    let count = index.len();
    let ready = |address: SocketAddr| {
        let url = format!("http://{address}/");
        let mut out = anstream::stdout().lock();
        writeln!(out, "{count} judgements: open {url}\nPress Ctrl-C to stop.")?;
        out.flush()?;
        if args.open
            && let Err(error) = open(&url)
        {
            writeln!(
                anstream::stderr(),
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
    Command::new(opener)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{opener} cannot be started"))?;
    Ok(())
}
