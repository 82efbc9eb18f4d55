//! A forger who has read `docs/catalog.md`: he edits a catalog by SQL and puts
//! every seal and the root digest right, as any program can.

use rusqlite::Connection;
use rusqlite::types::Value;
use xxhash_rust::xxh3::xxh3_64;

/// Edits a catalog, and leaves it without a trace that a seal could show.
///
/// # Panics
/// If the SQL fails.
pub fn forge(catalog: &Connection, sql: &str) {
    catalog.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = rows(catalog, "SELECT * FROM record");
    let (mut digest, mut files, mut bytes) = (0_u64, 0_i64, 0_i64);
    for row in &rows {
        let seal = seal(&row[..row.len() - 1]);
        digest = digest.wrapping_add(seal);
        let sql = "UPDATE record SET seal = ?1 WHERE path = ?2";
        catalog.execute(sql, (seal.cast_signed(), &row[0])).expect("seal a row");
        // kind, gone_s and size.
        if row[1] == Value::Integer(0) && row[17] == Value::Null {
            let Value::Integer(size) = row[2] else { panic!("a size: {:?}", row[2]) };
            files += 1;
            bytes += size;
        }
    }
    for (table, key) in [("metadata", "path"), ("choice", "name"), ("finding", "path")] {
        for row in self::rows(catalog, &format!("SELECT * FROM {table}")) {
            let sql = format!("UPDATE {table} SET seal = ?1 WHERE {key} = ?2");
            let seal = seal(&row[..row.len() - 1]).cast_signed();
            catalog.execute(&sql, (seal, &row[0])).expect("seal a row");
        }
    }
    for table in [
        "choice",
        "nested",
        "finding",
        "metadata",
        "generation",
        "verification",
        "redated",
        "accepted",
    ] {
        let rows = self::rows(catalog, &format!("SELECT * FROM {table}"));
        let digest = rows.iter().fold(0_u64, |sum, row| sum.wrapping_add(typed_checksum(row)));
        let (count, digest) = (rows.len() as i64, digest.cast_signed());
        let values = [Value::Text(table.to_owned()), count.into(), digest.into()];
        let seal = seal(&values).cast_signed();
        let sql = "UPDATE table_total SET rows = ?1, digest = ?2, seal = ?3 WHERE name = ?4";
        catalog.execute(sql, (count, digest, seal, table)).expect("set a total");
    }
    let sql = "UPDATE root SET rows = ?1, files = ?2, bytes = ?3, root_digest = ?4";
    let totals = (rows.len() as i64, files, bytes, digest.cast_signed());
    catalog.execute(sql, totals).expect("set the totals");
    let root = &self::rows(catalog, "SELECT * FROM root")[0];
    let seal = seal(&root[1..root.len() - 1]).cast_signed();
    catalog.execute("UPDATE root SET seal = ?1", [seal]).expect("seal the root");
}

fn rows(catalog: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut statement = catalog.prepare(sql).expect("a table");
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect());
    rows.expect("rows").map(|row| row.expect("a row")).collect()
}

fn seal(values: &[Value]) -> u64 {
    let mut bytes = Vec::new();
    for value in values {
        match value {
            Value::Null => bytes.push(0),
            Value::Integer(number) => {
                bytes.push(1);
                bytes.extend(number.to_le_bytes());
            }
            Value::Text(_) | Value::Blob(_) => {
                let content: &[u8] = match value {
                    Value::Text(text) => text.as_bytes(),
                    Value::Blob(blob) => blob,
                    _ => unreachable!(),
                };
                bytes.push(2);
                bytes.extend((content.len() as u32).to_le_bytes());
                bytes.extend(content);
            }
            Value::Real(_) => panic!("no column holds a fraction"),
        }
    }
    xxh3_64(&bytes)
}

/// The checksum of a row for the total of its table.
fn typed_checksum(row: &[Value]) -> u64 {
    let mut bytes = Vec::new();
    for value in row {
        let (tag, content) = match value {
            Value::Null => {
                bytes.push(0);
                continue;
            }
            Value::Integer(number) => {
                bytes.push(1);
                bytes.extend(number.to_le_bytes());
                continue;
            }
            Value::Blob(blob) => (2, &blob[..]),
            Value::Text(text) => (3, text.as_bytes()),
            Value::Real(_) => panic!("no column holds a fraction"),
        };
        bytes.push(tag);
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend(content);
    }
    xxh3_64(&bytes)
}
