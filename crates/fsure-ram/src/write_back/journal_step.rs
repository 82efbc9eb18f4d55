//! Steps by which a generation changes the disk side, as they are written into the
//! journal. `docs/ram.md` defines the format.

use fsure_os::file_attributes::Ownership;
use fsure_os::tree_copy::{Attributes, NodeKind};
use serde::{Deserialize, Serialize};

use super::content_digest::Digest;
use fsure_core::RelPath;
use fsure_core::digest::hex;

/// Metadata of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) ownership: Ownership,
    pub(super) mtime_ns: i64,
    pub(super) attributes: Attributes,
}

/// One change of the disk side. Each can be done again when it has been done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JournalStep {
    /// Removes a name; a folder is empty by then.
    Remove { path: RelPath, is_folder: bool, to_trash: bool },
    /// Gives what is staged its name.
    Put { path: RelPath, stage: String, size: u64, digest: Digest },
    /// Writes what is staged behind the first `from` bytes of a file, which ends with
    /// it.
    Append { path: RelPath, stage: String, from: u64, size: u64, digest: Digest },
    /// Makes what is not a regular file; of a folder, makes sure that it is there.
    Make { path: RelPath, kind: NodeKind, target: Vec<u8>, meta: Meta },
    /// Sets the metadata of a name.
    Meta { path: RelPath, kind: NodeKind, meta: Meta },
}

impl JournalStep {
    /// Its line in the journal, without the end of the line.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(&JournalLine::from(self)).expect("plain data")
    }

    /// The step of a line; `None` where it is none.
    pub(super) fn parse(line: &str) -> Option<Self> {
        serde_json::from_str::<JournalLine>(line).ok()?.step()
    }
}

/// Bytes that are text nearly always.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Raw { hex: String },
}

impl Bytes {
    fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Raw { hex: hex(bytes) },
        }
    }

    fn get(self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.into_bytes()),
            Self::Raw { hex } => unhex(&hex),
        }
    }

    fn path(self) -> Option<RelPath> {
        let bytes = self.get()?;
        let is_inside = bytes.is_empty()
            || bytes.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."));
        is_inside.then(|| RelPath::from_bytes(bytes))
    }
}

pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

