//! The results of a whole run: counts, bytes, and the findings that the report must
//! show.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{
    Basis, CountsByKind, EntryKind, Finding, HealSummary, KnownDamage, MetadataChange,
    ParityUpdate, RecordedValue, ScrubSummary, SidecarCounts, SignatureInfo, Verdict,
    VerdictCounts,
};
use fsure_core::{AlgorithmSet, ExitCode, RelPath, count, safe};

/// Recorded files that a run left out, and so has no verdict on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExcludedRecords {
    /// By `--exclude`: the user has just requested it.
    pub by_command_line: u64,
    /// By a pattern in a file.
    pub by_pattern: u64,
    /// Behind the border of another file system or another root: something
    /// is possibly mounted over them.
    pub by_border: u64,
}

impl ExcludedRecords {
    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.by_command_line + self.by_pattern + self.by_border
    }
}

/// Bytes by the way they were really read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesByReadMode {
    /// Past the page cache, `O_DIRECT`.
    pub direct: u64,
    /// Past the page cache of this machine, from a server or a program that
    /// possibly has a cache of its own.
    pub remote: u64,
    /// Through pages dropped at once, `RWF_DONTCACHE`.
    pub dontcache: u64,
    /// Through the page cache and dropped from it afterwards.
    pub dropped: u64,
    /// Through the page cache: possibly not from the medium at all.
    pub cached: u64,
}

impl BytesByReadMode {
    /// All bytes read.
    pub fn total(&self) -> u64 {
        self.direct + self.remote + self.dontcache + self.dropped + self.cached
    }
}

/// The reason why a root cannot be judged at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offline {
    /// It is not the file system that was recorded.
    OtherFileSystem {
        /// The recorded file system, as text for a person.
        recorded: String,
        /// The current file system, as text for a person.
        found: String,
        /// True if nothing is there.
        is_empty: bool,
    },
    /// It is empty while the record is not.
    Empty,
    /// More than half of the recorded files are gone.
    MostlyMissing {
        /// Files gone.
        missing: u64,
        /// Files recorded.
        recorded: u64,
    },
}

impl Offline {
    /// The options with which the run goes on.
    pub fn option(&self) -> &'static str {
        match self {
            Self::OtherFileSystem { is_empty: true, .. } => "--allow-other-disk --allow-empty",
            Self::OtherFileSystem { .. } => Allowed::OTHER_DISK_OPTION,
            Self::Empty => Allowed::EMPTY_OPTION,
            Self::MostlyMissing { .. } => Allowed::MISSING_OPTION,
        }
    }
}

impl fmt::Display for Offline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherFileSystem { recorded, found, is_empty: true } => write!(
                f,
                "nothing is here, and it is another folder than the recorded one (recorded: {}; \
                 here: {})",
                safe(recorded),
                safe(found)
            ),
            Self::OtherFileSystem { recorded, found, .. } if recorded == found => write!(
                f,
                "this is not the folder that was recorded, though it lies on the same kind of file \
                 system ({}): another disk is mounted here, or it is a copy",
                safe(found)
            ),
            Self::OtherFileSystem { recorded, found, .. } => write!(
                f,
                "this is another file system than the recorded one (recorded: {}; here: {})",
                safe(recorded),
                safe(found)
            ),
            Self::Empty => f.write_str("nothing is here, while the record is not empty"),
            Self::MostlyMissing { missing, recorded } => {
                write!(f, "{} of {} recorded files are gone", count(*missing), count(*recorded))
            }
        }
    }
}

/// States of a root in which a run goes on, although it may not be the root that was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Nothing is there.
    pub empty: bool,
    /// It is another file system than the recorded one.
    pub other_disk: bool,
    /// Most of what was recorded is gone.
    pub missing: bool,
}

impl Allowed {
    /// All of them.
    pub const ALL: Self = Self { empty: true, other_disk: true, missing: true };

    const EMPTY_OPTION: &str = "--allow-empty";
    const OTHER_DISK_OPTION: &str = "--allow-other-disk";
    const MISSING_OPTION: &str = "--allow-missing";

