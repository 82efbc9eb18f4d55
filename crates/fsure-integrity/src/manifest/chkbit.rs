//! The indexes of chkbit: one file in each folder (`.chkbit`), or one for all
//! (`.chkbit-db`). JSON without lines: a problem is identified by its name. Each index has the
//! MD5 of its entries, which is checked as chkbit does.

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;

use md5::Digest as _;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::entry::{EntrySink, ListedMtime, ManifestEntry, ManifestItem};
use super::escaping;
use fsure_core::digest::hex;
use fsure_core::{Digests, Error, Result};

const MILLISECOND_NS: i64 = 1_000_000;

#[derive(Deserialize)]
struct StoredIndex {
    /// Milliseconds since 1970.
    r#mod: i64,
    a: String,
    h: String,
    /// Not written before 2025.
    s: Option<u64>,
}

/// Reads an index.
pub(super) fn read(input: &mut dyn BufRead, sink: &mut EntrySink<'_>) -> Result<()> {
    let mut failure = None;
    let mut json = serde_json::Deserializer::from_reader(input);
    let top = IndexVisitor { sink: &mut *sink, failure: &mut failure };
    let parsed = top.deserialize(&mut json).and_then(|()| json.end());
    match (parsed, failure) {
        (_, Some(error)) => Err(error),
        (Ok(()), None) => Ok(()),
        (Err(error), None) => sink(ManifestItem::malformed(
            error.line() as u64,
            format!("not a chkbit index: {error}"),
        )),
    }
}

/// The outermost object: an index of one folder, or all of them under `data`,
/// one at a time.
struct IndexVisitor<'a, 's> {
    sink: &'a mut EntrySink<'s>,
    failure: &'a mut Option<Error>,
}

struct Folders<'a, 't, 's>(&'t mut IndexVisitor<'a, 's>);

impl<'de> DeserializeSeed<'de> for IndexVisitor<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        from: D,
    ) -> std::result::Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for IndexVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> std::result::Result<(), A::Error> {
        let (mut has_data, mut index) = (false, Index::default());
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "idx" => index.idx = Some(map.next_value()?),
                "idx_hash" => index.idx_hash = Some(map.next_value()?),
                "data" => {
                    has_data = true;
                    map.next_value_seed(Folders(&mut self))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match (index.idx.is_some(), has_data) {
            (true, _) => self.folder("", &index).map_err(A::Error::custom),
            (false, true) => Ok(()),
            (false, false) => Err(A::Error::custom("neither 'idx' nor 'data'")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Folders<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        from: D,
    ) -> std::result::Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

/// The index of one folder. Its entries are kept as they are written until the digest of
/// that text was taken.
#[derive(Default, Deserialize)]
struct Index {
    idx: Option<Box<RawValue>>,
    idx_hash: Option<String>,
}

impl Index {
    /// Returns whether its digest is that of its entries: as they are written or, as older
    /// versions had it, without blanks.
    fn has_hash_of(&self, text: &str) -> bool {
        let md5 = |text: &str| Some(hex(&md5::Md5::digest(text)));
        self.idx_hash == md5(text) || self.idx_hash == md5(&compact(text))
    }
}

/// JSON as chkbit writes it: without blanks between the values, and with numbers for the
/// characters that mean something in HTML or end a line in JavaScript.
fn compact(json: &str) -> String {
    let (mut text, mut is_string, mut is_escaped) = (String::new(), false, false);
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            ' ' | '\t' | '\n' | '\r' if !is_string => {}
            other => text.push(other),
        }
        is_string ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
    }
    text
}

impl<'de> Visitor<'de> for Folders<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("indexes by folder")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        while let Some((folder, index)) = map.next_entry::<String, Index>()? {
            self.0.folder(&folder, &index).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

impl IndexVisitor<'_, '_> {
    fn folder(&mut self, folder: &str, index: &Index) -> std::result::Result<(), String> {
        let shown = if folder.is_empty() { "." } else { folder };
        let Some(idx) = &index.idx else {
            return self
                .hand_over(ManifestItem::malformed(0, format!("{shown:?}: it has no 'idx'")));
        };
        if !index.has_hash_of(idx.get()) {
            let reason = format!("{shown:?}: its idx_hash is not that of its entries");
            self.hand_over(ManifestItem::malformed(0, reason))?;
        }
        let files: BTreeMap<String, StoredIndex> =
            serde_json::from_str(idx.get()).map_err(|error| error.to_string())?;
        let slash = if folder.is_empty() { "" } else { "/" };
        for (name, stored) in files {
            self.hand_over(item(&format!("{folder}{slash}{name}"), &stored))?;
        }
        Ok(())
    }

    fn hand_over(&mut self, item: ManifestItem) -> std::result::Result<(), String> {
        (self.sink)(item).map_err(|error| {
            *self.failure = Some(error);
            "the reader has ended".to_owned()
        })
    }
}

fn item(name: &str, stored: &StoredIndex) -> ManifestItem {
    let path = match escaping::path(name.as_bytes()) {
        Ok(path) => path,
        Err(reason) => return ManifestItem::malformed(0, format!("{name:?}: {reason}")),
    };
    let shown = path.display();
    // chkbit writes U+FFFD into each name that is not UTF-8: the name is lost.
    if name.contains('\u{fffd}') {
        return ManifestItem::unsupported(
            0,
            format!("{shown}: the name was lost when it was written"),
        );
    }
    let Some(algorithm) = escaping::algorithm(&stored.a) else {
        return ManifestItem::unsupported(
            0,
            format!("{shown}: fsure does not compute {:?}", stored.a),
        );
    };
    let value = match escaping::digest(algorithm, stored.h.as_bytes()) {
        Ok(value) => value,
        Err(reason) => return ManifestItem::malformed(0, format!("{shown}: {reason}")),
    };
    let mut digests = Digests::default();
    digests.insert(algorithm, &value);
    let time_ns = stored.r#mod.checked_mul(MILLISECOND_NS);
    let modified = time_ns.map(|time_ns| ListedMtime { time_ns, unit_ns: MILLISECOND_NS });
    ManifestItem::Listed(ManifestEntry {
        path,
        digests,
        size: stored.s,
        modified,
        ..ManifestEntry::default()
    })
}
