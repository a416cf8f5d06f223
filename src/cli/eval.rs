use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{JudgeOptions, ReadingOptions, words};
use crate::case::Condition;
use crate::prompt::Mode;
use crate::run::{Access, Again, Budget, IfOtherSettings, Pace, RunSpec, Selection, Shard};
use crate::trace::OutcomeName;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook eval scenes/                                              # the offline judge, no key
  deeplook eval dlebench/ --edits outputs/ --model gemini-3.1-pro-preview --plan    # what would it cost?
  deeplook eval dlebench/ --edits outputs/ --model gemini-3.1-pro-preview --run runs/gemini --max-cost 20
  deeplook eval dlebench/ --edits outputs/ --model gemini-3.1-pro-preview --run runs/gemini --retry failed
  deeplook eval dlebench/ --edits outputs/ --mode tool,oracle --shard 2/8 --run runs/part-2
  deeplook eval --from-traces runs/gemini --prompts stricter/ --model gemini-3.1-pro-preview --run runs/stricter

The same command again goes on where it was stopped, however it was stopped. Ctrl-C finishes what is under way,
a second one stops at once. Exit codes: 0 every judgement has an outcome (failed and missing are outcomes too),
1 not every one has, or a gate such as --min-coverage says no, 2 it could not be done.")]
pub(crate) struct EvalArgs {
    /// A file of cases (.jsonl or .csv), or the folder that holds one.
    #[arg(required_unless_present = "from_traces")]
    pub dataset: Option<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingOptions,
    /// Judge again what was seen in the traces of another run: tools are declared as they were and
    /// never used, and only answers are asked for. Cases and pictures are those of the run.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["per_target", "max_turns", "max_tool_calls",
        "token_budget", "detector", "enhancer", "without", "tool_settings"])]
    pub from_traces: Option<PathBuf>,
    /// The folder of the run [default: one in traces/runs/, named by data set and model].
    #[arg(long, value_name = "DIR")]
    pub run: Option<PathBuf>,
    #[command(flatten)]
    pub asked: AskedOptions,
    #[command(flatten)]
    pub selection: SelectionOptions,
    #[command(flatten)]
    pub going: GoingOptions,
    /// Say what would be judged, how many tokens that takes and what it costs, and ask nobody.
    #[arg(long)]
    pub plan: bool,
    /// Exit with 1 if fewer of all judgements have a verdict: 0.95 or 95%.
    #[arg(long, value_name = "PART", value_parser = super::report::part)]
    pub min_coverage: Option<f64>,
    #[command(flatten)]
    pub options: JudgeOptions,
    /// Say nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
    /// Print an object for each judgement and one at the end on stdout, everything else on stderr.
    #[arg(long)]
    pub json: bool,
    /// Write a log as lines of JSON; RUST_LOG chooses what is in it [default: deeplook=info].
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// What is judged of every edit.
#[derive(Debug, Clone, Args)]
pub(crate) struct AskedOptions {
    /// By which criteria to judge; several separated by commas.
    #[arg(long, value_name = "ID,…|all", value_delimiter = ',', default_value = "all")]
    pub criterion: Vec<String>,
    /// What the judge gets to see; several separated by commas.
    #[arg(long, value_parser = words::mode(), value_delimiter = ',', default_value = "tool")]
    pub mode: Vec<Mode>,
    /// Judge everything so many times.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
}

/// Which edits are judged.
#[derive(Debug, Clone, Args)]
pub(crate) struct SelectionOptions {
    /// Only these editors; several separated by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub editor: Vec<String>,
    /// Only this case; once for each.
    #[arg(long, value_name = "ID")]
    pub case: Vec<String>,
    /// Only the first so many cases.
    #[arg(long, value_name = "N")]
    pub limit: Option<NonZeroUsize>,
    /// Only cases of which this is known, e.g. --where type="Change Color"; several names must all hold, several
    /// values of one name are alternatives.
    #[arg(long = "where", value_name = "FACT=VALUE")]
    pub conditions: Vec<Condition>,
    /// Only part I of N of the judgements; `deeplook run merge` joins the parts. `env` takes the part from the
    /// variables of a Slurm array or an indexed Kubernetes job (with DEEPLOOK_SHARDS parts).
    #[arg(long, value_name = "I/N|env", value_parser = shard)]
    pub shard: Option<Shard>,
}

/// A part, or the one that the scheduler says.
fn shard(text: &str) -> Result<Shard, String> {
    match text.trim() {
        "env" => Shard::of_environment(&|name| std::env::var(name).ok()),
        text => text.parse(),
    }
}

