//! Values of the summary lines of the JSON report that can be summed over roots: their
//! part of the wire format, apart from the words it is made from.

use serde::{Serialize, Serializer};

use super::signed_line::SignedLine;
use fsure_integrity::model::{
    BytesByReadMode, Offline, Outcome, ParityUpdate, ProtectOutcome, ScrubSummary, SidecarCounts,
    StopReason, Verdict, VerdictCounts,
};

/// Counts that can be summed over roots. `verdicts` are those of files.
#[derive(Default, Serialize)]
pub(super) struct SummaryTotals {
    verdicts: CountsByVerdict,
    links: CountsByVerdict,
    folders: CountsByVerdict,
    respelled: u64,
    meta_changed: u64,
    meta_unread: u64,
    meta_bad: u64,
    carriers: CarriersLine,
    special: u64,
    files: u64,
    with_record: u64,
    hashed: u64,
    suspicious: u64,
    differing: u64,
    changed_size: u64,
    changed_content_and_date: u64,
    ignored_folders: u64,
    ignored_files: u64,
    recorded_left_out: u64,
    absent_roots: u64,
    unusable_entries: u64,
    forgotten: u64,
    damaged_blocks: u64,
    known_damage: u64,
    accepted: u64,
    healed: u64,
    healable: u64,
    unhealed: u64,
    unkept: u64,
    bytes_healed: u64,
    parity: Option<ParityLine>,
    bytes_judged: u64,
    bytes_read: u64,
    bytes_by_way: Ways,
    seconds: f64,
    offline: Option<OfflineLine>,
    stopped: Option<StopLine>,
    record_untrusted: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scrub: Option<ScrubLine>,
    signed: Option<SignedLine>,
    #[serde(skip_serializing_if = "is_zero")]
    unknown_paths: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl SummaryTotals {
    pub(super) fn of(outcome: &Outcome) -> Self {
        let healing = outcome.healing.unwrap_or_default();
        Self {
            verdicts: CountsByVerdict::of(&outcome.files),
            links: CountsByVerdict::of(&outcome.links),
            folders: CountsByVerdict::of(&outcome.folders),
            respelled: outcome.name_mismatches,
            meta_changed: outcome.meta_changed,
            meta_unread: outcome.meta_unread,
            meta_bad: outcome.meta_bad,
            carriers: CarriersLine::of(outcome.carriers),
            special: outcome.special,
            files: outcome.files.total(),
            with_record: outcome.with_record,
            hashed: outcome.hashed,
            suspicious: outcome.files.count(Verdict::is_suspicious),
            differing: outcome.differing(),
            changed_size: outcome.changed_size,
            changed_content_and_date: outcome.changed_content_and_date,
            ignored_folders: outcome.ignored_folders,
            ignored_files: outcome.ignored_files,
            recorded_left_out: outcome.recorded_left_out.total(),
            absent_roots: outcome.absent_roots.len() as u64,
            unusable_entries: outcome.unusable_entries,
            forgotten: outcome.forgotten,
            damaged_blocks: outcome.damaged_blocks,
            known_damage: outcome.known_damage.total(),
            accepted: outcome.accepted.total(),
            healed: healing.healed.total(),
            healable: healing.healable.total(),
            unhealed: healing.unhealed.total(),
            unkept: healing.unkept,
            bytes_healed: healing.bytes,
            parity: outcome.parity.as_ref().map(ParityLine::of),
            bytes_judged: outcome.bytes_judged,
            bytes_read: outcome.bytes.total(),
            bytes_by_way: Ways::of(outcome.bytes),
            seconds: outcome.seconds,
            offline: outcome.offline.as_ref().map(OfflineLine::of),
            stopped: outcome.stopped.as_ref().map(StopLine::of),
            record_untrusted: outcome.record_untrusted.clone(),
            scrub: outcome.scrub.as_ref().map(ScrubLine::of),
            signed: outcome.signed.as_ref().map(SignedLine::of),
            unknown_paths: outcome.unknown_paths,
            dry_run: outcome.is_dry_run,
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.verdicts.add(&other.verdicts);
        self.links.add(&other.links);
        self.folders.add(&other.folders);
        self.respelled += other.respelled;
        self.meta_changed += other.meta_changed;
        self.meta_unread += other.meta_unread;
        self.meta_bad += other.meta_bad;
        self.carriers.add(&other.carriers);
        self.special += other.special;
        self.files += other.files;
        self.with_record += other.with_record;
        self.hashed += other.hashed;
        self.suspicious += other.suspicious;
        self.differing += other.differing;
        self.changed_size += other.changed_size;
        self.changed_content_and_date += other.changed_content_and_date;
        self.ignored_folders += other.ignored_folders;
        self.ignored_files += other.ignored_files;
        self.recorded_left_out += other.recorded_left_out;
        self.absent_roots += other.absent_roots;
        self.unusable_entries += other.unusable_entries;
        self.forgotten += other.forgotten;
        self.damaged_blocks += other.damaged_blocks;
        self.known_damage += other.known_damage;
        self.accepted += other.accepted;
        self.healed += other.healed;
        self.healable += other.healable;
        self.unhealed += other.unhealed;
        self.unkept += other.unkept;
        self.bytes_healed += other.bytes_healed;
        self.parity = self.parity.take().or(other.parity);
        self.bytes_judged = self.bytes_judged.saturating_add(other.bytes_judged);
        self.bytes_read += other.bytes_read;
        self.bytes_by_way.add(&other.bytes_by_way);
        self.seconds += other.seconds;
        self.offline = self.offline.take().or(other.offline);
        self.stopped = self.stopped.take().or(other.stopped);
        self.record_untrusted = self.record_untrusted.take().or(other.record_untrusted);
        if let Some(other) = other.scrub {
            self.scrub.get_or_insert_default().add(&other);
        }
        self.signed = self.signed.take().or(other.signed);
        self.unknown_paths += other.unknown_paths;
        self.dry_run |= other.dry_run;
    }
}

/// A number for each verdict, under its name; zeros too, so that a reader
/// needs no defaults.
#[derive(Default)]
struct CountsByVerdict([u64; Verdict::ALL.len()]);

impl CountsByVerdict {
    fn of(tally: &VerdictCounts) -> Self {
        Self(Verdict::ALL.map(|verdict| tally.of(verdict)))
    }

    fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(more);
        }
    }
}

