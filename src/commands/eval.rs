//! `deeplook eval`: a whole data set, judged so that nothing is lost and nothing is done twice.

use std::process::ExitCode;

use super::progress::Watching;
use super::{forecast, hints, signals, summary};
use crate::cli::EvalArgs;
use crate::run::{Run, RunSummary};

pub(super) fn run(args: &EvalArgs) -> anyhow::Result<ExitCode> {
    let (spec, access) = args.spec()?;
    let mut watching = Watching::new(args.quiet, args.json);
    let run = Run::new(spec).access(access);
    if args.plan {
        let run = run.progress(|progress| watching.tell(&progress));
        forecast::show(&run.forecast().map_err(hints::told)?, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let judged = judge(run, watching)?;
    summary::show(&judged, args.quiet, args.json)?;
    summary::exit_code(&judged, args.min_coverage, args.quiet)
}

/// Judges while somebody watches; Ctrl-C stops it.
pub(super) fn judge<'a>(run: Run<'a>, mut watching: Watching) -> anyhow::Result<RunSummary> {
    let run = run.stop(signals::stop()).progress(move |progress| watching.tell(&progress));
    run.run().map_err(hints::told)
}
