//! Reads the output of `verify --json` and its relatives. These types have only those
//! fields of that format that are shown: a missing field is zero or empty, an unknown one
//! is passed over. A million findings are read in the memory of the ten thousand gravest.

use std::collections::{BTreeMap, BinaryHeap};
use std::io::BufRead;

use serde::Deserialize;
use serde_json::Value;

use fsure_integrity::model::Verdict;
use fsure_measure::results::{BoundedLines, ReadError};

/// Findings that are kept. A table of more is nothing that a person reads.
const FOUND_MAX: usize = 10_000;

/// Bytes of text in the findings that are kept: names may be long.
const TEXT_MAX: usize = 64 << 20;

/// Damaged ranges that are kept of one finding; the others are counted.
const RANGES_MAX: usize = 64;

/// Output of a run of `verify`, `update`, `scrub` or `status`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerifyOutput {
    /// The command, where a line says it.
    pub command: Option<String>,
    /// Findings, the gravest first, those of a kind as they were printed.
    pub found: Vec<FindingRow>,
    /// Number of all findings, including those that are not kept.
    pub found_total: u64,
    /// Totals of each root.
    pub roots: Vec<OutputTotals>,
    /// Times at which the files of each root were verified.
    pub ages: Vec<Age>,
    /// Errors that ended the run.
    pub failures: Vec<RunError>,
    /// The last line; `None` where the run was cut off.
    pub summary: Option<OutputTotals>,
}

/// A finding about a path.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct FindingRow {
    /// The root, as text.
    pub root: String,
    /// The path in it, as text.
    pub path: String,
    /// Its bytes in base64, if they are not valid UTF-8.
    pub path_bytes: Option<String>,
    /// `file`, `folder`, `link`.
    pub kind: String,
    /// The verdict's name.
    pub verdict: String,
    /// Path at which it was recorded, if that is another one.
    pub moved_from: Option<String>,
    /// The bytes of that in base64, if they are not valid UTF-8.
    pub moved_from_bytes: Option<String>,
    /// Size and date of what is there, or else of what is recorded.
    #[serde(flatten)]
    pub stat: StatFields,
    /// Size and date as recorded.
    pub recorded: Option<StatFields>,
    /// Damaged bytes: from the first up to, not including, the second.
    pub blocks: Vec<[u64; 2]>,
    /// Bytes that could not be read.
    pub unreadable: Vec<[u64; 2]>,
    /// Message of the system.
    pub reason: Option<String>,
    /// Damage that an earlier run found.
    pub known: Option<KnownDamage>,
    /// Differences in what is not content: how many.
    #[serde(deserialize_with = "how_many")]
    pub meta: usize,
    /// Damaged ranges that are not in `blocks`.
    #[serde(skip)]
    pub blocks_left_out: usize,
    /// Ranges that are not in `unreadable`.
    #[serde(skip)]
    pub unreadable_left_out: usize,
}

/// Damage that an earlier run found and nothing has settled since.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct KnownDamage {
    /// Name of the verdict of the run that last read the file.
    pub verdict: String,
    /// The date at which it was first found, RFC 3339.
    pub since: String,
    /// The date at which it was last found, RFC 3339.
    pub seen: String,
}

/// Size and date.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct StatFields {
    /// Bytes.
    pub size: u64,
    /// Time of the last modification, RFC 3339.
    pub mtime: Option<String>,
}

/// Totals of one root, or of all roots. `verdicts` are those of files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names are those of the summary, which report::text explains")]
pub struct OutputTotals {
    pub command: Option<String>,
    pub root: Option<String>,
    pub verdicts: BTreeMap<String, u64>,
    pub links: BTreeMap<String, u64>,
    pub folders: BTreeMap<String, u64>,
    pub special: u64,
    pub with_record: u64,
    pub hashed: u64,
    pub suspicious: u64,
    pub differing: u64,
    pub changed_size: u64,
    pub changed_content_and_date: u64,
    pub ignored_folders: u64,
    pub ignored_files: u64,
    pub recorded_left_out: u64,
    pub meta_changed: u64,
    pub accepted: u64,
    pub damaged_blocks: u64,
    pub bytes_read: u64,
    pub bytes_by_way: BTreeMap<String, u64>,
    pub seconds: f64,
    pub offline: Option<Reason>,
    pub stopped: Option<Reason>,
    pub record_untrusted: Option<String>,
    pub verified: Vec<Bar>,
    pub bad_records: u64,
    pub exit_code: u8,
}