impl Serialize for CountsByVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Verdict::ALL.iter().map(|verdict| verdict.name()).zip(self.0))
    }
}

#[derive(Default, Serialize)]
struct Ways {
    direct: u64,
    remote: u64,
    dontcache: u64,
    dropped: u64,
    cached: u64,
}

impl Ways {
    fn of(bytes: BytesByReadMode) -> Self {
        let BytesByReadMode { direct, remote, dontcache, dropped, cached } = bytes;
        Self { direct, remote, dontcache, dropped, cached }
    }

    fn add(&mut self, other: &Self) {
        self.direct += other.direct;
        self.remote += other.remote;
        self.dontcache += other.dontcache;
        self.dropped += other.dropped;
        self.cached += other.cached;
    }
}

#[derive(Default, Serialize)]
struct CarriersLine {
    used: u64,
    written: u64,
    removed: u64,
    behind: u64,
    conflicts: u64,
    damaged: u64,
    refused: u64,
}

impl CarriersLine {
    fn of(carriers: SidecarCounts) -> Self {
        let SidecarCounts { used, written, removed, behind, conflicts, damaged, refused } =
            carriers;
        Self { used, written, removed, behind, conflicts, damaged, refused }
    }

    fn add(&mut self, other: &Self) {
        self.used += other.used;
        self.written += other.written;
        self.removed += other.removed;
        self.behind += other.behind;
        self.conflicts += other.conflicts;
        self.damaged += other.damaged;
        self.refused += other.refused;
    }
}

#[derive(Default, Serialize)]
struct ScrubLine {
    due_files: u64,
    due_bytes: u64,
    left_files: u64,
    left_bytes: u64,
    again_files: u64,
    by_age_files: u64,
    partly_files: u64,
    partly_bytes: u64,
    too_large_files: u64,
    undecided_files: u64,
}

impl ScrubLine {
    fn of(scrub: &ScrubSummary) -> Self {
        Self {
            due_files: scrub.due_files,
            due_bytes: scrub.due_bytes,
            left_files: scrub.left_files(),
            left_bytes: scrub.left_bytes(),
            again_files: scrub.again_files,
            by_age_files: scrub.by_age_files,
            partly_files: scrub.partly_files,
            partly_bytes: scrub.partly_bytes,
            too_large_files: scrub.too_large_files,
            undecided_files: scrub.undecided_files,
        }
    }

    fn add(&mut self, other: &Self) {
        self.due_files += other.due_files;
        self.due_bytes += other.due_bytes;
        self.left_files += other.left_files;
        self.left_bytes += other.left_bytes;
        self.again_files += other.again_files;
        self.by_age_files += other.by_age_files;
        self.partly_files += other.partly_files;
        self.partly_bytes += other.partly_bytes;
        self.too_large_files += other.too_large_files;
        self.undecided_files += other.undecided_files;
    }
}

#[derive(Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
enum OfflineLine {
    OtherFileSystem { recorded: String, found: String },
    Empty,
    MostlyMissing { missing: u64, recorded: u64 },
}

impl OfflineLine {
    fn of(offline: &Offline) -> Self {
        match offline {
            Offline::OtherFileSystem { recorded, found, .. } => {
                Self::OtherFileSystem { recorded: recorded.clone(), found: found.clone() }
            }
            Offline::Empty => Self::Empty,
            Offline::MostlyMissing { missing, recorded } => {
                Self::MostlyMissing { missing: *missing, recorded: *recorded }
            }
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
enum StopLine {
    Interrupted { exit_code: u8 },
    RecordFailed { message: String },
    StorageSilent { seconds: f64 },
}

impl StopLine {
    fn of(stop: &StopReason) -> Self {
        match stop {
            StopReason::Interrupted(code) => Self::Interrupted { exit_code: code.number() },
            StopReason::RecordFailed(message) => Self::RecordFailed { message: message.clone() },
            StopReason::StorageSilent(timeout) => {
                Self::StorageSilent { seconds: timeout.as_secs_f64() }
            }
        }
    }
}

/// Groups and bytes; or why there is nothing to count.
#[derive(Default, Serialize)]
struct ParityLine {
    kept: u64,
    made: u64,
    deleted: u64,
    damaged: u64,
    left_out: u64,
    bytes_read: u64,
    bytes_written: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<String>,
}

impl ParityLine {
    fn of(parity: &ParityUpdate) -> Self {
        let done = match parity {
            ParityUpdate::Kept(done) => *done,
            ParityUpdate::Stale(why) => {
                return Self { stale: Some(why.clone()), ..Self::default() };
            }
        };
        let ProtectOutcome {
            kept,
            made,
            deleted,
            damaged,
            left_out,
            bytes_read,
            bytes_written,
            ..
        } = done;
        Self { kept, made, deleted, damaged, left_out, bytes_read, bytes_written, stale: None }
    }
}