    /// The options with which a command allows them.
    pub fn options(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.empty, Self::EMPTY_OPTION),
            (self.other_disk, Self::OTHER_DISK_OPTION),
            (self.missing, Self::MISSING_OPTION),
        ];
        all.into_iter().filter(|(is_allowed, _)| *is_allowed).map(|(_, option)| option)
    }
}

/// The reason why a run ended before its work was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It received a signal to stop; the value is the signal's exit code.
    Interrupted(ExitCode),
    /// Its record could not be written; the message states the reason.
    RecordFailed(String),
    /// The storage stalled repeatedly, each time for this duration.
    StorageSilent(Duration),
}

/// The first path of each kind of trouble that `update --accept` ends, for the
/// command that a report advises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToAccept {
    /// By verdict.
    pub verdicts: BTreeMap<Verdict, RelPath>,
    /// Damage that an earlier run found.
    pub known_damage: Option<RelPath>,
    /// Recorded metadata that fails its seal.
    pub metadata: Option<RelPath>,
    /// Recorded and left out by a pattern.
    pub left_out: Option<RelPath>,
}

impl ToAccept {
    /// Takes the path of a finding that is the first of its kind.
    pub fn add(&mut self, finding: &Finding) {
        let (verdict, path) = (finding.verdict, &finding.path);
        let ends_by_accepting =
            verdict.is_suspicious() || matches!(verdict, Verdict::RecordBad | Verdict::TypeChanged);
        if ends_by_accepting {
            self.verdicts.entry(verdict).or_insert_with(|| path.clone());
        }
        let first = |is: bool, first: &mut Option<RelPath>| {
            if is && first.is_none() {
                *first = Some(path.clone());
            }
        };
        first(finding.known_damage.is_some() && !verdict.is_damage(), &mut self.known_damage);
        first(
            finding.meta.iter().any(|change| change.was == RecordedValue::Bad),
            &mut self.metadata,
        );
    }

    /// The first path with a verdict that satisfies a condition.
    pub fn verdict(&self, condition: impl Fn(Verdict) -> bool) -> Option<&RelPath> {
        self.verdicts.iter().find(|(verdict, _)| condition(**verdict)).map(|(_, path)| path)
    }
}

/// Maximum number of suspicious and unread findings that an outcome keeps for the
/// end of the report. With more, a run on a dying disk would fill the memory; all
/// of them were reported to the monitor when they were found.
pub const GRAVE_FINDINGS_MAX: usize = 10_000;

