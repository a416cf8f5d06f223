//! The schema of a Parquet file as a tree, and records put together from its columns.

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::schema::types::Type;
use serde_json::{Map, Value};

use super::leaf::Leaf;

/// A value of a record.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    /// Where fewer levels are defined, it is absent: a list is empty, everything else is null.
    defined: i16,
    /// The level at which it is repeated, if it is.
    repeated: Option<i16>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// A column.
    Leaf { column: usize, text: bool, form: Form },
    /// A structure.
    Group(Vec<Node>),
    /// A list in one or two wrappings of its own: its entries stand in the inmost.
    Wrapped(Box<Node>),
    /// Pairs of a key and a value.
    Pairs(Box<Node>),
    /// A picture as a data set of the hub holds it: its bytes, or a path.
    Picture { bytes: usize, path: usize },
}

/// How the number of a column is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Unsigned,
    /// So many digits stand behind the point.
    Decimal(i32),
    Half,
}

/// The nodes of a schema; the columns are counted as the file has them.
pub(super) fn nodes(schema: &Type) -> Vec<Node> {
    let mut column = 0;
    schema.get_fields().iter().map(|field| node(field, 0, 0, &mut column)).collect()
}

fn node(field: &Type, mut defined: i16, mut repetition: i16, column: &mut usize) -> Node {
    let info = field.get_basic_info();
    let how = if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED };
    let mut repeated = None;
    match how {
        Repetition::REQUIRED => {}
        Repetition::OPTIONAL => defined += 1,
        Repetition::REPEATED => {
            defined += 1;
            repetition += 1;
            repeated = Some(repetition);
        }
    }
    let kind = if field.is_primitive() {
        let own = *column;
        *column += 1;
        Kind::Leaf { column: own, text: is_text(field), form: form(field) }
    } else {
        let first = *column;
        let fields: Vec<Node> = field
            .get_fields()
            .iter()
            .map(|field| node(field, defined, repetition, column))
            .collect();
        group(field, fields, first)
    };
    Node { name: field.name().to_owned(), defined, repeated, kind }
}

fn group(field: &Type, mut fields: Vec<Node>, first: usize) -> Kind {
    let info = field.get_basic_info();
    let is = |logical: &LogicalType, converted: ConvertedType| {
        info.logical_type_ref() == Some(logical) || info.converted_type() == converted
    };
    let single = fields.len() == 1 && fields[0].repeated.is_some();
    if single && is(&LogicalType::List, ConvertedType::LIST) {
        let mut entries = fields.remove(0);
        // Of three levels the one in the middle has no meaning of its own.
        if let Kind::Group(inner) = &mut entries.kind
            && inner.len() == 1
            && entries.name != "array"
            && entries.name != format!("{}_tuple", field.name())
        {
            let inner = inner.remove(0);
            entries.kind = Kind::Wrapped(Box::new(inner));
        }
        return Kind::Wrapped(Box::new(entries));
    }
    if single
        && (is(&LogicalType::Map, ConvertedType::MAP)
            || info.converted_type() == ConvertedType::MAP_KEY_VALUE)
    {
        return Kind::Pairs(Box::new(fields.remove(0)));
    }
    let place = |name: &str, text: bool| {
        fields.iter().position(|node| {
            node.name == name && matches!(node.kind, Kind::Leaf { text: own, .. } if own == text)
        })
    };
    if fields.len() == 2
        && let (Some(bytes), Some(path)) = (place("bytes", false), place("path", true))
    {
        return Kind::Picture { bytes: first + bytes, path: first + path };
    }
    Kind::Group(fields)
}

fn is_text(field: &Type) -> bool {
    let info = field.get_basic_info();
    let converted = info.converted_type();
    matches!(
        info.logical_type_ref(),
        Some(LogicalType::String | LogicalType::Json | LogicalType::Enum)
    ) || matches!(converted, ConvertedType::UTF8 | ConvertedType::JSON | ConvertedType::ENUM)
}

fn form(field: &Type) -> Form {
    let info = field.get_basic_info();
    match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::Float16), _) => Form::Half,
        (Some(LogicalType::Decimal { .. }), _) | (_, ConvertedType::DECIMAL) => {
            Form::Decimal(field.get_scale())
        }
        (
            _,
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64,
        ) => Form::Unsigned,
        _ => Form::Plain,
    }
}

