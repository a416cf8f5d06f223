//! Looks at the bones of a Parquet file before its bytes are trusted: how long lists are, how deep
//! columns are nested, and how large pages become. The crate that reads columns believes all of it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Metadata is a few bytes for each column of each group of rows.
const LARGEST_FOOTER: u64 = 64 << 20;
/// So many entries all lists of the metadata have together.
const MOST_ENTRIES: u64 = 2_000_000;
/// So deep may columns be nested, and structures in the metadata.
const DEEPEST: usize = 32;
/// A larger page must be of pictures or the like, which hardly get smaller when they are packed.
const LARGE_PAGE: u64 = 64 << 20;
const MOST_UNPACKED: u64 = 100;
/// The pages of one group of rows that are in memory at a time: one of each column.
const LARGEST_PAGES: u64 = 1 << 30;
/// So many values has a column in one group of rows.
const MOST_VALUES: u64 = 50_000_000;

/// The error of a file that lies about itself.
fn bad(what: impl Into<String>) -> String {
    format!("{}; write it anew, e.g. with pyarrow", what.into())
}

/// Refuses a file whose metadata is broken, endless or too deep.
pub(super) fn check_footer(file: &mut File) -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    let length = file.metadata().map_err(told)?.len();
    if length < 12 {
        return Err(bad("it is too short for a Parquet file"));
    }
    let mut end = [0; 8];
    file.seek(SeekFrom::Start(length - 8)).map_err(told)?;
    file.read_exact(&mut end).map_err(told)?;
    match &end[4..] {
        b"PAR1" => {}
        b"PARE" => return Err("it is encrypted, which is not read".to_owned()),
        _ => {
            return Err(bad("its end is not that of a Parquet file: it is cut off, or no Parquet"));
        }
    }
    let footer = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    if footer > LARGEST_FOOTER || footer + 12 > length {
        return Err(bad(format!("its metadata has {footer} bytes, which cannot be")));
    }
    file.seek(SeekFrom::Start(length - 8 - footer)).map_err(told)?;
    let mut bytes = vec![0; usize::try_from(footer).unwrap_or(0)];
    file.read_exact(&mut bytes).map_err(told)?;
    let mut walk = Walk { bytes: &bytes[..], entries: 0 };
    let mut children = Vec::new();
    walk.fields(0, &mut |walk, id, kind| {
        if id != 2 || kind != LIST {
            return Ok(false);
        }
        let (count, element) = walk.list()?;
        for _ in 0..count {
            if element != STRUCT {
                return Err("its schema is broken".to_owned());
            }
            let mut own = 0;
            walk.fields(1, &mut |walk, id, kind| {
                if id != 5 || kind != I32 {
                    return Ok(false);
                }
                own = walk.integer()?;
                Ok(true)
            })?;
            children.push(own);
        }
        Ok(true)
    })
    .map_err(bad)?;
    check_depth(&children)
}

/// The schema is a tree, written from its root on with the number of children of each node.
fn check_depth(children: &[i64]) -> Result<(), String> {
    let mut open: Vec<i64> = Vec::new();
    for count in children {
        while open.last() == Some(&0) {
            open.pop();
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        if *count > 0 {
            open.push(*count);
        }
        if open.len() > DEEPEST {
            return Err(bad(format!("its columns are nested deeper than {DEEPEST}")));
        }
    }
    Ok(())
}

/// A column in a group of rows.
pub(super) struct Chunk<'a> {
    pub(super) name: &'a str,
    pub(super) start: u64,
    pub(super) length: u64,
}

