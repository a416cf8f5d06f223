//! One column of a group of rows: a batch of its values, with the levels that say where they stand.

use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use serde_json::Value;

use super::tree::{Form, Keep};

/// A longer text is a mistake, such as a picture in it.
const LONGEST_TEXT: usize = 16 << 20;

/// A column that is being read.
pub(super) struct Leaf {
    reader: ColumnReader,
    most_defined: i16,
    defined: Vec<i16>,
    repeated: Vec<i16>,
    values: Values,
    /// The next entry, and the next value.
    entry: usize,
    at: usize,
    entries: usize,
}

enum Values {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl Leaf {
    pub(super) fn new(reader: ColumnReader, most_defined: i16) -> Self {
        let values = match &reader {
            ColumnReader::BoolColumnReader(_) => Values::Bool(Vec::new()),
            ColumnReader::Int32ColumnReader(_) => Values::Int32(Vec::new()),
            ColumnReader::Int64ColumnReader(_) => Values::Int64(Vec::new()),
            ColumnReader::Int96ColumnReader(_) => Values::Int96(Vec::new()),
            ColumnReader::FloatColumnReader(_) => Values::Float(Vec::new()),
            ColumnReader::DoubleColumnReader(_) => Values::Double(Vec::new()),
            ColumnReader::ByteArrayColumnReader(_) => Values::Bytes(Vec::new()),
            ColumnReader::FixedLenByteArrayColumnReader(_) => Values::Fixed(Vec::new()),
        };
        let (defined, repeated) = (Vec::new(), Vec::new());
        Self { reader, most_defined, defined, repeated, values, entry: 0, at: 0, entries: 0 }
    }

    /// Reads the next records; returns how many there were.
    pub(super) fn read(&mut self, records: usize) -> Result<usize, String> {
        self.defined.clear();
        self.repeated.clear();
        (self.entry, self.at) = (0, 0);
        macro_rules! read {
            ($reader:expr, $values:expr) => {{
                $values.clear();
                $reader.read_records(
                    records,
                    Some(&mut self.defined),
                    Some(&mut self.repeated),
                    $values,
                )
            }};
        }
        let done = match (&mut self.reader, &mut self.values) {
            (ColumnReader::BoolColumnReader(reader), Values::Bool(values)) => read!(reader, values),
            (ColumnReader::Int32ColumnReader(reader), Values::Int32(values)) => {
                read!(reader, values)
            }
            (ColumnReader::Int64ColumnReader(reader), Values::Int64(values)) => {
                read!(reader, values)
            }
            (ColumnReader::Int96ColumnReader(reader), Values::Int96(values)) => {
                read!(reader, values)
            }
            (ColumnReader::FloatColumnReader(reader), Values::Float(values)) => {
                read!(reader, values)
            }
            (ColumnReader::DoubleColumnReader(reader), Values::Double(values)) => {
                read!(reader, values)
            }
            (ColumnReader::ByteArrayColumnReader(reader), Values::Bytes(values)) => {
                read!(reader, values)
            }
            (ColumnReader::FixedLenByteArrayColumnReader(reader), Values::Fixed(values)) => {
                read!(reader, values)
            }
            _ => return Err("a column changed its type".to_owned()),
        };
        let (records, _, entries) = done.map_err(|error| error.to_string())?;
        self.entries = entries;
        Ok(records)
    }

    /// How far the next entry is defined.
    pub(super) fn defined(&self) -> i16 {
        match self.most_defined {
            0 => 0,
            _ => self.defined.get(self.entry).copied().unwrap_or(0),
        }
    }

    /// At which level the next entry is repeated; none at the end.
    pub(super) fn repetition(&self) -> Option<i16> {
        self.repeated.get(self.entry).copied()
    }

    pub(super) fn pass(&mut self) {
        if self.entry < self.entries && self.defined() == self.most_defined {
            self.at += 1;
        }
        self.entry += 1;
    }