/// The results of a run over one root.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Name of the command.
    pub command: &'static str,
    /// Files by verdict. A folder that could not be listed counts here too,
    /// since it stands for the files in it that the run could not find.
    pub files: VerdictCounts,
    /// Bytes of the files, by verdict.
    pub file_bytes: VerdictCounts,
    /// Links by verdict.
    pub links: VerdictCounts,
    /// Folders by verdict.
    pub folders: VerdictCounts,
    /// Files, links and folders found with a name mismatch: under
    /// their recorded name in another Unicode form or case.
    pub name_mismatches: u64,
    /// Files, links and folders whose metadata differs from the record; in an
    /// update, only those of them that it recorded.
    pub meta_changed: u64,
    /// Files, links and folders whose metadata could not be read in full.
    pub meta_unread: u64,
    /// Files, links and folders whose recorded metadata fails its seal.
    pub meta_bad: u64,
    /// Counts of the carriers of the record beside the data.
    pub carriers: SidecarCounts,
    /// FIFOs, sockets and devices seen; never opened.
    pub special: u64,
    /// Files that were in the record.
    pub with_record: u64,
    /// Files whose content was read and hashed.
    pub hashed: u64,
    /// Files whose size differs from the record.
    pub changed_size: u64,
    /// Files with other content and date but the recorded size.
    pub changed_content_and_date: u64,
    /// Folders left out by pattern or as other file systems.
    pub ignored_folders: u64,
    /// Files left out by pattern.
    pub ignored_files: u64,
    /// Files and folders left out by the command line, which no later run does.
    pub left_out_once: u64,
    /// Folders that are other file systems, and were left out and are not recorded.
    pub other_file_systems: Vec<RelPath>,
    /// True if the record cannot be written, by this user or on its mount.
    pub is_record_read_only: bool,
    /// Files in the record that were left out.
    pub recorded_left_out: ExcludedRecords,
    /// Folders that had a record of their own and are not there any more.
    pub absent_roots: Vec<RelPath>,
    /// Paths that the run was for and that neither exist nor are recorded.
    pub unknown_paths: u64,
    /// True if the run began the record.
    pub is_first: bool,
    /// Tombstones that were dropped.
    pub forgotten: u64,
    /// Blocks that differ from their recorded value.
    pub damaged_blocks: u64,
    /// Files known to be damaged, by the verdict of the run that last read them,
    /// of which this run says something else than that they are as recorded.
    pub known_damage: VerdictCounts,
    /// Edits of such files, by their verdicts. `update` records none of them unless the user
    /// requests it.
    pub unsettled_edits: VerdictCounts,
    /// Files of another date whose content was not read, in a run that reads
    /// none.
    pub redated_unread: u64,
    /// Findings recorded against the rules of `update` because the user accepted
    /// them: counted above too, but no longer trouble.
    pub accepted: CountsByKind,
    /// Digests that were recorded of unchanged files in addition.
    pub added_digests: AddedDigests,
    /// Findings that `update --accept` would end.
    pub to_accept: ToAccept,
    /// Result of a heal; `None` for any other run. What was healed is counted
    /// above too, but is no longer trouble.
    pub healing: Option<HealSummary>,
    /// Copies that a heal was given, for the command that its report advises.
    pub replicas: Vec<PathBuf>,
    /// State of the recovery data, if there are any and the run was to keep
    /// them.
    pub parity: Option<ParityUpdate>,
    /// Bytes of file content covered, holes included.
    pub bytes_judged: u64,
    /// Bytes read, by the way they were read.
    pub bytes: BytesByReadMode,
    /// Wall time, in seconds.
    pub seconds: f64,
    /// Suspicious, flaky, unreadable, denied, busy and record-bad findings,
    /// the first [`GRAVE_FINDINGS_MAX`].
    pub grave: Vec<Finding>,
    /// Number of further findings of these kinds, which are not in `grave`.
    pub grave_omitted: u64,
    /// The reason why the root was not judged; `None` if it was.
    pub offline: Option<Offline>,
    /// True if the run had saved results when it found that.
    pub saved_before_offline: bool,
    /// States of the root in which the run was to go on.
    pub allowed: Allowed,
    /// The reason why the run ended early; `None` if it did not.
    pub stopped: Option<StopReason>,
    /// Recorded files that a run which ended early has not judged, if it was to
    /// judge all of them.
    pub unjudged_files: Option<u64>,
    /// The message of the check that the catalog as a whole has failed, if one has.
    pub record_untrusted: Option<String>,
    /// The digest of what the rows claim that the run judged by, if that was
    /// needed and the run came to its end.
    pub claims: Option<[u8; 32]>,
    /// Signature on the record that the run judged by, if its check was requested.
    pub signed: Option<SignatureInfo>,
    /// True if recovery data are kept for the root, with which it may be healed.
    pub has_recovery_data: bool,
    /// Folders below the root that are roots of their own, to be judged by
    /// their own catalogs.
    pub nested_roots: Vec<RelPath>,
    /// True if the record was a list, which another program has possibly made.
    pub is_against_list: bool,
    /// Entries of that list that could not be compared with anything.
    pub unusable_entries: u64,
    /// True if the run may write the record (`update`), so that what it has
    /// recorded is no longer a difference.
    pub is_update: bool,
    /// True if the run worked on a copy of the record, so that nothing of what it has
    /// recorded stays.
    pub is_dry_run: bool,
    /// Further results of a scrub; `None` for any other run.
    pub scrub: Option<ScrubSummary>,
}

/// Digests that were recorded of unchanged files, which had others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddedDigests {
    /// Files that got at least one.
    pub files: u64,
    /// All that were added.
    pub digests: AlgorithmSet,
}

