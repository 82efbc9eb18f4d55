//! Responses on the control socket.

use serde::Serialize;

/// Response to a request, in one line.
#[derive(Debug, Default, Serialize)]
pub(super) struct ControlResponse {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Data that was requested, if any.
    #[serde(flatten)]
    pub(super) of: Option<ResponseData>,
}

/// Responses with more data than a success.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ResponseData {
    /// Status of a drive of blocks.
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
    /// Status of a drive of files.
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
    /// Highest number that is owed at each flush.
    Flushes { flushes: u64, marked: Vec<u64> },
    /// Highest number that is owed at one flush.
    Boundary { marked: u64 },
    /// Data that was read, in base64.
    Data { data: String },
}

impl ControlResponse {
    /// Returns the response to a request that succeeded.
    pub(super) fn done(of: Option<ResponseData>) -> Self {
        Self { ok: true, error: None, of }
    }

    /// Returns the response to a request that failed.
    pub(super) fn refused(why: impl Into<String>) -> Self {
        Self { ok: false, error: Some(why.into()), of: None }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and text")
    }
}