    /// The place of the next value, if it is not null.
    fn next(&mut self) -> Result<Option<usize>, String> {
        if self.entry >= self.entries {
            return Err("a column has fewer values than its rows".to_owned());
        }
        let there = self.defined() == self.most_defined;
        let at = self.at;
        self.entry += 1;
        self.at += usize::from(there);
        Ok(there.then_some(at))
    }

    /// The bytes of the next value as a picture.
    pub(super) fn picture(&mut self, keep: &Keep<'_>) -> Result<Option<String>, String> {
        let place = self.next()?;
        let bytes = match (&self.values, place) {
            (Values::Bytes(values), Some(at)) => values.get(at).map(ByteArray::data),
            _ => None,
        };
        bytes.filter(|bytes| !bytes.is_empty()).map(keep).transpose()
    }

    /// The next value.
    pub(super) fn value(
        &mut self,
        text: bool,
        form: Form,
        keep: &Keep<'_>,
    ) -> Result<Value, String> {
        let Some(at) = self.next()? else { return Ok(Value::Null) };
        let value = match &self.values {
            Values::Bool(values) => values.get(at).map(|value| Value::from(*value)),
            Values::Int32(values) => values.get(at).map(|value| match form {
                Form::Unsigned => Value::from(value.cast_unsigned()),
                form => integer(i128::from(*value), form),
            }),
            Values::Int64(values) => values.get(at).map(|value| match form {
                Form::Unsigned => Value::from(value.cast_unsigned()),
                form => integer(i128::from(*value), form),
            }),
            Values::Int96(values) => values.get(at).map(|value| Value::from(value.to_millis())),
            // As it was written: 0.1, not 0.10000000149.
            Values::Float(values) => values
                .get(at)
                .map(|value| Value::from(value.to_string().parse::<f64>().unwrap_or(f64::NAN))),
            Values::Double(values) => values.get(at).map(|value| Value::from(*value)),
            Values::Bytes(values) => match values.get(at) {
                Some(bytes) => Some(of_bytes(bytes.data(), text, form, keep)?),
                None => None,
            },
            Values::Fixed(values) => match values.get(at) {
                Some(bytes) => Some(of_bytes(bytes.data(), text, form, keep)?),
                None => None,
            },
        };
        value.ok_or_else(|| "a column has fewer values than its rows".to_owned())
    }
}

fn integer(value: i128, form: Form) -> Value {
    match form {
        Form::Decimal(scale) => Value::from(value as f64 / 10f64.powi(scale)),
        _ => i64::try_from(value).map_or(Value::Null, Value::from),
    }
}

fn of_bytes(bytes: &[u8], text: bool, form: Form, keep: &Keep<'_>) -> Result<Value, String> {
    match form {
        Form::Half if bytes.len() == 2 => {
            return Ok(Value::from(half(u16::from_le_bytes([bytes[0], bytes[1]]))));
        }
        Form::Decimal(_) if bytes.len() <= 16 => {
            let sign = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { -1i128 } else { 0 };
            let number = bytes.iter().fold(sign, |number, byte| (number << 8) | i128::from(*byte));
            return Ok(integer(number, form));
        }
        _ => {}
    }
    if !text && super::pictures::ending(bytes).is_some() {
        return keep(bytes).map(Value::String);
    }
    if bytes.len() > LONGEST_TEXT {
        return Err(format!("a text is longer than {} MiB", LONGEST_TEXT >> 20));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Value::from(text)),
        Err(_) if text => Err("a text is not UTF-8".to_owned()),
        // Neither text nor a picture: nothing that is known of a case.
        Err(_) => Ok(Value::Null),
    }
}

/// A number of two bytes.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let fraction = f64::from(bits & 0x3ff);
    sign * match (bits >> 10) & 0x1f {
        0 => fraction * 2f64.powi(-24),
        31 => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
    }
}
