//! What was done about one finding, or would be, and what could not.

use super::{ByteRange, EntryKind, RelPath, Tallies, Verdict};

/// Where bytes came from that the record proves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The damaged file itself.
    Itself,
    /// A replica, by the path given for it, as raw bytes.
    Replica(Box<[u8]>),
    /// What could be rebuilt of it from recovery data.
    Parity,
    /// The record says all there is to say: an empty file, a link, a folder.
    Record,
}

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// It is as recorded again.
    Healed,
    /// It could be: this is a dry run.
    Healable,
    /// It is as it was.
    Unhealed,
}

impl Cure {
    /// The word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healed => "healed",
            Self::Healable => "healable",
            Self::Unhealed => "unhealed",
        }
    }
}

/// What was done about one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The path below the root.
    pub path: RelPath,
    /// What it is, as recorded.
    pub kind: EntryKind,
    /// Its size as recorded, in bytes.
    pub size: u64,
    /// What was found.
    pub verdict: Verdict,
    /// What became of it.
    pub cure: Cure,
    /// Ranges that were bad, each with where its bytes come from.
    pub taken: Vec<(Origin, Vec<ByteRange>)>,
    /// Ranges that no source has.
    pub lacking: Vec<ByteRange>,
    /// Where below the root what was there before is kept.
    pub kept: Option<RelPath>,
    /// Why it is unhealed, or what else to know.
    pub reason: Option<String>,
}

impl Remedy {
    /// Bytes that came from somewhere else than the file itself.
    pub fn bytes(&self) -> u64 {
        let foreign = self.taken.iter().filter(|(origin, _)| *origin != Origin::Itself);
        foreign.flat_map(|(_, ranges)| ranges).map(|range| range.end - range.start).sum()
    }
}

/// What a heal did as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Healing {
    /// Whether it was only to say what it would do.
    pub is_dry_run: bool,
    /// What was healed, by what was found.
    pub healed: Tallies,
    /// What a run that is not dry would heal.
    pub healable: Tallies,
    /// What was looked at and could not be healed.
    pub unhealed: Tallies,
    /// Files of which what was there before is kept.
    pub kept: u64,
    /// Whether a file is still in the middle of being healed in place.
    pub is_unfinished: bool,
    /// Bytes put back, or that would be.
    pub bytes: u64,
}

impl Healing {
    /// Counts what was done about a finding.
    pub fn add(&mut self, remedy: &Remedy) {
        let tallies = match remedy.cure {
            Cure::Healed => &mut self.healed,
            Cure::Healable => &mut self.healable,
            Cure::Unhealed => &mut self.unhealed,
        };
        tallies.add(remedy.kind, remedy.verdict);
        self.kept += u64::from(remedy.kept.is_some());
        if remedy.cure != Cure::Unhealed {
            self.bytes += remedy.bytes();
        }
    }
}
