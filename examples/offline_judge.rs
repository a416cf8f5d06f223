//! How often the offline judge is right, on drawn scenes or on pairs of photographs.
//!
//! `cargo run --release --example offline_judge -- --seed 101 --cases 14 --mode oracle`

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Parser;
use deeplook::case::{EditCase, InputPicture};
use deeplook::dataset::draw;
use deeplook::judge::{Judge, JudgeSettings};
use deeplook::message::Dialect;
use deeplook::model::Rules;
use deeplook::prompt::{self, Mode, Pack};
use deeplook::tools::Toolbox;
use deeplook::trace::RunFolder;
use serde_json::Value;

#[derive(Parser)]
struct Args {
    /// Seeds of drawn scenes.
    #[arg(long, default_values_t = [1])]
    seed: Vec<u64>,
    /// Cases of each seed.
    #[arg(long, default_value_t = 14)]
    cases: usize,
    /// What the judge gets to see.
    #[arg(long, value_parser = mode, default_value = "tool")]
    mode: Mode,
    /// Judge without the reference.
    #[arg(long)]
    no_reference: bool,
    /// Judge the pairs of a folder with a pairs.json instead: visual consistency only.
    #[arg(long, value_name = "DIR")]
    photographs: Option<PathBuf>,
    /// Print what it thought where it was wrong.
    #[arg(long)]
    wrong: bool,
}

fn mode(typed: &str) -> Result<Mode, String> {
    serde_json::from_value(typed.into()).map_err(|error| error.to_string())
}

/// One judgement beside the truth.
struct Judged {
    criterion: &'static str,
    group: String,
    kind: String,
    truth: &'static str,
    label: String,
    what: String,
    thought: String,
}

type Offline = Judge<Rules>;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let settings = JudgeSettings { mode: args.mode, ..JudgeSettings::default() };
    let (record, pack) = (Rules::record(Dialect::Native), Pack::embedded(prompt::DEFAULT)?);
    let judge = Judge::new(Rules::default(), record, pack, Toolbox::standard(), settings);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    let judged: Vec<Judged> = if let Some(folder) = &args.photographs {
        photographs(folder, &judge, &runtime)?
    } else {
        let cases: Vec<(u64, usize)> =
            args.seed.iter().flat_map(|seed| (0..args.cases).map(|i| (*seed, i))).collect();
        let one = |(seed, index): &(u64, usize)| drawn(&args, *seed, *index, &judge, &runtime);
        in_threads(&cases, one)?.into_iter().flatten().collect()
    };
    if args.wrong {
        for one in judged.iter().filter(|one| one.label != one.truth) {
            println!("{}: {} → {}\n    {}", one.what, one.truth, one.label, one.thought);
        }
    }
    report(&judged);
    Ok(())
}

/// Judges every edit of a drawn case by both criteria.
fn drawn(
    args: &Args,
    seed: u64,
    index: usize,
    judge: &Offline,
    runtime: &tokio::runtime::Runtime,
) -> anyhow::Result<Vec<Judged>> {
    let drawn = draw::case(seed, index)?;
    let source = InputPicture::from(drawn.source);
    let reference = (!args.no_reference).then(|| InputPicture::from(drawn.reference));
    let mut judged = Vec::new();
    for edit in drawn.edits {
        let mut case = EditCase::new(source.clone(), edit.picture, &drawn.instruction)
            .with_fact("type", drawn.kind.name())
            .with_targets(drawn.boxes.clone());
        case.id.clone_from(&drawn.id);
        if let Some(reference) = &reference {
            case = case.with_reference(reference.clone());
        }
        for (criterion, truth) in [("if", edit.if_label), ("vc", edit.vc_label)] {
            let (label, thought) = ask(judge, &case, criterion, runtime)?;
            let editor = edit.editor.name();
            let what = format!("{seed}/{} {editor} {criterion}: {}", drawn.id, drawn.instruction);
            let (group, kind) = (editor.to_owned(), drawn.kind.name().to_owned());
            judged.push(Judged { criterion, group, kind, truth, label, what, thought });
        }
    }
    Ok(judged)
}

