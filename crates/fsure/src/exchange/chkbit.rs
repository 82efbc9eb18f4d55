//! The indexes of chkbit: one file in each folder (`.chkbit`), or one for all
//! (`.chkbit-db`). JSON without lines: a problem is told by its name.

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};

use super::listed::{Item, Listed, Modified, Sink};
use super::names;
use crate::words::{Digests, Error, Result};

const MILLISECOND_NS: i64 = 1_000_000;

#[derive(Deserialize)]
struct Stored {
    /// Milliseconds since 1970.
    r#mod: i64,
    a: String,
    h: String,
    /// Not written before 2025.
    s: Option<u64>,
}

/// Reads an index.
pub(super) fn read(input: &mut dyn BufRead, sink: &mut Sink<'_>) -> Result<()> {
    let mut failure = None;
    let mut json = serde_json::Deserializer::from_reader(input);
    let top = Top { sink: &mut *sink, failure: &mut failure };
    let parsed = top.deserialize(&mut json).and_then(|()| json.end());
    match (parsed, failure) {
        (_, Some(error)) => Err(error),
        (Ok(()), None) => Ok(()),
        (Err(error), None) => {
            sink(Item::malformed(error.line() as u64, format!("no index of chkbit: {error}")))
        }
    }
}

/// The outermost object: an index of one folder, or all of them under `data`,
/// one at a time.
struct Top<'a, 's> {
    sink: &'a mut Sink<'s>,
    failure: &'a mut Option<Error>,
}

struct Folders<'a, 't, 's>(&'t mut Top<'a, 's>);

impl<'de> DeserializeSeed<'de> for Top<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        from: D,
    ) -> std::result::Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> std::result::Result<(), A::Error> {
        let mut is_known = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "idx" => {
                    is_known = true;
                    let files: BTreeMap<String, Stored> = map.next_value()?;
                    self.folder("", files).map_err(A::Error::custom)?;
                }
                "data" => {
                    is_known = true;
                    map.next_value_seed(Folders(&mut self))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if is_known { Ok(()) } else { Err(A::Error::custom("neither 'idx' nor 'data'")) }
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

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    idx: BTreeMap<String, Stored>,
}

impl<'de> Visitor<'de> for Folders<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("indexes by folder")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        while let Some((folder, index)) = map.next_entry::<String, Index>()? {
            self.0.folder(&folder, index.idx).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

impl Top<'_, '_> {
    fn folder(
        &mut self,
        folder: &str,
        files: BTreeMap<String, Stored>,
    ) -> std::result::Result<(), &'static str> {
        for (name, stored) in files {
            let slash = if folder.is_empty() { "" } else { "/" };
            let path = format!("{folder}{slash}{name}");
            if let Err(error) = (self.sink)(item(&path, &stored)) {
                *self.failure = Some(error);
                return Err("the reader has ended");
            }
        }
        Ok(())
    }
}

fn item(name: &str, stored: &Stored) -> Item {
    let path = match names::path(name.as_bytes()) {
        Ok(path) => path,
        Err(reason) => return Item::malformed(0, format!("{name:?}: {reason}")),
    };
    let shown = path.shown();
    // What chkbit makes of every name that is not UTF-8: whose it was is lost.
    if name.contains('\u{fffd}') {
        return Item::unsupported(0, format!("{shown}: the name was lost when it was written"));
    }
    let Some(algorithm) = names::algorithm(&stored.a) else {
        return Item::unsupported(0, format!("{shown}: fsure does not compute {:?}", stored.a));
    };
    let value = match names::digest(algorithm, stored.h.as_bytes()) {
        Ok(value) => value,
        Err(reason) => return Item::malformed(0, format!("{shown}: {reason}")),
    };
    let mut digests = Digests::default();
    digests.insert(algorithm, &value);
    let time_ns = stored.r#mod.checked_mul(MILLISECOND_NS);
    let modified = time_ns.map(|time_ns| Modified { time_ns, unit_ns: MILLISECOND_NS });
    Item::Listed(Listed { path, digests, size: stored.s, modified, ..Listed::default() })
}
