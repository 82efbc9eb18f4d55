//! The rows of a damaged database, read page by page without SQLite: each page
//! that is a leaf or a branch of a tree gives the rows that are in it, whatever
//! has become of the pages around it. The layout is that of SQLite's "Database
//! File Format". What a row says is proved by its own seal, elsewhere.

use std::collections::{HashMap, HashSet};
use std::io;

use rusqlite::types::Value;

use super::zero_fill_reader::{ReadSeek, ZeroFillReader};

/// The bytes that every SQLite database begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The bytes that every rollback journal begins with.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// Bytes of the header of the first page.
const HEADER: usize = 100;
/// More columns than any table of a catalog has.
const COLUMNS_MAX: usize = 64;
/// More bytes than a row of a catalog has: a damaged length, or a chain of pages that
/// leads back to itself, must not cost the memory or the time of a whole file.
const ROW_BYTES_MAX: usize = 4 << 20;
/// Page size of a catalog, where its first page does not tell.
const PAGE_SIZE_USUAL: usize = 4096;

/// A row as it is in the file: of a table with a rowid, the column that stands for
/// it is NULL.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RawRow {
    /// `None` for tables without one.
    pub(super) rowid: Option<i64>,
    pub(super) values: Vec<Value>,
}

/// The pages of a database file, with what a journal puts back. They are read when they
/// are wanted: a catalog may be larger than the memory.
pub(super) struct Pages {
    file: ZeroFillReader,
    journal: Option<ZeroFillReader>,
    /// Pages as they were before the transaction that was cut off: the place of each in
    /// the journal.
    before: HashMap<usize, u64>,
    page_size: usize,
}

impl Pages {
    /// Reads a database file, however damaged, and its journal, if any.
    pub(super) fn read(
        file: Box<dyn ReadSeek>,
        journal: Option<Box<dyn ReadSeek>>,
    ) -> io::Result<Self> {
        let file = ZeroFillReader::new(file)?;
        let page_size = page_size(&file.read_at(0, HEADER));
        let journal = journal.map(ZeroFillReader::new).transpose()?;
        let before =
            journal.as_ref().map_or_else(HashMap::new, |it| pages_of_journal(it, page_size));
        Ok(Self { file, journal, before, page_size })
    }

    /// Bytes of the database file that could not be read so far.
    pub(super) fn bytes_lost(&self) -> u64 {
        self.file.bytes_lost()
    }

    fn count(&self) -> usize {
        let in_file = self.file.length().div_ceil(self.page_size as u64) as usize;
        self.before.keys().copied().max().unwrap_or(0).max(in_file)
    }

    /// A page by its number, from 1; one that is cut off is filled with zeros.
    fn page(&self, number: usize) -> Option<Vec<u8>> {
        if let (Some(place), Some(journal)) = (self.before.get(&number), &self.journal) {
            return Some(journal.read_at(*place, self.page_size));
        }
        let start = (number.checked_sub(1)? as u64).checked_mul(self.page_size as u64)?;
        (start < self.file.length()).then(|| self.file.read_at(start, self.page_size))
    }

    /// Calls `each` with every row that a page in use holds.
    pub(super) fn each_row(&self, each: &mut dyn FnMut(RawRow)) {
        let free = self.free_pages();
        for number in (1..=self.count()).filter(|number| !free.contains(number)) {
            if let Some(page) = self.page(number) {
                self.rows_of_page(number, &page, each);
            }
        }
    }

    /// Pages in no use: what is in them was deleted or moved. None where the list
    /// of them is damaged.
    fn free_pages(&self) -> HashSet<usize> {
        let mut free = HashSet::new();
        let Some(first) = self.page(1) else { return free };
        let mut trunk = number_at(&first, 32).unwrap_or(0) as usize;
        while trunk != 0 && free.insert(trunk) {
            let Some(page) = self.page(trunk) else { return HashSet::new() };
            let leaves = number_at(&page, 4).unwrap_or(0) as usize;
            if leaves > self.page_size / 4 {
                return HashSet::new();
            }
            let numbers = (0..leaves).filter_map(|leaf| number_at(&page, 8 + leaf * 4));
            free.extend(numbers.map(|number| number as usize));
            trunk = number_at(&page, 0).unwrap_or(0) as usize;
        }
        free
    }

    fn rows_of_page(&self, number: usize, page: &[u8], each: &mut dyn FnMut(RawRow)) {
        let start = if number == 1 { HEADER } else { 0 };
        let kind = page.get(start).copied().unwrap_or(0);
        // Branch of an index, leaf of an index, leaf of a table: those with content.
        let (header, is_table) = match kind {
            0x02 => (12, false),
            0x0a => (8, false),
            0x0d => (8, true),
            _ => return,
        };
        let cells = short_at(page, start + 3).unwrap_or(0) as usize;
        for cell in 0..cells.min(self.page_size / 4) {
            let place = short_at(page, start + header + cell * 2).unwrap_or(0) as usize;
            let Some(mut cell) = page.get(place..).filter(|_| place > 0) else { continue };
            if kind == 0x02 {
                // The child page comes first.
                let Some(rest) = cell.get(4..) else { continue };
                cell = rest;
            }
            each_some(self.row_of_cell(cell, is_table), each);
        }
    }

