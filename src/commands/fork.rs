//! `deeplook replay --from-turn`: would another model or prompt have decided otherwise?

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use deeplook_tools::ToolSettings;
use deeplook_tools::scene::cut;
use serde_json::json;

use super::judge::{run_folder, say};
use crate::cli::{self, ForkOptions, ReplayArgs};
use crate::config;
use crate::equipment::RecordedEquipment;
use crate::judge::{Judge, JudgeSettings};
use crate::model::{AnyModel, OpenAi, OpenAiSettings, Prices, Rules, Simulated};
use crate::prompt::Pack;
use crate::replay::Fork;
use crate::trace::{self, Bundle, Event, Kept, ModelRecord, RunFolder};
use crate::transcript::{Transcript, outcome_text};
use crate::verdict::Outcome;

/// A longer list of parameters is cut.
const MOST_SHOWN: usize = 200;

pub(super) fn run(args: &ReplayArgs, from_turn: u32) -> anyhow::Result<ExitCode> {
    let mut bundles = Vec::new();
    for path in &args.paths {
        bundles.extend(trace::find(path)?.into_iter().flat_map(|run| run.bundles));
    }
    let [folder] = &bundles[..] else {
        bail!("a fork is made from one trace, and {} were named; give one bundle", bundles.len());
    };
    let parent = Bundle::read(folder)?;
    if let Some(flaw) = parent.flaws.first().filter(|_| !args.fork.despite_flaws) {
        bail!(
            "{} is not as it was written (events.jsonl, line {}: {}); `deeplook replay` tells more, and \
             --despite-flaws forks it all the same",
            folder.display(),
            flaw.line,
            flaw.problem
        );
    }
    let Fork { case, pack, mut settings, recalled } = Fork::before(&parent, from_turn)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("cannot fork {}", folder.display()))?;
    let then = &parent.manifest.model;
    let (model, record) = model(&args.fork, then, &mut settings)?;
    if args.fork.model.is_none() && record.params != then.params {
        let then: Vec<String> = then.params.iter().map(|(key, is)| format!("{key}={is}")).collect();
        let then = cut(&then.join(" "), MOST_SHOWN);
        say(
            args.json,
            &format!(
                "the trace was made with the parameters {then}; repeat with --param what you want"
            ),
        );
    }
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
    if let (_, Some(problem)) = ToolSettings::recorded(&tools.settings) {
        bail!("cannot fork {}: tools.settings: {problem}", folder.display());
    }
    let mut toolbox = equipment.toolbox(tools).as_recorded(&tools.specs, &tools.settings);
    let lost: Vec<String> =
        toolbox.names().filter(|name| toolbox.is_only_on_record(name)).map(str::to_owned).collect();
    for name in lost {
        toolbox = toolbox.without(&name, "it could not be had for the fork");
    }
    let pack = match &args.fork.prompts {
        Some(folder) => Pack::load(folder)?.varied(args.fork.variant.as_deref())?.into(),
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
    let judged = crate::run::runtime()?.block_on(prepared.judge(&run, &watch))?;
    let Some(Kept { folder, digest }) = &judged.kept else { bail!("the trace was not kept") };
    let outcome = judged.judgement.outcome.as_ref();
    let before = trace::reduce(&parent.manifest, &parent.events).judgement.outcome;
    let text = |outcome: Option<&Outcome>| outcome.map_or("interrupted".to_owned(), outcome_text);
    say(
        args.json,
        &format!(
            "\nbefore: {}\nnow:    {}\ntrace: {}\ndigest {}",
            text(before.as_ref()),
            text(outcome),
            folder.display(),
            digest
        ),
    );
    if args.json {
        super::print_json(&json!({
            "parent": parent.digest, "from_turn": from_turn, "before": before, "now": outcome,
            "trace": folder, "digest": digest,
        }))?;
    }
    let failed = matches!(outcome, Some(Outcome::Failed { .. }) | None);
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// The model to go on with. A trace says which it was and how it was spoken to; where to ask, with
/// which key and for what is the user's to say, because a trace may be anybody's.
fn model(
    options: &ForkOptions,
    recorded: &ModelRecord,
    settings: &mut JudgeSettings,
) -> anyhow::Result<(AnyModel, ModelRecord)> {
    let id = options.model.as_deref().unwrap_or(&recorded.id);
    if id == Simulated::NAME {
        bail!("{id} answers in runs over data sets only; name a model with --model");
    }
    if id == Rules::NAME {
        return Ok((AnyModel::Rules(Rules::default()), Rules::record(recorded.dialect)));
    }
    let base_url = options.base_url.clone().or_else(config::usual_server);
    let mut profile = config::profile_for(options.profile.as_deref(), id, base_url.as_deref())?;
    if options.model.is_none() && options.profile.is_none() {
        // Nobody named a server: the usual one is only meant where the trace was made there.
        if base_url.is_none() && profile.base_url != recorded.base_url {
            bail!(
                "{id:?} was asked at {:?}, and a trace does not decide who is asked: name the server with \
                 --base-url, or another model with --model",
                recorded.base_url.as_deref().unwrap_or("no address")
            );
        }
        (profile.dialect, profile.boxes) = (recorded.dialect, recorded.boxes);
    } else {
        settings.max_images = profile.max_images;
        settings.preparation = config::preparation(&profile);
    }
    let params = cli::params(&options.params)?;
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
