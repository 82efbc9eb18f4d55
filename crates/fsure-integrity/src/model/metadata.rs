//! Metadata of a name, as far as the user wants it recorded: mode, owner,
//! access lists, extended attributes. It is independent of the content: a
//! difference is reported beside the verdict and is not damage.

use std::collections::BTreeMap;
use std::fmt;

use fsure_core::escape;

/// A part of the metadata that is recorded on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetadataField {
    /// Permission bits.
    Mode,
    /// Owner and group, by number.
    Owner,
    /// Access lists, as the system keeps them.
    Acl,
    /// Extended attributes.
    Xattr,
}

impl MetadataField {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mode, Self::Owner, Self::Acl, Self::Xattr];

    /// The word used on the command line and in the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Owner => "owner",
            Self::Acl => "acl",
            Self::Xattr => "xattr",
        }
    }

    /// The aspect of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|aspect| aspect.name() == name)
    }
}

/// A set of aspects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataFields(u8);

impl MetadataFields {
    /// These aspects.
    pub fn of(aspects: &[MetadataField]) -> Self {
        Self(aspects.iter().fold(0, |set, aspect| set | 1 << *aspect as u8))
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if an aspect is in the set.
    pub fn contains(self, aspect: MetadataField) -> bool {
        self.0 & 1 << aspect as u8 != 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = MetadataField> {
        MetadataField::ALL.into_iter().filter(move |aspect| self.contains(*aspect))
    }

    /// Parses a list of names separated by commas; `None` if one of them is not
    /// the name of an aspect.
    pub fn from_names(names: &str) -> Option<Self> {
        let names = names.split(',').filter(|name| !name.is_empty());
        let aspects: Option<Vec<_>> = names.map(MetadataField::from_name).collect();
        aspects.map(|aspects| Self::of(&aspects))
    }
}

impl fmt::Display for MetadataFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.iter().map(MetadataField::name).collect::<Vec<_>>().join(","))
    }
}

/// One value of the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataValue {
    /// As it is.
    Whole(Vec<u8>),
    /// A long one: its BLAKE3 value and its length in bytes.
    Digest([u8; 32], u64),
    /// A value that exists or possibly exists, and could not be read. Never recorded.
    Unread(String),
}

/// Values up to this length are recorded as they are, bytes.
const WHOLE_MAX: usize = 256;

impl MetadataValue {
    /// A value as it is recorded.
    pub fn of(value: Vec<u8>) -> Self {
        if value.len() <= WHOLE_MAX {
            return Self::Whole(value);
        }
        Self::Digest(*blake3::hash(&value).as_bytes(), value.len() as u64)
    }

    /// The value for a person.
    pub fn shown(&self) -> String {
        match self {
            Self::Whole(value) => format!("'{}'", escape(value)),
            Self::Digest(digest, length) => {
                format!("{length} bytes, {}...", &blake3::Hash::from(*digest).to_hex()[..16])
            }
            Self::Unread(why) => format!("unreadable ({why})"),
        }
    }
}

/// The metadata of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Aspects that were requested.
    pub aspects: MetadataFields,
    /// Values by the aspect and name they have there: no name for mode and
    /// owner, that of the attribute for the others.
    pub values: BTreeMap<(MetadataField, Vec<u8>), MetadataValue>,
}

/// A difference in the metadata of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataChange {
    /// The aspect that the value belongs to.
    pub aspect: MetadataField,
    /// The attribute's name; empty for mode and owner, and for an aspect as a
    /// whole.
    pub name: Vec<u8>,
    /// The recorded state.
    pub was: RecordedValue,
    /// The value found; `None` if there is none.
    pub now: Option<MetadataValue>,
}

/// The recorded state of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedValue {
    /// A record that there was no value.
    Absent,
    /// The value.
    Value(MetadataValue),
    /// Nothing: it was not requested when the name was recorded, or it was lost.
    Unrecorded,
    /// A record that fails its seal.
    Bad,
}

impl MetadataChange {
    /// Returns a change of a whole aspect, without a name or a value found.
    pub fn whole(aspect: MetadataField, was: RecordedValue) -> Self {
        Self { aspect, name: Vec::new(), was, now: None }
    }

    /// Returns the name of what differs, for a person: `mode`, `xattr user.comment`.
    pub fn what(&self) -> String {
        let gap = if self.name.is_empty() { "" } else { " " };
        format!("{}{gap}{}", self.aspect.name(), escape(&self.name))
    }

    /// Returns true if the value could not be read.
    pub fn is_unread(&self) -> bool {
        matches!(self.now, Some(MetadataValue::Unread(_)))
    }
}

impl Metadata {
    /// Returns true if all of it could be read.
    pub fn is_whole(&self) -> bool {
        !self.values.values().any(|value| matches!(value, MetadataValue::Unread(_)))
    }

    /// Returns the differences of `now` from this record, in the aspects of
    /// `now`. A value that could not be read is included, whatever was recorded.
    pub fn changes(&self, now: &Self) -> Vec<MetadataChange> {
        let mut changes = Vec::new();
        for aspect in now.aspects.iter() {
            if !self.aspects.contains(aspect) {
                changes.extend(unrecorded(aspect, now));
                continue;
            }
            let of = |all: &Self| {
                let mut values = all.values.clone();
                values.retain(|(of, _), _| *of == aspect);
                values
            };
            let (then, mut now) = (of(self), of(now));
            for ((_, name), was) in then {
                let now = now.remove(&(aspect, name.clone()));
                if now.as_ref() != Some(&was) {
                    changes.push(MetadataChange {
                        aspect,
                        name,
                        was: RecordedValue::Value(was),
                        now,
                    });
                }
            }
            let came = now.into_iter().map(|((_, name), now)| MetadataChange {
                aspect,
                name,
                was: RecordedValue::Absent,
                now: Some(now),
            });
            changes.extend(came);
        }
        changes
    }

