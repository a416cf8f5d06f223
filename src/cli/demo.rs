use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  deeplook demo --out /tmp/deeplook-demo")]
pub(crate) struct DemoArgs {
    /// The folder to write; what an earlier demo left there is replaced.
    #[arg(long, value_name = "DIR", default_value = "traces/runs/demo")]
    pub out: PathBuf,
}