    fn row_of_cell(&self, mut cell: &[u8], is_table: bool) -> Option<RawRow> {
        let length = usize::try_from(varint(&mut cell)?).ok()?;
        if length > ROW_BYTES_MAX {
            return None;
        }
        let rowid = if is_table { Some(varint(&mut cell)?) } else { None };
        let payload = self.payload(cell, length, is_table)?;
        Some(RawRow { rowid, values: values(&payload)? })
    }

    /// The payload of a cell: what does not fit into the page is in a chain of
    /// overflow pages.
    fn payload(&self, cell: &[u8], length: usize, is_table: bool) -> Option<Vec<u8>> {
        let usable = self.page_size;
        let at_least = (usable - 12) * 32 / 255 - 23;
        let at_most = if is_table { usable - 35 } else { (usable - 12) * 64 / 255 - 23 };
        if length <= at_most {
            return cell.get(..length).map(<[u8]>::to_vec);
        }
        let fits = at_least + (length - at_least) % (usable - 4);
        let local = if fits <= at_most { fits } else { at_least };
        let mut payload = cell.get(..local)?.to_vec();
        let mut next = number_at(cell, local)? as usize;
        while payload.len() < length {
            let page = self.page(next).filter(|_| next > 1)?;
            let part = (length - payload.len()).min(usable - 4);
            payload.extend_from_slice(&page[4..4 + part]);
            next = number_at(&page, 0)? as usize;
        }
        Some(payload)
    }
}

fn each_some(row: Option<RawRow>, each: &mut dyn FnMut(RawRow)) {
    if let Some(row) = row {
        each(row);
    }
}

fn page_size(bytes: &[u8]) -> usize {
    let reported = match short_at(bytes, 16) {
        Some(1) => 65_536,
        reported => reported.unwrap_or(0) as usize,
    };
    let is_sound = bytes.starts_with(MAGIC) && reported.is_power_of_two() && reported >= 512;
    if is_sound { reported } else { PAGE_SIZE_USUAL }
}

/// The places in a hot journal of the pages that it puts back, each if its checksum fits.
fn pages_of_journal(journal: &ZeroFillReader, page_size: usize) -> HashMap<usize, u64> {
    let mut pages = HashMap::new();
    let record = page_size + 8;
    let mut at = 0;
    loop {
        let head = journal.read_at(at, 28);
        if head[..8] != JOURNAL_MAGIC {
            break;
        }
        let header = |place| number_at(&head, place).unwrap_or(0);
        let (count, nonce, sector, reported) = (header(8), header(12), header(20), header(24));
        if reported as usize != page_size || sector == 0 {
            break;
        }
        at += u64::from(sector);
        // One that was not flushed does not tell its length.
        let reported = if count == u32::MAX { u64::MAX } else { u64::from(count) };
        for _ in 0..reported.min(journal.length() / record as u64 + 1) {
            if at + record as u64 > journal.length() {
                return pages;
            }
            let found = journal.read_at(at, record);
            let (number, page) = (number_at(&found, 0).unwrap_or(0), &found[4..4 + page_size]);
            if number_at(&found, 4 + page_size) != Some(journal_checksum(nonce, page)) {
                return pages;
            }
            pages.entry(number as usize).or_insert(at + 4);
            at += record as u64;
        }
        at = at.next_multiple_of(u64::from(sector));
    }
    pages
}

/// Every 200th byte from the end of a page, and the nonce of its journal.
fn journal_checksum(nonce: u32, page: &[u8]) -> u32 {
    let mut places =
        (1..page.len() / 200 + 1).map(|step| page.len() as isize - 200 * step as isize);
    places
        .by_ref()
        .filter(|place| *place > 0)
        .fold(nonce, |sum, place| sum.wrapping_add(page[place as usize].into()))
}

/// The columns of a record.
fn values(payload: &[u8]) -> Option<Vec<Value>> {
    let mut rest = payload;
    let header = usize::try_from(varint(&mut rest)?).ok()?;
    let begun = payload.len() - rest.len();
    let mut header_rest = payload.get(begun..header)?;
    let mut content = payload.get(header..)?;
    let mut values = Vec::new();
    while !header_rest.is_empty() {
        let kind = varint(&mut header_rest)?;
        values.push(value(kind, &mut content)?);
        if values.len() > COLUMNS_MAX {
            return None;
        }
    }
    Some(values)
}