impl AddedDigests {
    /// Counts a file that got these.
    pub(crate) fn add(&mut self, digests: AlgorithmSet) {
        self.files += u64::from(digests != AlgorithmSet::default());
        self.digests = self.digests.union(digests);
    }
}

impl Outcome {
    /// Returns true if the run came to its end, with a record that can be trusted.
    pub fn is_whole(&self) -> bool {
        self.stopped.is_none() && self.offline.is_none() && self.record_untrusted.is_none()
    }

    /// Counts a path that is as recorded, as most paths are, without the cost of
    /// a finding.
    pub fn add_ok(&mut self, kind: EntryKind, bytes: u64) {
        match kind {
            EntryKind::File | EntryKind::Special => {
                self.files.add(Verdict::Ok);
                self.file_bytes.add_many(Verdict::Ok, bytes);
                self.with_record += 1;
            }
            EntryKind::Link => self.links.add(Verdict::Ok),
            EntryKind::Folder => self.folders.add(Verdict::Ok),
        }
    }

    /// Counts a finding, and keeps it for the end of the report if it is grave.
    pub fn add(&mut self, finding: Finding) {
        let verdict = finding.verdict;
        // An update leaves both as recorded if it does not record the content.
        let counts = !self.is_update || finding.recorded_now;
        self.name_mismatches += u64::from(counts && finding.has_name_mismatch());
        let any = |is: &dyn Fn(&MetadataChange) -> bool| u64::from(finding.meta.iter().any(is));
        self.meta_unread += any(&MetadataChange::is_unread);
        self.meta_bad += any(&|change| change.was == RecordedValue::Bad && !finding.recorded_now);
        self.meta_changed +=
            any(&|change| counts && !change.is_unread() && change.was != RecordedValue::Bad);
        match finding.kind {
            EntryKind::File => self.add_file(&finding),
            EntryKind::Link => self.links.add(verdict),
            EntryKind::Folder => {
                self.folders.add(verdict);
                if verdict.is_unread() {
                    self.files.add(verdict);
                }
            }
            EntryKind::Special => self.files.add(verdict),
        }
        let known = open_damage(&finding);
        if let Some(known) = known {
            self.known_damage.add(known.verdict);
            if matches!(verdict, Verdict::Modified | Verdict::Reverted) {
                self.unsettled_edits.add(verdict);
            }
        }
        let is_redated = verdict == Verdict::Touched && finding.kind == EntryKind::File;
        self.redated_unread += u64::from(is_redated && finding.basis == Basis::Stat);
        let is_accepted = finding.recorded_now && !verdict.is_recordable();
        if is_accepted {
            self.accepted.add(finding.kind, verdict);
        }
        if !finding.recorded_now {
            self.to_accept.add(&finding);
        }
        let grave = (verdict.is_grave() || known.is_some()) && !is_accepted;
        if grave && self.grave.len() < GRAVE_FINDINGS_MAX {
            self.grave.push(finding);
        } else if grave {
            self.grave_omitted += 1;
        }
    }

    /// Removes the known damage of a finding from the counts: the file was healed.
    pub fn forget_known_damage(&mut self, finding: &Finding) {
        if let Some(known) = open_damage(finding) {
            self.known_damage.remove(known.verdict);
        }
    }

    fn add_file(&mut self, finding: &Finding) {
        self.files.add(finding.verdict);
        self.file_bytes.add_many(finding.verdict, finding.size());
        self.with_record += u64::from(finding.recorded.is_some());
        if let (Some(then), Some(now)) = (&finding.recorded, &finding.found) {
            let resized = then.size != now.size && now.kind == EntryKind::File;
            self.changed_size += u64::from(resized);
            let edited = matches!(finding.verdict, Verdict::Modified | Verdict::Reverted);
            self.changed_content_and_date += u64::from(edited && !resized);
        }
    }