/// Reason why a root is offline, or why a run ended early.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Reason {
    /// `empty`, `interrupted`, `storage-silent`, ...
    pub why: String,
    /// Message of the system, if there is more to report.
    pub message: Option<String>,
}

/// Times at which the files of a root were verified.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Age {
    /// The root, as text.
    pub root: String,
    /// The youngest first.
    pub verified: Vec<Bar>,
    /// The file that was verified longest ago.
    pub oldest: Option<Oldest>,
    /// Records that fail their seal.
    pub bad_records: u64,
}

/// Amount of data that was last verified in one period of time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Bar {
    /// `today`, `week`, ... `never`.
    pub when: String,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The file that was verified longest ago.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Oldest {
    /// Its path, as text.
    pub path: String,
    /// The bytes of that in base64, if they are not valid UTF-8.
    pub path_bytes: Option<String>,
    /// Time of that verification, RFC 3339.
    pub verified: String,
}

/// An error that ended a run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RunError {
    /// Description of the error.
    pub message: String,
    /// Advice on what to do now.
    pub hint: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum OutputLine {
    Finding(Box<FindingRow>),
    Root(Box<OutputTotals>),
    Age(Age),
    Error(RunError),
    Summary(Box<OutputTotals>),
    #[serde(other)]
    Unknown,
}

/// Counts the elements of a list without reading them.
fn how_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    Vec::<serde::de::IgnoredAny>::deserialize(deserializer).map(|list| list.len())
}

impl FindingRow {
    /// Returns the gravity of the verdict: the smaller, the graver. A verdict that this
    /// version does not know may be anything, so it comes behind damage and before the
    /// rest.
    pub fn gravity(&self) -> u8 {
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

    /// Keeps the first ranges only.
    fn cut(&mut self) {
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

/// Reads the rest of a report of which this is the first line.
pub(super) fn read_on(
    first: Value,
    mut rest: BoundedLines<impl BufRead>,
) -> Result<VerifyOutput, ReadError> {
    let first = serde_json::from_value(first).map_err(|_| ReadError::NotAResult)?;
    if matches!(first, OutputLine::Unknown) {
        return Err(whose(rest));
    }
    let (mut checked, mut gravest) = (VerifyOutput::default(), WorstFindings::default());
    checked.add(first, &mut gravest)?;
    while let Some(text) = rest.next_line()? {
        let Some(row) = text.parse()? else { break };
        checked.add(row, &mut gravest)?;
    }
    checked.found_total = gravest.total;
    checked.found = gravest.sorted();
    Ok(checked)
}

/// Names the command of a report that does not begin as one that is shown, from
/// the lines that say it.
fn whose(mut rest: BoundedLines<impl BufRead>) -> ReadError {
    while let Ok(Some(text)) = rest.next_line() {
        let row = text.parse().ok().flatten();
        if let Some(OutputLine::Root(totals) | OutputLine::Summary(totals)) = row
            && let Some(command) = totals.command
        {
            return ReadError::OtherCommand(command);
        }
    }
    ReadError::NotAResult
}

impl VerifyOutput {
    fn add(&mut self, row: OutputLine, gravest: &mut WorstFindings) -> Result<(), ReadError> {
        match row {
            OutputLine::Finding(found) => gravest.add(*found),
            OutputLine::Root(totals) => {
                let totals = self.of_command(*totals)?;
                self.roots.push(totals);
            }
            OutputLine::Summary(totals) => self.summary = Some(self.of_command(*totals)?),
            OutputLine::Age(age) => self.ages.push(age),
            OutputLine::Error(failure) => self.failures.push(failure),
            OutputLine::Unknown => {}
        }
        Ok(())
    }

    /// Notes the command, which has to be one whose report is understood.
    fn of_command(&mut self, totals: OutputTotals) -> Result<OutputTotals, ReadError> {
        const SHOWN: [&str; 4] = ["verify", "update", "scrub", "status"];
        if let Some(command) = &totals.command {
            if !SHOWN.contains(&command.as_str()) {
                return Err(ReadError::OtherCommand(command.clone()));
            }
            self.command = Some(command.clone());
        }
        Ok(totals)
    }
}