fn value(kind: i64, content: &mut &[u8]) -> Option<Value> {
    let mut integer = |bytes: usize| -> Option<Value> {
        let bytes = content.split_off(..bytes)?;
        let sign = if bytes.first()? & 0x80 == 0 { 0 } else { -1 };
        let value = bytes.iter().fold(sign, |value: i64, byte| (value << 8) | i64::from(*byte));
        Some(Value::Integer(value))
    };
    match kind {
        0 => Some(Value::Null),
        1..=4 => integer(kind as usize),
        5 => integer(6),
        6 => integer(8),
        7 => {
            let bytes = content.split_off(..8)?.try_into().ok()?;
            Some(Value::Real(f64::from_be_bytes(bytes)))
        }
        8 | 9 => Some(Value::Integer(kind - 8)),
        12.. => {
            let length = usize::try_from((kind - 12) / 2).ok()?;
            let bytes = content.split_off(..length)?.to_vec();
            match kind % 2 {
                0 => Some(Value::Blob(bytes)),
                _ => String::from_utf8(bytes).ok().map(Value::Text),
            }
        }
        _ => None,
    }
}

/// A number of up to nine bytes, seven bits each, the ninth whole.
fn varint(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for place in 0..9 {
        let byte = *bytes.split_off_first()?;
        if place == 8 {
            value = (value << 8) | u64::from(byte);
            break;
        }
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(value.cast_signed())
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn short_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::zero_fill_reader::tests::BadSector;
    use super::*;
    use rusqlite::Connection;

    /// A database of both kinds of tables, with values of all types and sizes.
    fn database(page_size: usize) -> (Vec<u8>, Vec<Vec<Value>>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("db");
        let connection = Connection::open(&file).unwrap();
        connection.pragma_update(None, "page_size", page_size as i64).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE without (a BLOB PRIMARY KEY, b, c, d) WITHOUT ROWID;
                 CREATE TABLE with (a INTEGER PRIMARY KEY, b, c, d)",
            )
            .unwrap();
        let mut rows = Vec::new();
        for number in 0..300_i64 {
            let blob = number.to_be_bytes().repeat((number as usize * 7) % 900 + 1);
            let text = "x".repeat((number as usize * 31) % 70);
            let power = 1_i64 << (number % 63);
            let row = vec![
                Value::Blob(blob),
                Value::Text(text),
                Value::Integer(if number % 2 == 0 { power } else { -power }),
                if number % 3 == 0 { Value::Null } else { Value::Real(number as f64 / 3.0) },
            ];
            let insert = "INSERT INTO without VALUES (?1, ?2, ?3, ?4)";
            connection.execute(insert, rusqlite::params_from_iter(&row)).unwrap();
            rows.push(row);
        }
        connection.execute_batch("INSERT INTO with SELECT NULL, b, c, d FROM without").unwrap();
        // Pages that are in no use any more.
        connection.execute("DELETE FROM without WHERE c > 0 AND b > 'xxxxx'", []).unwrap();
        let is_left = |row: &Vec<Value>| {
            let Value::Integer(c) = row[2] else { return true };
            let Value::Text(b) = &row[1] else { return true };
            c <= 0 || b.as_str() <= "xxxxx"
        };
        rows.retain(is_left);
        drop(connection);
        (std::fs::read(file).unwrap(), rows)
    }

    fn rows_of(bytes: &[u8]) -> Vec<RawRow> {
        rows_in(Box::new(io::Cursor::new(bytes.to_vec())))
    }

    fn rows_in(file: Box<dyn ReadSeek>) -> Vec<RawRow> {
        let pages = Pages::read(file, None).unwrap();
        let mut rows = Vec::new();
        pages.each_row(&mut |row| rows.push(row));
        rows
    }

    #[test]
    fn every_row_of_a_sound_database_is_found() {
        for page_size in [512, 4096, 65_536] {
            let (bytes, written) = database(page_size);
            let rows = rows_of(&bytes);
            let without: Vec<_> =
                rows.iter().filter(|row| row.rowid.is_none()).map(|row| &row.values).collect();
            for row in &written {
                assert!(without.contains(&row), "{page_size}: {row:?}");
            }
            assert_eq!(without.len(), written.len(), "{page_size}: and none that was deleted");
            let with = rows.iter().filter(|row| row.rowid.is_some() && row.values.len() == 4);
            assert_eq!(with.count(), 300, "{page_size}");
        }
    }

    #[test]
    fn a_page_that_cannot_be_read_costs_its_rows() {
        let (bytes, _) = database(4096);
        for page in 0..bytes.len() / 4096 {
            let range = page * 4096..(page + 1) * 4096;
            let mut zeroed = bytes.clone();
            zeroed[range.clone()].fill(0);
            let (start, end) = (range.start as u64, range.end as u64);
            let file = BadSector { file: io::Cursor::new(bytes.clone()), bad: start..end };
            assert!(rows_in(Box::new(file)) == rows_of(&zeroed), "{page}");
        }
    }

    #[test]
    fn nothing_in_a_file_makes_it_fail() {
        let (bytes, _) = database(512);
        for at in (0..bytes.len()).step_by(3001) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            rows_of(&damaged);
            rows_of(&bytes[..at]);
        }
        rows_of(&[]);
        rows_of(&[0x0a; 10_000]);
    }
}
