//! `deeplook replay --from-turn`: would another model or prompt have decided otherwise?

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::json;

use super::judge::{run_folder, say};
use crate::cli::{ForkOptions, ReplayArgs};
use crate::config;
use crate::equipment::RecordedEquipment;
use crate::judge::{Judge, JudgeSettings};
use crate::model::{AnyModel, OpenAi, OpenAiSettings, Prices, Profile, Rules};
use crate::prompt::Pack;
use crate::replay::Fork;
use crate::trace::{self, Bundle, Event, ModelRecord, RunFolder};
use crate::transcript::{Transcript, outcome_text};
use crate::verdict::Outcome;

pub(super) fn run(args: &ReplayArgs, from_turn: u32) -> anyhow::Result<ExitCode> {
    let mut bundles = Vec::new();
    for path in &args.paths {
        bundles.extend(trace::find(path)?.into_iter().flat_map(|run| run.bundles));
    }
    let [folder] = &bundles[..] else {
        bail!("a fork is made from one trace, and {} were named; give one bundle", bundles.len());
    };
    let parent = Bundle::read(folder)?;
    let Fork { case, pack, mut settings, recalled } = Fork::before(&parent, from_turn)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("cannot fork {}", folder.display()))?;
    let (model, record) = model(&args.fork, &parent.manifest.model, &mut settings)?;
    if from_turn > 1 && record.boxes != parent.manifest.model.boxes {
        bail!(
            "{} writes boxes as {}, and the turns to keep have them as {}; fork with --from-turn 1",
            record.id,
            record.boxes,
            parent.manifest.model.boxes
        );
    }
    let equipment = RecordedEquipment::new(args.detector.clone(), args.enhancer.clone());
    let tools = &parent.manifest.tools;
    let mut toolbox = equipment.toolbox(tools).as_recorded(&tools.specs, &tools.settings);
    let lost: Vec<String> =
        toolbox.names().filter(|name| toolbox.is_only_on_record(name)).map(str::to_owned).collect();
    for name in lost {
        toolbox = toolbox.without(&name, "it could not be had for the fork");
    }
    let pack = match &args.fork.prompts {
        Some(folder) => Pack::load(folder)?.into(),
        None => pack,
    };
    let judge = Judge::new(model, record, pack, toolbox, settings);
    let prepared = judge.prepare(&case, &parent.manifest.criterion)?.recalling(recalled);
    let run = RunFolder::new(run_folder(args.fork.trace.as_deref(), "fork")?);
    let parts = prepared.part_names().map(str::to_owned).collect();
    let transcript = Transcript::new(prepared.criterion().form(), parts, run.blobs());
    let watch = |event: &Event| {
        let lines = transcript.lines(event);
        if !lines.is_empty() {
            say(args.json, lines.trim_end());
        }
    };
    let judged = super::runtime()?.block_on(prepared.judge(&run, &watch))?;
    let outcome = judged.judgement.outcome.as_ref();
    let before = trace::reduce(&parent.manifest, &parent.events).outcome;
    let text = |outcome: Option<&Outcome>| outcome.map_or("interrupted".to_owned(), outcome_text);
    say(
        args.json,
        &format!(
            "\nbefore: {}\nnow:    {}\ntrace: {}\ndigest {}",
            text(before.as_ref()),
            text(outcome),
            judged.trace.display(),
            judged.digest
        ),
    );
    if args.json {
        super::print_json(&json!({
            "parent": parent.digest, "from_turn": from_turn, "before": before, "now": outcome,
            "trace": judged.trace, "digest": judged.digest,
        }))?;
    }
    let failed = matches!(outcome, Some(Outcome::Failed { .. }) | None);
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// The model to go on with: the trace's own, unless another was named.
fn model(
    options: &ForkOptions,
    recorded: &ModelRecord,
    settings: &mut JudgeSettings,
) -> anyhow::Result<(AnyModel, ModelRecord)> {
    let id = options.model.as_deref().unwrap_or(&recorded.id);
    if id == Rules::NAME {
        return Ok((AnyModel::Rules(Rules::default()), Rules::record(recorded.dialect)));
    }
    let other = options.model.is_some();
    let own_url = recorded.base_url.clone().filter(|_| !other);
    let environment = std::env::var("OPENAI_BASE_URL").ok().filter(|url| !url.is_empty());
    let base_url = options.base_url.clone().or(own_url).or(environment);
    let profile = match &options.profile {
        Some(name) => config::profile(name)?,
        None if other => Profile::guess(id, base_url.as_deref()),
        None => serde_json::from_value(recorded.profile.clone())
            .context("the trace's profile cannot be read; name one with --profile")?,
    };
    if other || options.profile.is_some() {
        settings.max_images = profile.max_images;
        settings.preparation = config::preparation(&profile);
    }
    let params = match (other, options.params.is_empty()) {
        (false, true) => recorded.params.clone(),
        _ => config::params(&options.params)?,
    };
    let model = OpenAi::new(OpenAiSettings {
        base_url,
        params: params.clone(),
        timeout: Duration::from_secs(options.timeout),
        ..OpenAiSettings::new(id, profile.clone())
    })?;
    let record = ModelRecord {
        id: id.to_owned(),
        base_url: Some(model.base_url().to_owned()),
        profile: serde_json::to_value(&profile)?,
        params,
        dialect: profile.dialect,
        boxes: profile.boxes,
        price: Prices::built_in().of(id, model.base_url()).cloned(),
    };
    Ok((AnyModel::OpenAi(Box::new(model)), record))
}