impl Node {
    /// The columns that it is made of.
    pub(super) fn columns(&self, all: &mut Vec<usize>) {
        match &self.kind {
            Kind::Leaf { column, .. } => all.push(*column),
            Kind::Group(fields) => fields.iter().for_each(|field| field.columns(all)),
            Kind::Wrapped(inner) | Kind::Pairs(inner) => inner.columns(all),
            Kind::Picture { bytes, path } => all.extend([*bytes, *path]),
        }
    }

    /// The columns that hold bytes of pictures, or may.
    pub(super) fn heavy(&self, types: &[Physical], all: &mut Vec<usize>) {
        match &self.kind {
            Kind::Leaf { column, text: false, .. } if types[*column] == Physical::BYTE_ARRAY => {
                all.push(*column)
            }
            Kind::Leaf { .. } => {}
            Kind::Group(fields) => fields.iter().for_each(|field| field.heavy(types, all)),
            Kind::Wrapped(inner) | Kind::Pairs(inner) => inner.heavy(types, all),
            Kind::Picture { bytes, .. } => all.push(*bytes),
        }
    }

    /// The next value, from the columns that are read.
    pub(super) fn take(
        &self,
        leaves: &mut [Option<Leaf>],
        keep: &Keep<'_>,
    ) -> Result<Value, String> {
        match self.repeated {
            None => self.one(leaves, keep),
            Some(level) => {
                let mut entries = Vec::new();
                if self.level(leaves).is_none_or(|defined| defined < self.defined) {
                    self.pass(leaves);
                    return Ok(Value::Array(entries));
                }
                loop {
                    entries.push(self.one(leaves, keep)?);
                    if self.next_repetition(leaves) != Some(level) {
                        return Ok(Value::Array(entries));
                    }
                }
            }
        }
    }

    fn one(&self, leaves: &mut [Option<Leaf>], keep: &Keep<'_>) -> Result<Value, String> {
        if self.level(leaves).is_none_or(|defined| defined < self.defined) {
            self.pass(leaves);
            return Ok(Value::Null);
        }
        match &self.kind {
            Kind::Leaf { column, text, form } => match leaves.get_mut(*column) {
                Some(Some(leaf)) => leaf.value(*text, *form, keep),
                _ => Ok(Value::Null),
            },
            Kind::Group(fields) => {
                let mut object = Map::new();
                for field in fields {
                    object.insert(field.name.clone(), field.take(leaves, keep)?);
                }
                Ok(Value::Object(object))
            }
            Kind::Wrapped(inner) => inner.take(leaves, keep),
            Kind::Pairs(inner) => {
                let pairs = inner.take(leaves, keep)?;
                let pair = |pair: &Value| {
                    let mut fields = pair.as_object()?.values();
                    Some((
                        fields.next()?.as_str()?.to_owned(),
                        fields.next().cloned().unwrap_or_default(),
                    ))
                };
                let named: Option<Map<String, Value>> =
                    pairs.as_array().and_then(|pairs| pairs.iter().map(pair).collect());
                Ok(named.map_or(pairs, Value::Object))
            }
            Kind::Picture { bytes, path } => {
                let named = match leaves.get_mut(*path) {
                    Some(Some(leaf)) => leaf.value(true, Form::Plain, keep)?,
                    _ => Value::Null,
                };
                let held = match leaves.get_mut(*bytes) {
                    Some(Some(leaf)) => leaf.picture(keep)?,
                    _ => None,
                };
                Ok(held.map_or(named, Value::String))
            }
        }
    }

    /// How far the next value of its first column is defined.
    fn level(&self, leaves: &[Option<Leaf>]) -> Option<i16> {
        self.first(leaves).map(Leaf::defined)
    }

    fn next_repetition(&self, leaves: &[Option<Leaf>]) -> Option<i16> {
        self.first(leaves).and_then(Leaf::repetition)
    }

    /// The first of its columns that is read.
    fn first<'a>(&self, leaves: &'a [Option<Leaf>]) -> Option<&'a Leaf> {
        let mut columns = Vec::new();
        match &self.kind {
            Kind::Leaf { column, .. } => return leaves.get(*column)?.as_ref(),
            _ => self.columns(&mut columns),
        }
        columns.into_iter().find_map(|column| leaves.get(column)?.as_ref())
    }

    /// Goes over one entry of each of its columns.
    fn pass(&self, leaves: &mut [Option<Leaf>]) {
        let mut columns = Vec::new();
        self.columns(&mut columns);
        for column in columns {
            if let Some(Some(leaf)) = leaves.get_mut(column) {
                leaf.pass();
            }
        }
    }
}

/// Keeps the bytes of a picture, and says under which name.
pub(super) type Keep<'a> = dyn Fn(&[u8]) -> Result<String, String> + 'a;
