//! What is told on the control socket.

use serde::Serialize;

/// What is said of a request, in one line.
#[derive(Debug, Default, Serialize)]
pub(super) struct Told {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The answer to what was asked.
    #[serde(flatten)]
    pub(super) of: Option<Of>,
}

/// The answers that say more than that it was done.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Of {
    /// Where a drive stands.
    Blocks {
        drive: String,
        size: u64,
        writes: u64,
        bytes: u64,
        trims: u64,
        flushes: u64,
        errors: u64,
        volatile_bytes: u64,
    },
    /// Where a drive of files stands.
    Files {
        drive: String,
        mode: &'static str,
        writes: u64,
        bytes: u64,
        names: u64,
        syncs: u64,
        errors: u64,
        volatile_bytes: u64,
        volatile_names: u64,
        marked: u64,
    },
    /// What is owed at each flush.
    Flushes { flushes: u64, marked: Vec<u64> },
    /// What is owed at one.
    Boundary { marked: u64 },
    /// What was read, in base64.
    Data { data: String },
}

impl Told {
    /// It was done.
    pub(super) fn done(of: Option<Of>) -> Self {
        Self { ok: true, error: None, of }
    }

    /// It was not.
    pub(super) fn refused(why: impl Into<String>) -> Self {
        Self { ok: false, error: Some(why.into()), of: None }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and text")
    }
}
