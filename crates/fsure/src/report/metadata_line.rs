//! A difference in the metadata, as the JSON report has it.

use serde::Serialize;

use fsure_core::json_path_and_bytes;
use fsure_integrity::model::{MetadataChange, MetadataValue, RecordedValue};

#[derive(Serialize)]
pub(super) struct MetaLine {
    aspect: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_bytes: Option<String>,
    was: Option<ValueLine>,
    now: Option<ValueLine>,
}

impl MetaLine {
    pub(super) fn of(change: &MetadataChange) -> Self {
        let name = (!change.name.is_empty()).then(|| json_path_and_bytes(&change.name));
        let (name, name_bytes) = name.map_or((None, None), |(name, bytes)| (Some(name), bytes));
        Self {
            aspect: change.aspect.name(),
            name,
            name_bytes,
            was: match &change.was {
                RecordedValue::Absent => None,
                RecordedValue::Value(value) => Some(ValueLine::of(value)),
                RecordedValue::Unrecorded => Some(ValueLine::Unrecorded),
                RecordedValue::Bad => Some(ValueLine::RecordBad),
            },
            now: change.now.as_ref().map(ValueLine::of),
        }
    }
}

/// An object with one field that says what it is.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum ValueLine {
    Text(String),
    Base64(String),
    Blake3 { digest: String, size: u64 },
    Unreadable(String),
    Unrecorded,
    RecordBad,
}

impl ValueLine {
    fn of(value: &MetadataValue) -> Self {
        match value {
            MetadataValue::Whole(value) => match json_path_and_bytes(value) {
                (text, None) => Self::Text(text),
                (_, Some(bytes)) => Self::Base64(bytes),
            },
            MetadataValue::Digest(digest, size) => Self::Blake3 {
                digest: blake3::Hash::from(*digest).to_hex().to_string(),
                size: *size,
            },
            MetadataValue::Unread(why) => Self::Unreadable(why.clone()),
        }
    }
}
