//! The output of `verify`, `update`, `scrub`, `status` and `heal`. A million findings are
//! read in the memory of the ten thousand gravest.

use std::collections::{BTreeMap, BinaryHeap};
use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use crate::chart::DamageMap;
use fsure_integrity::model::Verdict;
use fsure_measure::results::ReadError;

/// Findings that are kept. A table of more is nothing that a person reads.
const FOUND_MAX: usize = 10_000;

/// Bytes of text in the findings that are kept: names may be long.
const TEXT_MAX: usize = 64 << 20;

/// Damaged ranges that are kept of one finding; the others are counted.
const RANGES_MAX: usize = 64;

/// Repairs that are kept.
const REMEDIES_MAX: usize = 10_000;

/// Folders whose ages are kept: more than a picture shows.
const FOLDERS_MAX: usize = 10_000;

/// Output of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Checked {
    /// The command, where a line says it.
    pub(crate) command: Option<String>,
    /// Findings, the gravest first, those of a kind as they were printed.
    pub(crate) found: Vec<FindingRow>,
    /// Number of all findings, including those that are not kept.
    pub(crate) found_total: u64,
    /// Totals of each root.
    pub(crate) roots: Vec<OutputTotals>,
    /// Times at which the files of each root were verified.
    pub(crate) ages: Vec<Age>,
    /// The same for the folders of all roots.
    pub(crate) folder_ages: Vec<FolderAge>,
    /// Repairs, in their order.
    pub(crate) remedies: Vec<Remedy>,
    /// The last line; `None` where the run was cut off.
    pub(crate) summary: Option<OutputTotals>,
}

/// A finding about a path.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct FindingRow {
    /// The root, as text.
    pub(crate) root: String,
    /// The path in it, as text.
    pub(crate) path: String,
    /// Its bytes in base64, if they are not valid UTF-8.
    pub(crate) path_bytes: Option<String>,
    /// `file`, `folder`, `link`.
    pub(crate) kind: String,
    /// The verdict's name.
    pub(crate) verdict: String,
    /// Path at which it was recorded, if that is another one.
    pub(crate) moved_from: Option<String>,
    /// The bytes of that in base64, if they are not valid UTF-8.
    pub(crate) moved_from_bytes: Option<String>,
    /// Size and date of what is there, or else of what is recorded.
    #[serde(flatten)]
    pub(crate) stat: StatFields,
    /// Size and date as recorded.
    pub(crate) recorded: Option<StatFields>,
    /// Damaged bytes: from the first up to, not including, the second.
    pub(crate) blocks: Vec<[u64; 2]>,
    /// Bytes that could not be read.
    pub(crate) unreadable: Vec<[u64; 2]>,
    /// Message of the system.
    pub(crate) reason: Option<String>,
    /// Damage that an earlier run found.
    pub(crate) known: Option<KnownDamage>,
    /// Differences in what is not content: how many.
    #[serde(deserialize_with = "how_many")]
    pub(crate) meta: usize,
    /// Map of the damage, made of all ranges.
    #[serde(skip)]
    pub(crate) map: Option<DamageMap>,
    /// Damaged ranges that are not in `blocks`.
    #[serde(skip)]
    pub(crate) blocks_left_out: usize,
    /// Ranges that are not in `unreadable`.
    #[serde(skip)]
    pub(crate) unreadable_left_out: usize,
}

/// Damage that an earlier run found and nothing has settled since.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct KnownDamage {
    /// Name of the verdict of the run that last read the file.
    pub(crate) verdict: String,
    /// The date at which it was first found, RFC 3339.
    pub(crate) since: String,
    /// The date at which it was last found, RFC 3339.
    pub(crate) seen: String,
}

/// A signature that was made or checked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Signed {
    /// The generation that is signed.
    pub(crate) generation: u64,
    /// Time, RFC 3339.
    pub(crate) time: String,
    /// Digest of the record.
    pub(crate) root: String,
    /// Head of the chain of generations.
    pub(crate) head: String,
    /// Name of the key.
    pub(crate) key: String,
}

/// Size and date.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct StatFields {
    /// Bytes.
    pub(crate) size: u64,
    /// Time of the last modification, RFC 3339.
    pub(crate) mtime: Option<String>,
}

