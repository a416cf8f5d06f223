//! What models cost, as data.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files;
use crate::message::Usage;

/// What the tokens of a model cost, in US dollars per million.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// Tokens of a request.
    pub input: f64,
    /// Tokens of a request that the server had kept from before; without it, as the others.
    pub cached_input: Option<f64>,
    /// Tokens of a request that the server keeps for later; without it, as the others.
    pub cache_write: Option<f64>,
    /// Tokens of a reply, thinking included.
    pub output: f64,
    /// What a long request costs instead.
    pub long: Option<LongPrice>,
    /// What everything costs that is sent in a batch.
    pub batch: Option<Rates>,
    /// When this was written down.
    pub written: Option<String>,
}

/// What tokens cost, in US dollars per million, as in [`Price`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Tokens of a request.
    pub input: f64,
    /// Those that the server had kept from before.
    pub cached_input: Option<f64>,
    /// Those that the server keeps for later.
    pub cache_write: Option<f64>,
    /// Tokens of a reply.
    pub output: f64,
}

/// What a long request costs, in US dollars per million.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongPrice {
    /// A request of more tokens than this is long.
    pub above: u64,
    /// Tokens of the request.
    pub input: f64,
    /// Those that the server had kept from before.
    pub cached_input: Option<f64>,
    /// Those that the server keeps for later.
    pub cache_write: Option<f64>,
    /// Tokens of the reply.
    pub output: f64,
}

impl Price {
    /// Of what runs on one's own machine and counts no tokens.
    pub const FREE: Self = Self {
        input: 0.0,
        cached_input: None,
        cache_write: None,
        output: 0.0,
        long: None,
        batch: None,
        written: None,
    };

    /// What one reply of `usage` costs in US dollars; `None` where the server did not count the
    /// tokens.
    pub fn cost(&self, usage: Usage) -> Option<f64> {
        let Self { input, cached_input, cache_write, output, .. } = *self;
        let tokens = usage.prompt_tokens.unwrap_or(0);
        match self.long.filter(|long| tokens > long.above) {
            Some(LongPrice { input, cached_input, cache_write, output, .. }) => {
                Rates { input, cached_input, cache_write, output }.cost(usage)
            }
            None => Rates { input, cached_input, cache_write, output }.cost(usage),
        }
    }

    /// What many replies cost together, none of which is long.
    pub fn of_many(&self, usage: Usage) -> Option<f64> {
        Self { long: None, ..self.clone() }.cost(usage)
    }
}

impl Rates {
    fn cost(&self, usage: Usage) -> Option<f64> {
        // What is free need not be counted.
        let part = |tokens: Option<u64>, rate: f64| match tokens {
            Some(tokens) => Some(tokens as f64 * rate / 1e6),
            None => (rate == 0.0).then_some(0.0),
        };
        let cached = usage.cached_tokens.unwrap_or(0);
        let kept = usage.cache_write_tokens.unwrap_or(0);
        let besides = cached.saturating_add(kept);
        let fresh = usage.prompt_tokens.map(|tokens| tokens.saturating_sub(besides));
        let cached = part(Some(cached), self.cached_input.unwrap_or(self.input))?;
        let kept = part(Some(kept), self.cache_write.unwrap_or(self.input))?;
        Some(part(fresh, self.input)? + cached + kept + part(usage.completion_tokens, self.output)?)
    }
}

/// Prices by the names of models.
#[derive(Debug, Clone, Default)]
pub struct Prices(BTreeMap<String, Offer>);

#[derive(Debug, Clone)]
struct Offer {
    price: Price,
    /// The price holds only where the base URL contains this.
    server: Option<String>,
}

/// `prices.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    written: Option<String>,
    /// Where the numbers are from; for people.
    #[serde(rename = "source")]
    _source: Option<String>,
    model: BTreeMap<String, Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    input: f64,
    cached_input: Option<f64>,
    cache_write: Option<f64>,
    output: f64,
    long: Option<LongPrice>,
    batch: Option<Rates>,
    server: Option<String>,
}

