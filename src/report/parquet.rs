//! The judgements of runs as one flat table of typed columns, for whoever counts by themselves: a row
//! for each judgement, the facts of its case and the keys of its answer as columns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{Type, TypePtr};
use serde_json::Value;

use super::{ReportError, ReportOptions, Run};
use crate::trace::ResultLine;

/// Rows that are written together.
const GROUP: usize = 50_000;

/// One column.
enum Column {
    Text(Vec<Option<String>>),
    Whole(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
    Truth(Vec<Option<bool>>),
}

/// The columns by name, in their order.
type Columns = Vec<(String, Column)>;

/// All judgements that meet the options, as a Parquet file.
pub fn table(runs: &[Run], options: &ReportOptions) -> Result<Vec<u8>, ReportError> {
    let lines = runs.iter().flat_map(|run| run.lines.iter().map(|line| (run.name.as_str(), line)));
    let rows: Vec<(&str, &ResultLine)> =
        lines.filter(|(_, line)| line.meets(&options.conditions)).collect();
    if rows.is_empty() {
        let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        return Err(ReportError::Empty(names.join(", ")));
    }
    let names = names_of(&rows);
    let mut groups = rows.chunks(GROUP).map(|rows| columns(rows, &names));
    let first = groups.next().unwrap_or_default();
    write(first, groups).map_err(|error| ReportError::Parquet(error.to_string()))
}

/// The names of facts, and the keys of answers with whether all of their values are numbers.
struct Names {
    facts: BTreeSet<String>,
    keys: BTreeMap<String, bool>,
}

fn names_of(rows: &[(&str, &ResultLine)]) -> Names {
    let mut names = Names { facts: BTreeSet::new(), keys: BTreeMap::new() };
    for (_, line) in rows {
        names.facts.extend(line.facts.iter().map(|(name, _)| name.to_owned()));
        for (key, value) in &line.values {
            let numbers = names.keys.entry(key.clone()).or_insert(true);
            *numbers &= value.is_number() || value.is_null();
        }
    }
    names
}

fn columns(rows: &[(&str, &ResultLine)], names: &Names) -> Columns {
    let text = |of: &dyn Fn(&ResultLine) -> Option<String>| {
        Column::Text(rows.iter().map(|(_, line)| of(line)).collect())
    };
    let whole = |of: &dyn Fn(&ResultLine) -> Option<u64>| {
        let of = |line: &ResultLine| of(line).and_then(|number| i64::try_from(number).ok());
        Column::Whole(rows.iter().map(|(_, line)| of(line)).collect())
    };
    let number = |of: &dyn Fn(&ResultLine) -> Option<f64>| {
        Column::Number(rows.iter().map(|(_, line)| of(line)).collect())
    };
    let mut columns: Columns = Vec::new();
    let mut add = |name: &str, column: Column| columns.push((name.to_owned(), column));
    add("run", Column::Text(rows.iter().map(|(run, _)| Some((*run).to_owned())).collect()));
    add("case", text(&|line| Some(line.case.clone())));
    add("editor", text(&|line| line.editor.clone()));
    add("instruction", text(&|line| line.instruction.clone()));
    add("type", text(&|line| line.kind.clone()));
    add("criterion", text(&|line| Some(line.criterion.clone())));
    add("mode", text(&|line| line.mode.map(|mode| mode.to_string())));
    add("repeat", whole(&|line| Some(u64::from(line.repeat))));
    add("model", text(&|line| line.model.clone()));
    add("prompts", text(&|line| line.prompts.clone()));
    add("variant", text(&|line| line.variant.clone()));
    add("outcome", text(&|line| line.outcome().map(|outcome| outcome.to_string())));
    add("label", text(&|line| line.label.clone()));
    add("score", number(&|line| line.score));
    add("reason", text(&|line| line.reason.clone()));
    add("turns", whole(&|line| line.turns.map(u64::from)));
    add("looks", whole(&|line| Some(line.tools.values().map(|count| u64::from(*count)).sum())));
    add(
        "looked_at_target",
        Column::Truth(rows.iter().map(|(_, line)| line.looked_at_target).collect()),
    );
    add("evidence", whole(&|line| line.evidence.map(|count| count as u64)));
    add("prompt_tokens", whole(&|line| line.usage.prompt_tokens));
    add("completion_tokens", whole(&|line| line.usage.completion_tokens));
    add("cost", number(&|line| line.cost));
    add("paid", number(&|line| line.paid));
    add("seconds", number(&|line| line.seconds));
    add("at", whole(&|line| line.at));
    add("trace", text(&|line| line.trace.clone()));
    add("digest", text(&|line| line.digest.as_ref().map(ToString::to_string)));
    add(
        "parts",
        text(&|line| (!line.parts.is_empty()).then(|| serde_json::json!(line.parts).to_string())),
    );
    for (key, numbers) in &names.keys {
        let column = match numbers {
            true => number(&|line| line.values.get(key).and_then(Value::as_f64)),
            false => text(&|line| line.values.get(key).map(plain)),
        };
        add(&format!("value.{key}"), column);
    }
    for name in &names.facts {
        add(
            &format!("fact.{name}"),
            text(&|line| line.facts.text(name).map(|fact| fact.into_owned())),
        );
    }
    columns
}

/// A text as itself, everything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn write(first: Columns, others: impl Iterator<Item = Columns>) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("deeplook ", env!("CARGO_PKG_VERSION")).to_owned());
    let mut file = Vec::new();
    let schema = Arc::new(schema(&first)?);
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties.build()))?;
    for columns in std::iter::once(first).chain(others) {
        let mut group = writer.next_row_group()?;
        for (_, column) in &columns {
            let Some(mut to) = group.next_column()? else { break };
            match column {
                Column::Text(values) => {
                    let (there, levels) = present(values, |text| ByteArray::from(text.as_str()));
                    to.typed::<ByteArrayType>().write_batch(&there, Some(&levels), None)?;
                }
                Column::Whole(values) => {
                    let (there, levels) = present(values, |value| *value);
                    to.typed::<Int64Type>().write_batch(&there, Some(&levels), None)?;
                }
                Column::Number(values) => {
                    let (there, levels) = present(values, |value| *value);
                    to.typed::<DoubleType>().write_batch(&there, Some(&levels), None)?;
                }
                Column::Truth(values) => {
                    let (there, levels) = present(values, |value| *value);
                    to.typed::<BoolType>().write_batch(&there, Some(&levels), None)?;
                }
            }
            to.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(file)
}

fn schema(columns: &Columns) -> Result<Type, ParquetError> {
    let field = |(name, column): &(String, Column)| -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match column {
            Column::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Column::Whole(_) => (Physical::INT64, None),
            Column::Number(_) => (Physical::DOUBLE, None),
            Column::Truth(_) => (Physical::BOOLEAN, None),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        Ok(Arc::new(field.build()?))
    };
    let fields: Vec<TypePtr> = columns.iter().map(field).collect::<Result<_, _>>()?;
    Type::group_type_builder("judgements").with_fields(fields).build()
}

/// The values that are there, and where they are.
fn present<T, U>(values: &[Option<T>], of: impl Fn(&T) -> U) -> (Vec<U>, Vec<i16>) {
    let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
    (values.iter().flatten().map(of).collect(), levels)
}
