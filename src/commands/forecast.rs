//! What a run will ask for and what that costs, before it asks.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::json;

use crate::model::Price;
use crate::run::{ASSUMPTIONS, Estimate};
use crate::transcript::cost_text;

/// What is to be judged, and for how much.
pub(super) struct Forecast {
    /// The folder of the run.
    folder: PathBuf,
    parts: Vec<Estimate>,
    offline: bool,
    pub total: Total,
}

/// The sum of some estimates.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Total {
    pub judgements: u64,
    pub pictures: u64,
    pub calls: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// US dollars; absent where a price is not known.
    pub cost: Option<f64>,
}

impl Total {
    /// Both together.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            judgements: self.judgements + other.judgements,
            pictures: self.pictures + other.pictures,
            calls: self.calls + other.calls,
            prompt_tokens: self.prompt_tokens + other.prompt_tokens,
            completion_tokens: self.completion_tokens + other.completion_tokens,
            cost: self.cost.zip(other.cost).map(|(one, two)| one + two),
        }
    }
}

impl Forecast {
    pub(super) fn new(
        folder: PathBuf,
        parts: Vec<Estimate>,
        price: Option<&Price>,
        offline: bool,
    ) -> Self {
        let sum = |of: fn(&Estimate) -> u64| parts.iter().map(of).sum::<u64>();
        let asked = |of: fn(&Estimate) -> u64| if offline { 0 } else { sum(of) };
        let total = Total {
            judgements: sum(|one| one.judgements),
            pictures: sum(|one| one.pictures),
            calls: asked(|one| one.calls),
            prompt_tokens: asked(|one| one.prompt_tokens),
            completion_tokens: asked(|one| one.completion_tokens),
            cost: match price {
                _ if offline => Some(0.0),
                price => price.and(parts.iter().map(|one| one.cost).sum()),
            },
        };
        Self { folder, parts, offline, total }
    }

    pub(super) fn show(&self, as_json: bool) -> anyhow::Result<()> {
        let Self { folder, parts, offline, total } = self;
        if as_json {
            return super::print_json(&json!({
                "run": folder,
                "judgements": total.judgements,
                "pictures": total.pictures,
                "calls": total.calls,
                "prompt_tokens": total.prompt_tokens,
                "completion_tokens": total.completion_tokens,
                "cost": total.cost,
                "parts": parts,
                "assumptions": ASSUMPTIONS,
            }));
        }
        let mut out = anstream::stdout();
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
            writeln!(
                out,
                "in all {judgements} judgements by the offline judge: no calls, no cost"
            )?;
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
        }
        writeln!(out, "nobody was asked; the run would be {}", folder.display())?;
        Ok(())
    }
}