/// Why a file holds no prices.
#[derive(Debug, thiserror::Error)]
pub enum PricesError {
    /// The file cannot be read.
    #[error("cannot read the prices {path}: {reason}")]
    Unreadable {
        /// Which file.
        path: String,
        /// What happened.
        reason: String,
    },
    /// The file does not say what it should.
    #[error(
        "{path} holds no prices: {reason}; write e.g. model.\"qwen3-vl\" = {{ input = 0.2, output = 0.8 }}, in US \
         dollars per million tokens"
    )]
    Invalid {
        /// Which file.
        path: String,
        /// What is wrong where.
        reason: String,
    },
}

impl Prices {
    /// The prices in this program.
    pub fn built_in() -> Self {
        // A test makes sure that it parses.
        static TABLE: LazyLock<Prices> =
            LazyLock::new(|| parse(include_str!("prices.toml")).unwrap_or_default());
        TABLE.clone()
    }

    /// The prices of a TOML file like the one in this program.
    pub fn load(path: &Path) -> Result<Self, PricesError> {
        let shown = || path.display().to_string();
        let text = files::read_small_text(path)
            .map_err(|reason| PricesError::Unreadable { path: shown(), reason })?;
        parse(&text).map_err(|reason| PricesError::Invalid { path: shown(), reason })
    }