/// How a run goes on: how fast, for how much, and what is judged again.
#[derive(Debug, Clone, Args)]
pub(crate) struct GoingOptions {
    /// Judge what can be judged, where lines of the data set or pictures are broken.
    #[arg(long)]
    pub allow_partial: bool,
    /// The most judgements at a time; a server that says "too many requests" gets fewer.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub concurrency: u32,
    /// The most requests in a minute.
    #[arg(long = "requests-per-minute", value_name = "N", value_parser = positive)]
    pub requests: Option<f64>,
    /// The most tokens in a minute.
    #[arg(long = "tokens-per-minute", value_name = "N", value_parser = positive)]
    pub tokens: Option<f64>,
    /// Stop when the run has cost so many US dollars.
    #[arg(long, value_name = "USD", value_parser = positive)]
    pub max_cost: Option<f64>,
    /// Stop when the run has asked models so often; attempts that came to nothing do not count.
    #[arg(long, value_name = "N")]
    pub max_calls: Option<u64>,
    /// Judge those again that ended so; several separated by commas. Old traces stay.
    #[arg(long, value_name = "OUTCOME", value_parser = words::again(), value_delimiter = ',')]
    pub retry: Vec<OutcomeName>,
    /// Judge those again whose case or pictures have changed since.
    #[arg(long)]
    pub redo_changed: bool,
    /// Where the settings are others than the run's: go on in a folder of its own beside it.
    #[arg(long, conflicts_with = "mix")]
    pub new_run: bool,
    /// Go on in the same run although the settings are others; every trace tells its own.
    #[arg(long)]
    pub mix: bool,
    /// Ask every time, also what was asked before.
    #[arg(long)]
    pub no_cache: bool,
    /// How many megabytes of replies are kept; what was used longest ago goes first.
    #[arg(long, value_name = "MB", default_value_t = 1024)]
    pub cache_size: u64,
    /// Go on although everything fails.
    #[arg(long)]
    pub keep_going: bool,
}

impl EvalArgs {
    /// The run that was asked for, and what opens its server.
    pub(crate) fn spec(&self) -> anyhow::Result<(RunSpec, Access)> {
        let (judge, access) = self.options.judge()?;
        let mut spec = RunSpec { judge, ..RunSpec::default() };
        spec.data = self.reading.data(self.dataset.as_deref())?;
        spec.data.from_traces.clone_from(&self.from_traces);
        spec.keep.folder.clone_from(&self.run);
        self.asked.apply(&mut spec);
        self.selection.apply(&mut spec);
        self.going.apply(&mut spec);
        Ok((spec, access))
    }
}

impl AskedOptions {
    pub(crate) fn apply(&self, spec: &mut RunSpec) {
        spec.criteria = super::judge::criteria(&self.criterion);
        spec.modes = self.mode.iter().copied().collect();
        spec.repeats = self.repeats;
    }
}

impl SelectionOptions {
    pub(crate) fn apply(&self, spec: &mut RunSpec) {
        spec.select = Selection {
            editors: self.editor.clone(),
            cases: self.case.clone(),
            conditions: self.conditions.clone(),
            limit: self.limit,
            only: None,
            shard: self.shard,
        };
    }
}

impl GoingOptions {
    pub(crate) fn apply(&self, spec: &mut RunSpec) {
        spec.data.allow_partial = self.allow_partial;
        spec.pace = Pace {
            concurrency: self.concurrency,
            requests_per_minute: self.requests,
            tokens_per_minute: self.tokens,
        };
        spec.budget = Budget { calls: self.max_calls, cost: self.max_cost };
        spec.again =
            Again { outcomes: self.retry.iter().copied().collect(), changed: self.redo_changed };
        spec.keep.if_other_settings = match (self.new_run, self.mix) {
            (true, _) => IfOtherSettings::NewRun,
            (_, true) => IfOtherSettings::Mix,
            _ => IfOtherSettings::Refuse,
        };
        spec.keep.replies_mb = if self.no_cache { 0 } else { self.cache_size };
        spec.keep_going = self.keep_going;
    }
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|n: &f64| n.is_finite() && *n > 0.0)
        .ok_or("expected a number over 0".to_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// Say what is done, running, failed and open in a run, and what it cost.
    #[command(after_help = "Example:\n  deeplook run status runs/gemini")]
    Status {
        /// The folder of the run.
        run: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Join the parts of a run that --shard made.
    #[command(after_help = "Example:\n  deeplook run merge runs/part-* --into runs/whole")]
    Merge {
        /// The folders of the parts.
        #[arg(required = true)]
        parts: Vec<PathBuf>,
        /// The folder of the whole run.
        #[arg(long, value_name = "DIR")]
        into: PathBuf,
        /// Join parts although their settings are not the same.
        #[arg(long)]
        mix: bool,
        /// Where several parts made the same judgement, take that of the part named first.
        #[arg(long)]
        keep_first: bool,
    },
    /// Make results.jsonl again from the traces.
    #[command(after_help = "Example:\n  deeplook run rebuild runs/gemini")]
    Rebuild {
        /// The folder of the run.
        run: PathBuf,
    },
}