/// Totals of one root, or of all roots. `verdicts` are those of files. The names are those
/// of the summary line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct OutputTotals {
    pub(crate) command: Option<String>,
    pub(crate) root: Option<String>,
    pub(crate) verdicts: BTreeMap<String, u64>,
    pub(crate) links: BTreeMap<String, u64>,
    pub(crate) folders: BTreeMap<String, u64>,
    pub(crate) special: u64,
    pub(crate) files: u64,
    pub(crate) with_record: u64,
    pub(crate) hashed: u64,
    pub(crate) suspicious: u64,
    pub(crate) differing: u64,
    pub(crate) changed_size: u64,
    pub(crate) changed_content_and_date: u64,
    pub(crate) ignored_folders: u64,
    pub(crate) ignored_files: u64,
    pub(crate) recorded_left_out: u64,
    pub(crate) meta_changed: u64,
    pub(crate) accepted: u64,
    pub(crate) damaged_blocks: u64,
    pub(crate) known_damage: u64,
    pub(crate) damaged_since: Option<String>,
    pub(crate) healed: u64,
    pub(crate) healable: u64,
    pub(crate) unhealed: u64,
    pub(crate) bytes_healed: u64,
    pub(crate) bytes_judged: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_by_way: BTreeMap<String, u64>,
    pub(crate) seconds: f64,
    pub(crate) offline: Option<Reason>,
    pub(crate) stopped: Option<Reason>,
    pub(crate) record_untrusted: Option<String>,
    pub(crate) verified: Vec<Bar>,
    pub(crate) bad_records: u64,
    pub(crate) signed: Option<Signed>,
    pub(crate) exit_code: u8,
}

/// Reason why a root is offline, or why a run ended early.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Reason {
    /// `empty`, `interrupted`, `storage-silent`, ...
    pub(crate) why: String,
    /// Message of the system, if there is more to report.
    pub(crate) message: Option<String>,
}

/// Times at which the files of a root were verified.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Age {
    /// The root, as text.
    pub(crate) root: String,
    /// The youngest first.
    pub(crate) verified: Vec<Bar>,
    /// The file that was verified longest ago.
    pub(crate) oldest: Option<Oldest>,
    /// Records that fail their seal.
    pub(crate) bad_records: u64,
}

/// Times at which the files of a folder were verified.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct FolderAge {
    /// The root, as text.
    pub(crate) root: String,
    /// The folder in it, as text; empty for the root itself.
    pub(crate) path: String,
    /// The youngest first.
    pub(crate) verified: Vec<Bar>,
}

/// Amount of data that was last verified in one period of time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Bar {
    /// `today`, `week`, ... `never`.
    pub(crate) when: String,
    /// Files.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

/// The file that was verified longest ago.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Oldest {
    /// Its path, as text.
    pub(crate) path: String,
    /// The bytes of that in base64, if they are not valid UTF-8.
    pub(crate) path_bytes: Option<String>,
    /// Time of that verification, RFC 3339.
    pub(crate) verified: String,
}

/// A file that `heal` has repaired or could not repair.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Remedy {
    /// The root, as text.
    pub(crate) root: String,
    /// The path in it, as text.
    pub(crate) path: String,
    /// Its bytes in base64, if they are not valid UTF-8.
    pub(crate) path_bytes: Option<String>,
    /// Name of the verdict before.
    pub(crate) found: String,
    /// Result: `healed`, `healable`, ...
    pub(crate) cure: String,
    /// Places that good bytes were taken from.
    pub(crate) taken: Vec<Taken>,
    /// Bytes that no place has.
    pub(crate) lacking: Vec<[u64; 2]>,
    /// Reason why it was not repaired.
    pub(crate) reason: Option<String>,
}

/// A place that good bytes were taken from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Taken {
    /// `itself`, `replica`, `parity`, `record`.
    pub(crate) origin: String,
    /// The copy, as text.
    pub(crate) replica: Option<String>,
}

/// Counts the elements of a list without reading them.
fn how_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    Vec::<serde::de::IgnoredAny>::deserialize(deserializer).map(|list| list.len())
}