    /// These, and where `others` say something of the same model, that.
    pub fn replaced_by(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// When the prices in this program were written down, if that is longer ago than half a year.
    pub fn outdated(now: SystemTime) -> Option<String> {
        const HALF_A_YEAR: Duration = Duration::from_secs(183 * 24 * 3600);
        let table: Table = toml::from_str(include_str!("prices.toml")).ok()?;
        let written = table.written?;
        let time = humantime::parse_rfc3339_weak(&format!("{written}T00:00:00Z")).ok()?;
        now.duration_since(time).is_ok_and(|age| age > HALF_A_YEAR).then_some(written)
    }

    /// The price of a model on a server, if it is known.
    pub fn of(&self, model: &str, base_url: &str) -> Option<&Price> {
        let offer = self.0.get(model).or_else(|| self.0.get(undated(model)?))?;
        let holds = offer.server.as_ref().is_none_or(|server| base_url.contains(server));
        holds.then_some(&offer.price)
    }
}

/// A name without the date at its end: `-2025-08-07` or `-20250807`.
fn undated(model: &str) -> Option<&str> {
    if let Some((name, date)) = model.rsplit_once('-')
        && date.len() == 8
        && date.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Some(name);
    }
    let at = model.len().checked_sub("-2025-08-07".len())?;
    let (name, date) = model.split_at_checked(at)?;
    let is_date = date.bytes().enumerate().all(|(place, byte)| match place {
        0 | 5 | 8 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    is_date.then_some(name)
}

fn parse(text: &str) -> Result<Prices, String> {
    let Table { written, model, .. } = toml::from_str(text).map_err(|error| error.to_string())?;
    let offer = |(name, entry): (String, Entry)| {
        let Entry { input, cached_input, cache_write, output, long, batch, server } = entry;
        let long_rates =
            long.map(|l| [Some(l.input), l.cached_input, l.cache_write, Some(l.output)]);
        let batch_rates =
            batch.map(|b| [Some(b.input), b.cached_input, b.cache_write, Some(b.output)]);
        let rates =
            [Some([Some(input), cached_input, cache_write, Some(output)]), long_rates, batch_rates];
        if !rates.into_iter().flatten().flatten().flatten().all(|rate| (0.0..1e6).contains(&rate)) {
            return Err(format!("a price of {name:?} is not a number from 0 on"));
        }
        let written = written.clone();
        let price = Price { input, cached_input, cache_write, output, long, batch, written };
        Ok((name, Offer { price, server }))
    };
    Ok(Prices(model.into_iter().map(offer).collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt: u64, cached: Option<u64>, completion: u64) -> Usage {
        Usage {
            prompt_tokens: Some(prompt),
            cached_tokens: cached,
            completion_tokens: Some(completion),
            ..Usage::default()
        }
    }

    #[test]
    fn the_built_in_table_is_sound_and_knows_servers_and_dates() {
        parse(include_str!("prices.toml")).unwrap();
        let prices = Prices::built_in();
        let (openai, own) = ("https://api.openai.com/v1", "http://localhost:8000/v1");
        assert_eq!(prices.of("gpt-5", openai).unwrap().input, 1.25);
        assert_eq!(prices.of("gpt-5-2025-08-07", openai), prices.of("gpt-5", openai));
        assert_eq!(prices.of("gpt-4o-2024-05-13", openai).unwrap().input, 5.0);
        assert_eq!(prices.of("gpt-5", own), None, "another server has its own prices");
        let claude = prices.of("claude-opus-5", "https://api.anthropic.com/v1").unwrap();
        assert_eq!((claude.input, claude.cache_write), (5.0, Some(6.25)));
        let gemini = "https://generativelanguage.googleapis.com/v1beta/openai";
        let gemini = prices.of("gemini-3.1-pro-preview", gemini).unwrap();
        assert_eq!(gemini.batch.map(|batch| batch.output), Some(6.0));
        let long = gemini.cost(usage(200_001, None, 0)).unwrap();
        assert!((long - 200_001.0 * 4e-6).abs() < 1e-9, "a long request costs more: {long}");
        assert_eq!(gemini.cost(usage(200_000, None, 0)), Some(0.4));
        for unknown in ["gpt-99", "gpt-5-2025-08-0x", "", "é-2025-08-07"] {
            assert_eq!(prices.of(unknown, openai), None, "{unknown}");
        }
        assert!(prices.of("gpt-5", openai).unwrap().written.is_some());
    }

    #[test]
    fn cached_tokens_cost_less_and_uncounted_ones_are_unknown() {
        let price = Price { input: 2.0, cached_input: Some(0.5), output: 8.0, ..Price::FREE };
        let kept = Usage { cache_write_tokens: Some(500_000), ..usage(1_000_000, None, 0) };
        let dearer = Price { cache_write: Some(2.5), ..price.clone() };
        assert_eq!(dearer.cost(kept), Some(1.0 + 1.25));
        let cost = price.cost(usage(1_000_000, Some(400_000), 100_000)).unwrap();
        assert!((cost - (1.2 + 0.2 + 0.8)).abs() < 1e-12, "{cost}");
        assert_eq!(price.cost(usage(1_000_000, None, 0)), Some(2.0));
        let nonsense = price.cost(usage(1, Some(9_000_000), 0)).unwrap();
        assert!((nonsense - 4.5).abs() < 1e-12, "{nonsense}");
        let dear = Price { cached_input: None, ..price.clone() };
        assert_eq!(dear.cost(usage(1_000_000, Some(400_000), 0)), Some(2.0));
        assert_eq!(price.cost(Usage::default()), None);
        assert_eq!(Price::FREE.cost(Usage::default()), Some(0.0));
    }

    #[test]
    fn prices_age() {
        let day = Duration::from_secs(24 * 3600);
        let table: Table = toml::from_str(include_str!("prices.toml")).unwrap();
        let written = table.written.unwrap();
        let then = humantime::parse_rfc3339_weak(&format!("{written}T00:00:00Z")).unwrap();
        assert_eq!(Prices::outdated(then + 180 * day), None);
        assert_eq!(Prices::outdated(then + 190 * day), Some(written));
        assert_eq!(Prices::outdated(then - day), None, "a clock that is behind is no age");
    }

    #[test]
    fn a_file_replaces_what_it_names() {
        let own = parse(
            "[model]\n\"gpt-5\" = { input = 9, output = 9 }\nmine = { input = 0, output = 0 }",
        );
        let prices = Prices::built_in().replaced_by(own.unwrap());
        assert_eq!(prices.of("gpt-5", "http://localhost").unwrap().output, 9.0);
        assert_eq!(prices.of("mine", "http://localhost").unwrap().input, 0.0);
        assert!(prices.of("gpt-4o", "https://api.openai.com/v1").is_some());
        for bad in [
            "model = 3",
            "[model]\nm = { input = -1, output = 1 }",
            "[model]\nm = { input = nan, output = 1 }",
            "[model]\nm = { input = 1 }",
            "[model]\nm = { input = 1, output = 1, oputput = 2 }",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
