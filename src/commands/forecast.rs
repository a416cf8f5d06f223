//! What a run will ask for and what that costs, before it asks.

use std::io::Write as _;
use std::time::SystemTime;

use serde_json::json;

use crate::model::Prices;
use crate::run::{ASSUMPTIONS, Estimate, Forecast};
use crate::terminal;
use crate::transcript::cost_text;

pub(super) fn show(forecast: &Forecast, as_json: bool) -> anyhow::Result<()> {
    let Forecast { run, parts, offline, total, .. } = forecast;
    if as_json {
        return super::print_json(&json!({
            "run": run,
            "judgements": total.judgements,
            "pictures": total.pictures,
            "calls": total.calls,
            "prompt_tokens": total.prompt_tokens,
            "completion_tokens": total.completion_tokens,
            "cost": total.cost,
            "parts": parts,
            "assumptions": ASSUMPTIONS,
            "prices_outdated_since": Prices::outdated(SystemTime::now()),
        }));
    }
    let mut out = terminal::stdout();
    for one in parts {
        let Estimate { mode, criterion, judgements, pictures, calls, .. } = one;
        write!(out, "{mode}, {criterion}: {judgements} judgements, about {pictures} pictures")?;
        if !offline {
            write!(
                out,
                ", {calls} calls, {} + {} tokens",
                one.prompt_tokens, one.completion_tokens
            )?;
        }
        writeln!(out, "{}", if one.measured { " (measured in this run)" } else { "" })?;
    }
    if *offline {
        let judgements = total.judgements;
        writeln!(out, "in all {judgements} judgements by the offline judge: no calls, no cost")?;
    } else {
        writeln!(
            out,
            "in all {} judgements, {} calls, {} + {} tokens, {}",
            total.judgements,
            total.calls,
            total.prompt_tokens,
            total.completion_tokens,
            cost_text(total.cost)
        )?;
        writeln!(out, "{ASSUMPTIONS}")?;
        if let Some(written) = Prices::outdated(SystemTime::now()) {
            writeln!(
                out,
                "the built-in prices are of {written}, more than half a year ago: tell today's with --prices FILE"
            )?;
        }
    }
    let would =
        run.as_ref().map_or(String::new(), |run| format!("; the run would be {}", run.display()));
    writeln!(out, "nobody was asked{would}")?;
    Ok(())
}