impl FindingRow {
    /// Returns the gravity of the verdict: the smaller, the graver. A verdict that this
    /// version does not know may be anything, so it comes behind damage and before the
    /// rest.
    pub(crate) fn gravity(&self) -> u8 {
        let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.name() == self.verdict);
        match verdict {
            Some(Verdict::Rotten) => 0,
            Some(Verdict::Altered) => 1,
            Some(Verdict::DamagedCopy) => 2,
            Some(Verdict::Mismatch) => 3,
            Some(Verdict::RecordBad) => 4,
            Some(Verdict::Unreadable) => 5,
            Some(Verdict::Flaky) => 6,
            None => 7,
            Some(Verdict::Denied) => 8,
            Some(Verdict::Busy) => 9,
            Some(Verdict::Missing) => 10,
            Some(Verdict::TypeChanged) => 11,
            Some(Verdict::Reverted) => 12,
            Some(Verdict::Modified) => 13,
            Some(Verdict::Moved) => 14,
            Some(Verdict::Touched) => 15,
            Some(Verdict::New) => 16,
            Some(Verdict::Ignored) => 17,
            Some(Verdict::Ok) => 18,
        }
    }

    /// Draws a map of all ranges, and keeps the first ones only.
    fn cut(&mut self) {
        self.map = DamageMap::of(self.stat.size, &self.blocks, &self.unreadable);
        let pairs = [
            (&mut self.blocks, &mut self.blocks_left_out),
            (&mut self.unreadable, &mut self.unreadable_left_out),
        ];
        for (ranges, left_out) in pairs {
            *left_out = ranges.len().saturating_sub(RANGES_MAX);
            ranges.truncate(RANGES_MAX);
            ranges.shrink_to_fit();
        }
    }

    fn text_bytes(&self) -> usize {
        let optional = [&self.path_bytes, &self.moved_from, &self.moved_from_bytes, &self.reason];
        let optional = optional.into_iter().flatten().map(String::len).sum::<usize>();
        self.root.len() + self.path.len() + optional
    }
}

/// A finding among those that are kept: the largest is the first to go.
struct RankedFinding {
    order: (u8, u64),
    found: FindingRow,
}

impl Ord for RankedFinding {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

impl PartialOrd for RankedFinding {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankedFinding {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for RankedFinding {}

/// The gravest findings so far.
#[derive(Default)]
struct WorstFindings {
    heap: BinaryHeap<RankedFinding>,
    text_bytes: usize,
    total: u64,
}

impl WorstFindings {
    fn add(&mut self, mut found: FindingRow) {
        found.cut();
        self.text_bytes += found.text_bytes();
        self.heap.push(RankedFinding { order: (found.gravity(), self.total), found });
        self.total += 1;
        while self.heap.len() > FOUND_MAX || self.text_bytes > TEXT_MAX {
            let Some(gone) = self.heap.pop() else { break };
            self.text_bytes -= gone.found.text_bytes();
        }
    }

    fn sorted(self) -> Vec<FindingRow> {
        self.heap.into_sorted_vec().into_iter().map(|kept| kept.found).collect()
    }
}

/// Reads the lines of a run.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<Checked, ReadError> {
    let (mut checked, mut gravest) = (Checked::default(), WorstFindings::default());
    while let Some(line) = lines.take()? {
        match line.kind() {
            "finding" => gravest.add(line.read()?),
            "root" => checked.add_root(line.read()?),
            "summary" => {
                let summary: OutputTotals = line.read()?;
                checked.command = summary.command.clone().or(checked.command);
                checked.summary = Some(summary);
            }
            "age" => checked.ages.push(line.read()?),
            "age-folder" if checked.folder_ages.len() < FOLDERS_MAX => {
                checked.folder_ages.push(line.read()?);
            }
            "age-folder" => {}
            "remedy" if checked.remedies.len() < REMEDIES_MAX => {
                checked.remedies.push(line.read()?);
            }
            "remedy" => {}
            _ => lines.pass_over(),
        }
    }
    checked.found_total = gravest.total;
    checked.found = gravest.sorted();
    Ok(checked)
}

impl Checked {
    fn add_root(&mut self, totals: OutputTotals) {
        self.command = totals.command.clone().or(self.command.take());
        self.roots.push(totals);
    }
}
