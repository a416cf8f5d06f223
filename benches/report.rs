//! A report over 20,000 judgements: from lines to numbers, and to the page. The target is 3 s for both.

#![expect(clippy::unwrap_used, reason = "a benchmark may stop")]

use criterion::{Criterion, criterion_group, criterion_main};
use std::sync::Arc;

use deeplook::prompt::{DEFAULT, Pack};
use deeplook::report::{Format, Report, ReportOptions, Run};
use deeplook::trace::Rubrics;
use serde_json::json;

const LABELS: [(&str, [&str; 4]); 2] = [
    ("if", ["Localization Failure", "Wrong Action", "Over Modification", "Flawless Execution"]),
    ("vc", ["Scene Collapse", "Multiple Anomalies", "Single Anomaly", "Perfect Consistency"]),
];

/// Ten editors, seven types, 1,000 cases, two criteria.
fn run() -> Run {
    let mut lines = Vec::new();
    for editor in 0..10 {
        for case in 0..1000_usize {
            for (criterion, labels) in &LABELS {
                let line = json!({
                    "case": format!("case-{case:04}"), "editor": format!("editor {editor}"),
                    "type": format!("type {}", case % 7), "criterion": criterion,
                    "label": labels[(case * 31 + editor * 7) % 4], "model": "m", "mode": "tool",
                    "turns": 3, "tools": {"zoom_in": 2}, "evidence": 1, "looked_at_target": true,
                    "target_scale": [0.001 * (1 + case % 97) as f64, 0.001 * (1 + case % 89) as f64],
                    "trace": format!("judgements/case-{case:04}-{editor}-{criterion}"),
                });
                lines.push(serde_json::from_value(line).unwrap());
            }
        }
    }
    let rubrics = Rubrics::only(Arc::clone(Pack::embedded(DEFAULT).unwrap().rubric()));
    Run { name: "run".into(), lines, rubrics, link: Some("run".into()) }
}

fn report(c: &mut Criterion) {
    let runs = [run()];
    let mut group = c.benchmark_group("report over 20,000 judgements");
    group.sample_size(10);
    group.bench_function("numbers", |b| {
        b.iter(|| Report::of(&runs, &ReportOptions::default()).unwrap())
    });
    let report = Report::of(&runs, &ReportOptions::default()).unwrap();
    group.bench_function("page", |b| b.iter(|| report.render(Format::Html, &runs).unwrap()));
}

criterion_group!(benches, report);
criterion_main!(benches);
