//! Rows of any table as values with their types: how the backup keeps them and
//! how they are put into a catalog that is put together anew.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row as SqlRow, params_from_iter};

/// A table of which every row is kept in the backup. The number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(super) enum Table {
    Root = 0,
    FileSystem = 1,
    Record = 2,
    Block = 3,
    Choice = 4,
    Nested = 5,
    Metadata = 6,
    Finding = 7,
    Generation = 8,
    Verification = 9,
    Accepted = 10,
    Redated = 11,
}

impl Table {
    pub(super) const ALL: [Self; 12] = [
        Self::Root,
        Self::FileSystem,
        Self::Record,
        Self::Block,
        Self::Choice,
        Self::Nested,
        Self::Metadata,
        Self::Finding,
        Self::Generation,
        Self::Verification,
        Self::Accepted,
        Self::Redated,
    ];

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|table| *table as u8 == number)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::FileSystem => "file_system",
            Self::Record => "record",
            Self::Block => "block",
            Self::Choice => "choice",
            Self::Nested => "nested",
            Self::Metadata => "metadata",
            Self::Finding => "finding",
            Self::Generation => "generation",
            Self::Verification => "verification",
            Self::Accepted => "accepted",
            Self::Redated => "redated",
        }
    }

    /// Tells whether the last column of each row is a seal over the others.
    pub(super) fn is_sealed(self) -> bool {
        matches!(
            self,
            Self::Root
                | Self::FileSystem
                | Self::Record
                | Self::Choice
                | Self::Metadata
                | Self::Finding
        )
    }

    /// Number of columns, and of those at the beginning that are the key: a later
    /// row of the same key takes the place of an earlier one. Without a key each
    /// row stands for itself.
    pub(super) fn columns(self) -> (usize, usize) {
        match self {
            Self::Root => (12, 1),
            Self::FileSystem => (7, 1),
            Self::Record => (20, 1),
            Self::Block => (3, 2),
            Self::Choice | Self::Metadata => (3, 1),
            Self::Nested => (1, 1),
            Self::Finding => (5, 1),
            Self::Generation => (13, 1),
            Self::Verification => (7, 1),
            Self::Accepted => (5, 0),
            Self::Redated => (2, 1),
        }
    }

    /// Calls `each` with every row of the table.
    pub(super) fn each_row(
        self,
        connection: &Connection,
        each: &mut dyn FnMut(&SqlRow<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut statement = connection.prepare(&format!("SELECT * FROM {}", self.name()))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            each(row)?;
        }
        Ok(())
    }

    /// Puts a row into the table, in the place of one of the same key.
    pub(super) fn put(self, connection: &Connection, values: &[Value]) -> rusqlite::Result<()> {
        let places: Vec<_> = (1..=values.len()).map(|place| format!("?{place}")).collect();
        let (name, places) = (self.name(), places.join(", "));
        let sql = format!("INSERT OR REPLACE INTO {name} VALUES ({places})");
        connection.prepare_cached(&sql)?.execute(params_from_iter(values)).map(drop)
    }
}

/// Appends a value with its type: a byte for it, then 8 bytes of an integer or a
/// real, or 4 bytes of length and as many of content; little-endian.
pub(super) fn encode(value: ValueRef<'_>, bytes: &mut Vec<u8>) {
    let mut content = |tag: u8, content: &[u8]| {
        bytes.push(tag);
        bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
        bytes.extend_from_slice(content);
    };
    match value {
        ValueRef::Null => bytes.push(0),
        ValueRef::Integer(value) => {
            bytes.push(1);
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        ValueRef::Blob(value) => content(2, value),
        ValueRef::Text(value) => content(3, value),
        ValueRef::Real(value) => {
            bytes.push(4);
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Takes a value off the front of bytes that [`encode`] wrote; `None` where they
/// are not such.
pub(super) fn decode(bytes: &mut &[u8]) -> Option<Value> {
    let tag = bytes.split_off_first()?;
    Some(match tag {
        0 => Value::Null,
        1 => Value::Integer(i64::from_le_bytes(take(bytes)?)),
        4 => Value::Real(f64::from_le_bytes(take(bytes)?)),
        2 | 3 => {
            let length = u32::from_le_bytes(take(bytes)?) as usize;
            let content = bytes.split_off(..length)?.to_vec();
            match tag {
                2 => Value::Blob(content),
                _ => Value::Text(String::from_utf8(content).ok()?),
            }
        }
        _ => return None,
    })
}

/// Takes a fixed number of bytes off the front.
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    bytes.split_off(..N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_with_its_type() {
        let values = [
            Value::Null,
            Value::Integer(-7),
            Value::Blob(vec![1, 2, 3]),
            Value::Text("text".to_owned()),
            Value::Text(String::new()),
            Value::Real(0.5),
        ];
        let mut bytes = Vec::new();
        values.iter().for_each(|value| encode(value.into(), &mut bytes));
        let mut rest = &bytes[..];
        for value in &values {
            assert_eq!(decode(&mut rest).as_ref(), Some(value));
        }
        assert_eq!((rest, decode(&mut rest)), (&[][..], None));
        for cut in 1..bytes.len() {
            let mut rest = &bytes[..cut];
            while decode(&mut rest).is_some() {}
        }
    }
}
