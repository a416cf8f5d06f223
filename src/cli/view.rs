use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook view traces/runs/demo
  deeplook view traces/runs --port 8400 --open
  deeplook view traces/runs/demo --out pages/     # open pages/index.html, or send the folder

The pages are served to this machine only. They run none of what a trace holds and load nothing from elsewhere.")]
pub(crate) struct ViewArgs {
    /// A bundle, a run, or a folder that holds them.
    #[arg(value_name = "PATH", default_value = "traces/runs")]
    pub path: PathBuf,
    /// Write the pages as files that open from disk, instead of serving them; an earlier export is
    /// replaced.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["port", "open"])]
    pub out: Option<PathBuf>,
    /// The port to listen on; 0 takes any that is free.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
    /// Open the page in the browser.
    #[arg(long)]
    pub open: bool,
}