    /// Files that differ from the record in any way: icj's "Total files differing".
    pub fn differing(&self) -> u64 {
        self.files.count(|verdict| {
            verdict.is_suspicious()
                || matches!(
                    verdict,
                    Verdict::Touched | Verdict::Modified | Verdict::Reverted | Verdict::TypeChanged
                )
        })
    }

    /// The exit code this outcome deserves: see [`ExitCode`].
    pub fn exit_code(&self) -> ExitCode {
        match self.stopped {
            Some(StopReason::Interrupted(code)) => code,
            _ => self.findings_code(),
        }
    }

    /// The exit code that its findings deserve, even if the run was interrupted.
    pub fn findings_code(&self) -> ExitCode {
        let any = |condition: &dyn Fn(Verdict) -> bool| {
            let [files, links, folders] = self.troubles(condition);
            files + links + folders > 0
        };
        let carriers = &self.carriers;
        let is_damage = |verdict: Verdict| verdict.is_suspicious() || verdict == Verdict::Flaky;
        let is_record_bad = self.meta_bad + carriers.damaged + carriers.conflicts > 0
            || any(&|v| v == Verdict::RecordBad);
        if self.record_untrusted.is_some() || is_record_bad {
            ExitCode::RecordUntrusted
        } else if any(&is_damage) || self.known_damage.count(is_damage) > 0 {
            ExitCode::Damage
        } else if any(&Verdict::is_unread)
            || self.known_damage.of(Verdict::Unreadable) > 0
            || self.meta_unread > 0
            || matches!(self.stopped, Some(StopReason::StorageSilent(_)))
        {
            ExitCode::Unread
        } else if self.offline.is_some()
            || self.stopped.is_some()
            || !self.absent_roots.is_empty()
            || self.recorded_left_out.by_border > 0
            || self.unusable_entries > 0
            || self.unknown_paths > 0
            || carriers.refused > 0
            || self.healing.is_some_and(|healing| healing.is_unfinished)
            || self.scrub.as_ref().is_some_and(ScrubSummary::is_incomplete)
            || self.parity.as_ref().is_some_and(ParityUpdate::is_incomplete)
        {
            ExitCode::Incomplete
        } else if self.has_healed() && !any(&|v| v == Verdict::Missing) {
            ExitCode::Healed
        } else if self.recorded_left_out.by_pattern > 0
            || (self.redated_unread > 0 && !self.is_update)
            || (self.name_mismatches + self.meta_changed + carriers.behind > 0 && !self.is_update)
            || any(&|v| self.is_difference(v))
        {
            ExitCode::Differences
        } else {
            ExitCode::Clean
        }
    }

    fn has_healed(&self) -> bool {
        self.healing.is_some_and(|healing| healing.healed.total() > 0)
    }

    /// Returns the numbers of files, links and folders whose verdict satisfies a
    /// condition and that were neither accepted nor healed.
    pub fn troubles(&self, condition: impl Fn(Verdict) -> bool) -> [u64; 3] {
        let healed = self.healing.map(|healing| healing.healed).unwrap_or_default();
        let no_more = [self.accepted, healed];
        let less = |all: &VerdictCounts, of: fn(&CountsByKind) -> &VerdictCounts| {
            no_more.iter().fold(all.count(&condition), |left, no_more| {
                left.saturating_sub(of(no_more).count(&condition))
            })
        };
        [
            less(&self.files, |no_more| &no_more.files),
            less(&self.links, |no_more| &no_more.links),
            less(&self.folders, |no_more| &no_more.folders),
        ]
    }

    /// Returns true if a verdict is a difference after this run. What `update` has
    /// recorded is not a difference any more; it never records a change of type
    /// unless the user requests it.
    fn is_difference(&self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::TypeChanged => true,
            Verdict::Modified
            | Verdict::Reverted
            | Verdict::Missing
            | Verdict::Moved
            | Verdict::New => !self.is_update,
            _ => false,
        }
    }
}

/// Returns the known damage of a finding, unless the verdict itself is damage or what was
/// found is now recorded.
fn open_damage(finding: &Finding) -> Option<KnownDamage> {
    finding.known_damage.filter(|_| !finding.verdict.is_damage() && !finding.recorded_now)
}
