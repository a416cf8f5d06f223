//! A whole data set through the library: with progress, a limit, going on after a stop, and a sink.
//!
//! `cargo run --release --example batch -- drawn/` asks nobody,
//! `cargo run --release --example batch -- drawn/ qwen3-vl http://localhost:8000/v1` a server.

use deeplook::run::{Progress, Run, RunSpec};
use deeplook::trace::Memory;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut typed = std::env::args().skip(1);
    let mut spec = RunSpec::of(typed.next().ok_or("name a data set")?);
    if let Some(model) = typed.next() {
        spec.judge.model = model;
        spec.judge.base_url = typed.next();
    }
    spec.budget.calls = Some(1000);
    // The same specification again goes on in this folder, however it was stopped.
    spec.keep.folder = std::env::var_os("RUN").map(Into::into);
    let run = match spec.keep.folder {
        Some(_) => Run::new(spec),
        // Without a folder nothing is written: what came out is in the summary.
        None => Run::new(spec).sink(Memory),
    };
    let summary = run
        .progress(|progress| {
            if let Progress::Judged(line, tally) = progress {
                eprintln!("{}/{} {}: {:?}", tally.done, tally.total, line.case, line.label);
            }
        })
        .run()?;
    println!("{}", summary.table);
    if let Some(why) = summary.reason {
        println!("not finished, because {why}");
    }
    Ok(())
}