/// Refuses columns whose pages are too large or hold too many values to be read at a time.
pub(super) fn check_pages(file: &File, chunks: &[Chunk<'_>]) -> Result<(), String> {
    let mut together = 0;
    for chunk in chunks {
        let largest = largest_page(file, chunk)
            .map_err(|what| bad(format!("the column {:?}: {what}", chunk.name)))?;
        together += largest;
    }
    match together > LARGEST_PAGES {
        true => Err(bad(format!(
            "its pages take {} MiB at a time, more than {}: write groups of fewer rows",
            together >> 20,
            LARGEST_PAGES >> 20
        ))),
        false => Ok(()),
    }
}

fn largest_page(file: &File, chunk: &Chunk<'_>) -> Result<u64, String> {
    let told = |error: io::Error| error.to_string();
    let whole = file.metadata().map_err(told)?.len();
    let end = chunk.start.checked_add(chunk.length).filter(|end| *end <= whole);
    let end = end.ok_or("it goes on behind the end of the file")?;
    let mut file = file.try_clone().map_err(told)?;
    let (mut at, mut largest, mut values) = (chunk.start, 0, 0u64);
    while at < end {
        file.seek(SeekFrom::Start(at)).map_err(told)?;
        let header = BufReader::with_capacity(1 << 10, &file).take((end - at).min(8 << 20));
        let mut walk = Walk { bytes: Counted { inner: header, read: 0 }, entries: 0 };
        let (mut unpacked, mut packed) = (-1, -1);
        walk.fields(0, &mut |walk, id, kind| {
            match (id, kind) {
                (2, I32) => unpacked = walk.integer()?,
                (3, I32) => packed = walk.integer()?,
                // The header of a page of data, of a dictionary, or of data in the second form.
                (5 | 7 | 8, STRUCT) => walk.fields(1, &mut |walk, id, kind| {
                    if (id, kind) != (1, I32) {
                        return Ok(false);
                    }
                    values += u64::try_from(walk.integer()?)
                        .map_err(|_| "a page has fewer than no values")?;
                    Ok(true)
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let size = |size: i64| u64::try_from(size).map_err(|_| "a page has no size".to_owned());
        let (unpacked, packed) = (size(unpacked)?, size(packed)?);
        if unpacked > LARGE_PAGE && unpacked / packed.max(1) > MOST_UNPACKED {
            return Err(format!("a page of {packed} bytes becomes {} MiB", unpacked >> 20));
        }
        if values > MOST_VALUES {
            return Err(format!("it has more than {MOST_VALUES} values in one group of rows"));
        }
        largest = largest.max(unpacked + packed);
        at += walk.bytes.read + packed;
        if at > end {
            return Err("a page goes on behind the end of its column".to_owned());
        }
    }
    Ok(largest)
}

/// Counts what was read.
struct Counted<R> {
    inner: R,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read += count as u64;
        Ok(count)
    }
}

const BYTE: u8 = 3;
const I32: u8 = 5;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Walks over Thrift's compact form without keeping anything.
struct Walk<R> {
    bytes: R,
    entries: u64,
}

/// Takes a field, or says that it is to be skipped.
type Take<'a, R> = &'a mut dyn FnMut(&mut Walk<R>, i64, u8) -> Result<bool, String>;

impl<R: Read> Walk<R> {
    fn byte(&mut self) -> Result<u8, String> {
        let mut one = [0];
        self.bytes.read_exact(&mut one).map_err(|_| "its metadata is cut off")?;
        Ok(one[0])
    }

    fn number(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("its metadata has a number without an end".to_owned())
    }

    fn integer(&mut self) -> Result<i64, String> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// How many entries, and of which kind.
    fn list(&mut self) -> Result<(u64, u8), String> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
        self.count(count)?;
        Ok((count, head & 15))
    }

    fn count(&mut self, entries: u64) -> Result<(), String> {
        self.entries = self.entries.saturating_add(entries);
        match self.entries > MOST_ENTRIES {
            true => Err(format!("its metadata says that it has {} entries", self.entries)),
            false => Ok(()),
        }
    }

    /// Every field of a structure.
    fn fields(&mut self, depth: usize, take: Take<'_, R>) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("its metadata is nested deeper than {DEEPEST}"));
        }
        let mut id = 0i64;
        loop {
            let head = self.byte()?;
            let kind = head & 15;
            if kind == 0 {
                return Ok(());
            }
            id = match head >> 4 {
                0 => self.integer()?,
                step => id.saturating_add(i64::from(step)),
            };
            if !take(self, id, kind)? {
                self.skip(kind, depth)?;
            }
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("its metadata is nested deeper than {DEEPEST}"));
        }
        match kind {
            // The kind says which of both.
            1 | 2 => {}
            BYTE => drop(self.byte()?),
            4..=6 => drop(self.number()?),
            7 => self.skip_bytes(8)?,
            8 => {
                let length = self.number()?;
                self.skip_bytes(length)?;
            }
            LIST | SET => {
                let (count, kind) = self.list()?;
                for _ in 0..count {
                    self.skip_entry(kind, depth)?;
                }
            }
            MAP => {
                let count = self.number()?;
                self.count(count)?;
                if count > 0 {
                    let kinds = self.byte()?;
                    for _ in 0..count {
                        self.skip_entry(kinds >> 4, depth)?;
                        self.skip_entry(kinds & 15, depth)?;
                    }
                }
            }
            STRUCT => self.fields(depth + 1, &mut |_, _, _| Ok(false))?,
            13 => self.skip_bytes(16)?,
            _ => return Err("its metadata is broken".to_owned()),
        }
        Ok(())
    }

    /// In a list a boolean is a byte.
    fn skip_entry(&mut self, kind: u8, depth: usize) -> Result<(), String> {
        match kind {
            1 | 2 => self.byte().map(drop),
            kind => self.skip(kind, depth + 1),
        }
    }

    fn skip_bytes(&mut self, count: u64) -> Result<(), String> {
        let skipped = io::copy(&mut (&mut self.bytes).take(count), &mut io::sink());
        match skipped {
            Ok(skipped) if skipped == count => Ok(()),
            _ => Err("its metadata is cut off".to_owned()),
        }
    }
}