#[derive(Serialize, Deserialize)]
struct MetaLine {
    mode: u32,
    user: u32,
    group: u32,
    mtime_ns: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<(Bytes, Bytes)>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum JournalLine {
    Remove { path: Bytes, folder: bool, trash: bool },
    Put { path: Bytes, stage: String, size: u64, digest: String },
    Append { path: Bytes, stage: String, from: u64, size: u64, digest: String },
    Make { path: Bytes, kind: String, number: Option<u64>, target: Bytes, meta: MetaLine },
    Meta { path: Bytes, kind: String, number: Option<u64>, meta: MetaLine },
}

impl From<&JournalStep> for JournalLine {
    fn from(step: &JournalStep) -> Self {
        let path_of = |path: &RelPath| Bytes::of(path.as_bytes());
        match step {
            JournalStep::Remove { path, is_folder, to_trash } => {
                Self::Remove { path: path_of(path), folder: *is_folder, trash: *to_trash }
            }
            JournalStep::Put { path, stage, size, digest } => Self::Put {
                path: path_of(path),
                stage: stage.clone(),
                size: *size,
                digest: hex(digest),
            },
            JournalStep::Append { path, stage, from, size, digest } => Self::Append {
                path: path_of(path),
                stage: stage.clone(),
                from: *from,
                size: *size,
                digest: hex(digest),
            },
            JournalStep::Make { path, kind, target, meta } => {
                let (kind, number) = kind_word(*kind);
                let (path, target) = (path_of(path), Bytes::of(target));
                Self::Make { path, kind, number, target, meta: meta.into() }
            }
            JournalStep::Meta { path, kind, meta } => {
                let (kind, number) = kind_word(*kind);
                Self::Meta { path: path_of(path), kind, number, meta: meta.into() }
            }
        }
    }
}

impl JournalLine {
    fn step(self) -> Option<JournalStep> {
        Some(match self {
            Self::Remove { path, folder, trash } => {
                JournalStep::Remove { path: path.path()?, is_folder: folder, to_trash: trash }
            }
            Self::Put { path, stage, size, digest } => {
                let digest = unhex(&digest)?.try_into().ok()?;
                JournalStep::Put { path: path.path()?, stage, size, digest }
            }
            Self::Append { path, stage, from, size, digest } => {
                let digest = unhex(&digest)?.try_into().ok()?;
                JournalStep::Append { path: path.path()?, stage, from, size, digest }
            }
            Self::Make { path, kind, number, target, meta } => {
                let (kind, target) = (kind_of(&kind, number)?, target.get()?);
                JournalStep::Make { path: path.path()?, kind, target, meta: meta.meta()? }
            }
            Self::Meta { path, kind, number, meta } => {
                let kind = kind_of(&kind, number)?;
                JournalStep::Meta { path: path.path()?, kind, meta: meta.meta()? }
            }
        })
    }
}

impl From<&Meta> for MetaLine {
    fn from(meta: &Meta) -> Self {
        let pair = |(name, value): &(Vec<u8>, Vec<u8>)| (Bytes::of(name), Bytes::of(value));
        Self {
            mode: meta.ownership.mode,
            user: meta.ownership.user,
            group: meta.ownership.group,
            mtime_ns: meta.mtime_ns,
            attributes: meta.attributes.iter().map(pair).collect(),
        }
    }
}

impl MetaLine {
    fn meta(self) -> Option<Meta> {
        let pair = |(name, value): (Bytes, Bytes)| Some((name.get()?, value.get()?));
        Some(Meta {
            ownership: Ownership { mode: self.mode, user: self.user, group: self.group },
            mtime_ns: self.mtime_ns,
            attributes: self.attributes.into_iter().map(pair).collect::<Option<_>>()?,
        })
    }
}

fn kind_word(kind: NodeKind) -> (String, Option<u64>) {
    let (word, number) = match kind {
        NodeKind::File => ("file", None),
        NodeKind::Folder => ("folder", None),
        NodeKind::Link => ("link", None),
        NodeKind::Fifo => ("fifo", None),
        NodeKind::Socket => ("socket", None),
        NodeKind::Device { block: true, number } => ("block", Some(number)),
        NodeKind::Device { block: false, number } => ("character", Some(number)),
    };
    (word.to_owned(), number)
}

fn kind_of(word: &str, number: Option<u64>) -> Option<NodeKind> {
    Some(match word {
        "file" => NodeKind::File,
        "folder" => NodeKind::Folder,
        "link" => NodeKind::Link,
        "fifo" => NodeKind::Fifo,
        "socket" => NodeKind::Socket,
        "block" => NodeKind::Device { block: true, number: number? },
        "character" => NodeKind::Device { block: false, number: number? },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &[u8]) -> RelPath {
        RelPath::from_bytes(text.to_vec())
    }

    #[test]
    fn every_step_is_read_as_it_was_written() {
        let meta = Meta {
            ownership: Ownership { mode: 0o4751, user: 7, group: 8 },
            mtime_ns: -5,
            attributes: vec![(b"user.a".to_vec(), b"\xff\0".to_vec())],
        };
        let odd = path(b"a\n\"/\xff\xfe");
        let device = NodeKind::Device { block: true, number: 1 << 40 };
        let steps = [
            JournalStep::Remove { path: odd.clone(), is_folder: true, to_trash: true },
            JournalStep::Put {
                path: odd.clone(),
                stage: "3-1".into(),
                size: 1 << 60,
                digest: [7; 32],
            },
            JournalStep::Append {
                path: path(b"log"),
                stage: "3-2".into(),
                from: 7,
                size: 1 << 40,
                digest: [8; 32],
            },
            JournalStep::Make {
                path: path(b"l"),
                kind: NodeKind::Link,
                target: b"\xff".to_vec(),
                meta,
            },
            JournalStep::Meta {
                path: RelPath::root(),
                kind: device,
                meta: Meta {
                    ownership: Ownership { mode: 0, user: 0, group: 0 },
                    mtime_ns: i64::MAX,
                    attributes: Vec::new(),
                },
            },
        ];
        for step in steps {
            let line = step.line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(JournalStep::parse(&line), Some(step));
        }
    }

    #[test]
    fn no_step_leads_out_of_the_folder() {
        for path in ["/etc/x", "a/../../x", "..", "a//b", "a/."] {
            let line = format!(r#"{{"do":"remove","path":"{path}","folder":false,"trash":false}}"#);
            assert_eq!(JournalStep::parse(&line), None, "{path}");
        }
        assert_eq!(JournalStep::parse(r#"{"do":"unknown"}"#), None);
    }
}