/// Pairs with a known number of edits and no instruction.
fn photographs(
    folder: &Path,
    judge: &Offline,
    runtime: &tokio::runtime::Runtime,
) -> anyhow::Result<Vec<Judged>> {
    let pairs = std::fs::read(folder.join("pairs.json")).context("there is no pairs.json")?;
    let pairs: Vec<Value> = serde_json::from_slice(&pairs)?;
    let one = |pair: &Value| {
        let file = |key: &str| {
            let name = pair[key].as_str().with_context(|| format!("a pair has no {key}"))?;
            Ok::<_, anyhow::Error>(folder.join(name))
        };
        let load = |key: &str| Ok::<_, anyhow::Error>(InputPicture::load(&file(key)?)?);
        let case = EditCase::new(load("a")?, load("b")?, "nothing");
        let edits = pair["edits"].as_array().map_or(&[][..], Vec::as_slice);
        let truth = match edits.iter().filter(|edit| edit["counts"] != false).count() {
            0 => draw::label::PERFECT,
            1 => draw::label::SINGLE,
            _ => draw::label::MULTIPLE,
        };
        let (label, thought) = ask(judge, &case, "vc", runtime)?;
        let group = pair["kind"].as_str().unwrap_or("?").to_owned();
        let kind = format!("{} edits", edits.len());
        let what = file("b")?.display().to_string();
        Ok(Judged { criterion: "vc", group, kind, truth, label, what, thought })
    };
    in_threads(&pairs, one)
}

/// Maps in threads of their own: a thread of rayon's pool must not wait for one that needs the pool.
fn in_threads<T: Sync, R: Send>(
    items: &[T],
    f: impl Fn(&T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let chunk = |from: usize| items.iter().skip(from).step_by(threads).map(&f).collect();
    let chunk = &chunk;
    let parts: Vec<anyhow::Result<Vec<R>>> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|i| scope.spawn(move || chunk(i))).collect();
        let joined = running.into_iter().map(|thread| thread.join());
        joined.map(|part| part.unwrap_or_else(|_| anyhow::bail!("a thread crashed"))).collect()
    });
    Ok(parts.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The label and the last thought.
fn ask(
    judge: &Offline,
    case: &EditCase,
    criterion: &str,
    runtime: &tokio::runtime::Runtime,
) -> anyhow::Result<(String, String)> {
    let folder = tempfile::tempdir()?;
    let run = RunFolder::new(folder.path());
    let judged = runtime.block_on(judge.judge(case, criterion, &run, &|_| {}))?;
    let deciding = judged.judgement.deciding_part();
    let thought = deciding.and_then(|part| part.reasoning.clone()).unwrap_or_default();
    Ok((judged.judgement.label().unwrap_or("no label").to_owned(), thought))
}

fn report(judged: &[Judged]) {
    for criterion in ["if", "vc"] {
        let own: Vec<&Judged> = judged.iter().filter(|one| one.criterion == criterion).collect();
        if own.is_empty() {
            continue;
        }
        println!("\n== {criterion}: {}", score(&own));
        confusion(&own);
        by(&own, |one| one.group.clone());
        by(&own, |one| one.kind.clone());
    }
    println!("\nboth: {}", score(&judged.iter().collect::<Vec<_>>()));
}

fn score(judged: &[&Judged]) -> String {
    let right = judged.iter().filter(|one| one.label == one.truth).count();
    let percent = 100.0 * right as f64 / judged.len().max(1) as f64;
    format!("{right}/{} = {percent:.1} %", judged.len())
}

/// A matrix for each editor or type.
fn by(judged: &[&Judged], key: impl Fn(&Judged) -> String) {
    let mut groups: BTreeMap<String, Vec<&Judged>> = BTreeMap::new();
    for one in judged {
        groups.entry(key(one)).or_default().push(one);
    }
    for (name, group) in &groups {
        println!("\n{name}: {}", score(group));
        confusion(group);
    }
}

fn confusion(judged: &[&Judged]) {
    let sorted = |labels: BTreeSet<&str>| labels.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let truths = sorted(judged.iter().map(|one| one.truth).collect());
    let labels = sorted(judged.iter().map(|one| one.label.as_str()).collect());
    let short = |label: &str| label.chars().take(12).collect::<String>();
    print!("  {:<22}", "truth \\ judge");
    labels.iter().for_each(|label| print!("{:>14}", short(label)));
    println!();
    for truth in &truths {
        print!("  {truth:<22}");
        for label in &labels {
            let count = judged.iter().filter(|o| o.truth == truth && o.label == *label).count();
            print!("{count:>14}");
        }
        println!();
    }
}