    /// The form in which it is recorded, version 1; see `docs/catalog.md`.
    ///
    /// A value that could not be read has none: the caller records nothing then.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, self.aspects.0];
        for ((aspect, name), value) in &self.values {
            let (kind, value) = match value {
                MetadataValue::Whole(value) => (WHOLE, value.clone()),
                MetadataValue::Digest(digest, length) => {
                    (DIGEST, [&length.to_le_bytes()[..], digest].concat())
                }
                MetadataValue::Unread(_) => continue,
            };
            bytes.extend([*aspect as u8, kind]);
            for part in [name, &value] {
                bytes.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }

    /// Decodes that form; `None` if the bytes do not have it, or have a version
    /// that is not known.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[version, aspects], mut rest) = bytes.split_first_chunk::<2>()?;
        if version != VERSION || aspects >> MetadataField::ALL.len() != 0 {
            return None;
        }
        let mut values = BTreeMap::new();
        while !rest.is_empty() {
            let (&[aspect, kind], after) = rest.split_first_chunk::<2>()?;
            let (name, after) = part(after)?;
            let (value, after) = part(after)?;
            let value = match kind {
                WHOLE => MetadataValue::Whole(value.to_vec()),
                DIGEST => {
                    let (length, digest) = value.split_first_chunk::<8>()?;
                    MetadataValue::Digest(digest.try_into().ok()?, u64::from_le_bytes(*length))
                }
                _ => return None,
            };
            let aspect = *MetadataField::ALL.get(usize::from(aspect))?;
            let key = (aspect, name.to_vec());
            // One form for one content: in order, and nothing twice.
            if values.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return None;
            }
            values.insert(key, value);
            rest = after;
        }
        Some(Self { aspects: MetadataFields(aspects), values })
    }
}

/// An aspect of which nothing is recorded, with what of it cannot be read.
fn unrecorded(aspect: MetadataField, now: &Metadata) -> Vec<MetadataChange> {
    let unread = now
        .values
        .iter()
        .filter(|((of, _), value)| *of == aspect && matches!(value, MetadataValue::Unread(_)));
    let mut changes: Vec<_> = unread
        .map(|((aspect, name), value)| MetadataChange {
            aspect: *aspect,
            name: name.clone(),
            was: RecordedValue::Unrecorded,
            now: Some(value.clone()),
        })
        .collect();
    if changes.is_empty() {
        changes.push(MetadataChange::whole(aspect, RecordedValue::Unrecorded));
    }
    changes
}

const VERSION: u8 = 1;
const WHOLE: u8 = 0;
const DIGEST: u8 = 1;

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use MetadataField::{Acl, Mode, Xattr};

    fn metadata(
        aspects: &[MetadataField],
        values: &[(MetadataField, &[u8], MetadataValue)],
    ) -> Metadata {
        let values = values.iter().map(|(aspect, name, value)| {
            let value = value.clone();
            ((*aspect, name.to_vec()), value)
        });
        Metadata { aspects: MetadataFields::of(aspects), values: values.collect() }
    }

    fn text(text: &str) -> MetadataValue {
        MetadataValue::of(text.as_bytes().to_vec())
    }

    fn sample() -> Metadata {
        let long = MetadataValue::of(vec![1; WHOLE_MAX + 1]);
        let values: [(_, &[u8], _); 3] =
            [(Mode, b"", text("0644")), (Xattr, b"user.\xff", text("")), (Xattr, b"user.z", long)];
        metadata(&[Mode, Xattr], &values)
    }

    #[test]
    fn what_was_recorded_is_read_again_and_nothing_else() {
        for all in [sample(), Metadata::default(), metadata(&[Acl], &[])] {
            assert_eq!(Metadata::decode(&all.encode()), Some(all));
        }
        let bytes = sample().encode();
        for length in 0..bytes.len() {
            let cut = Metadata::decode(&bytes[..length]);
            assert!(cut.is_none_or(|cut| cut != sample()), "{length}");
        }
        for (place, byte) in [(0, 2), (1, 0x10), (2, 9), (3, 7)] {
            let mut other = bytes.clone();
            other[place] = byte;
            assert_eq!(Metadata::decode(&other), None, "{place}");
        }
        let twice = [&bytes[..], &bytes[2..]].concat();
        assert_eq!(Metadata::decode(&twice), None);
    }

    #[test]
    fn every_difference_is_reported_once() {
        let then = sample();
        assert_eq!(then.changes(&then), []);
        let now = metadata(
            &[Mode, Xattr, Acl],
            &[
                (Mode, b"", text("0600")),
                (Xattr, b"user.a", text("new")),
                (Xattr, b"user.z", MetadataValue::Unread("why".to_owned())),
            ],
        );
        let reported: Vec<_> = then.changes(&now).iter().map(MetadataChange::what).collect();
        assert_eq!(reported, ["mode", "acl", "xattr user.z", "xattr user.\\xff", "xattr user.a"]);
        assert!(!now.is_whole() && then.is_whole());
        // An aspect that is no longer requested is not a difference.
        assert_eq!(then.changes(&metadata(&[], &[])), []);
    }
}
