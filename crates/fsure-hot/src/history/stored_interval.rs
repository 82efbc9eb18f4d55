//! The stored form of an interval: a line of JSON. A figure that is 0 is left out, and names are
//! those of the lines that `hot --top` prints, so that the same reader takes both.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fsure_core::{json_path, json_path_and_bytes};
use fsure_os::io_trace::IoCounts;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::folder_sum::{RecordedFolder, RecordedRest};
use super::interval::RecordedInterval;
use crate::folder_tree::waited_ns;

/// Type of the line.
pub(super) const KIND: &str = "interval";

const NS_PER_MS: f64 = 1e6;

#[derive(Serialize, Deserialize)]
struct IntervalLine {
    r#type: String,
    /// The end.
    time: String,
    began: String,
    seconds: f64,
    intervals: u64,
    programs: Vec<ProgramLine>,
    folders: Vec<FolderLine>,
    #[serde(default, skip_serializing_if = "RestLine::is_nothing")]
    other_programs: RestLine,
    #[serde(default, skip_serializing_if = "RestLine::is_nothing")]
    not_visible: RestLine,
    lost: Vec<LostLine>,
    #[serde(default)]
    not_seen: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct ProgramLine {
    program: String,
    #[serde(flatten)]
    figures: FiguresLine,
}

#[derive(Serialize, Deserialize)]
struct FolderLine {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    is_visible: bool,
    has_below: bool,
    names: Vec<String>,
    #[serde(flatten)]
    figures: FiguresLine,
}

#[derive(Default, Serialize, Deserialize)]
struct RestLine {
    count: u64,
    #[serde(flatten)]
    figures: FiguresLine,
}

#[derive(Serialize, Deserialize)]
struct LostLine {
    what: String,
    count: u64,
}

/// Figures as all results have them. `waited_ms` is a sum of others, for readers.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct FiguresLine {
    #[serde(skip_serializing_if = "is_no_time")]
    waited_ms: f64,
    #[serde(skip_serializing_if = "is_no_time")]
    fsync_ms: f64,
    #[serde(skip_serializing_if = "is_none_of")]
    bytes_written: u64,
    #[serde(skip_serializing_if = "is_none_of")]
    bytes_read: u64,
    #[serde(skip_serializing_if = "is_none_of")]
    writes: u64,
    #[serde(skip_serializing_if = "is_none_of")]
    reads: u64,
    #[serde(skip_serializing_if = "is_none_of")]
    fsyncs: u64,
    #[serde(skip_serializing_if = "is_no_time")]
    write_ms: f64,
    #[serde(skip_serializing_if = "is_no_time")]
    synced_write_ms: f64,
    #[serde(skip_serializing_if = "is_no_time")]
    read_ms: f64,
    #[serde(skip_serializing_if = "is_no_time")]
    missed_ms: f64,
    #[serde(skip_serializing_if = "is_none_of")]
    bytes_missed: u64,
    #[serde(skip_serializing_if = "is_none_of")]
    bytes_mapped: u64,
}

// serde passes references.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is that of serde")]
fn is_none_of(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is that of serde")]
fn is_no_time(ms: &f64) -> bool {
    *ms == 0.0
}

impl FiguresLine {
    fn of(counts: &IoCounts) -> Self {
        let ms = |ns: u64| ns as f64 / NS_PER_MS;
        Self {
            waited_ms: ms(waited_ns(counts)),
            fsync_ms: ms(counts.fsync_ns),
            bytes_written: counts.bytes_written,
            bytes_read: counts.bytes_read,
            writes: counts.writes,
            reads: counts.reads,
            fsyncs: counts.fsyncs,
            write_ms: ms(counts.write_ns),
            synced_write_ms: ms(counts.synced_write_ns),
            read_ms: ms(counts.read_ns),
            missed_ms: ms(counts.missed_ns),
            bytes_missed: counts.bytes_missed,
            bytes_mapped: counts.bytes_mapped,
        }
    }

    fn counts(&self) -> IoCounts {
        // A negative number becomes 0.
        let ns = |ms: f64| (ms * NS_PER_MS).round() as u64;
        IoCounts {
            reads: self.reads,
            bytes_read: self.bytes_read,
            read_ns: ns(self.read_ms),
            writes: self.writes,
            bytes_written: self.bytes_written,
            write_ns: ns(self.write_ms),
            fsyncs: self.fsyncs,
            fsync_ns: ns(self.fsync_ms),
            synced_write_ns: ns(self.synced_write_ms),
            bytes_missed: self.bytes_missed,
            missed_ns: ns(self.missed_ms),
            bytes_mapped: self.bytes_mapped,
        }
    }
}

impl RestLine {
    fn of(rest: &RecordedRest) -> Self {
        Self { count: rest.count, figures: FiguresLine::of(&rest.counts) }
    }

    fn is_nothing(&self) -> bool {
        self.count == 0
    }

    fn rest(&self) -> RecordedRest {
        RecordedRest { count: self.count, counts: self.figures.counts() }
    }
}

/// Returns the line of an interval, which `hot record --json` prints, too; no line end. Folders
/// and programs for which programs wait most come first.
pub fn stored_line(interval: &RecordedInterval) -> String {
    let mut programs: Vec<_> = interval.programs.iter().collect();
    programs.sort_by_key(|(_, counts)| std::cmp::Reverse(waited_ns(counts)));
    let mut folders: Vec<_> = interval.folders.iter().collect();
    folders.sort_by_key(|(_, folder)| std::cmp::Reverse(waited_ns(&folder.counts)));
    let line = IntervalLine {
        r#type: KIND.to_owned(),
        time: timestamp(interval.ended_ns).to_string(),
        began: timestamp(interval.began_ns).to_string(),
        seconds: interval.seconds,
        intervals: interval.intervals,
        programs: programs
            .into_iter()
            .map(|(program, counts)| ProgramLine {
                program: program.clone(),
                figures: FiguresLine::of(counts),
            })
            .collect(),
        folders: folders.into_iter().map(|(path, folder)| folder_line(path, folder)).collect(),
        other_programs: RestLine::of(&interval.other_programs),
        not_visible: RestLine::of(&interval.not_visible),
        lost: interval
            .lost
            .iter()
            .map(|(what, count)| LostLine { what: what.clone(), count: *count })
            .collect(),
        not_seen: interval.not_seen.iter().cloned().collect(),
    };
    serde_json::to_string(&line).expect("numbers and texts are JSON")
}

fn folder_line(path: &std::path::Path, folder: &RecordedFolder) -> FolderLine {
    let (path, path_bytes) = json_path_and_bytes(&fsure_os::path::bytes(path));
    FolderLine {
        path,
        path_bytes,
        is_visible: true,
        has_below: folder.has_below,
        names: folder.programs.iter().cloned().collect(),
        figures: FiguresLine::of(&folder.counts),
    }
}

/// Reads the line of an interval; `None` if it is damaged.
pub(super) fn read_line(line: &[u8]) -> Option<RecordedInterval> {
    let line: IntervalLine = serde_json::from_slice(line).ok()?;
    let (began_ns, ended_ns) = (nanoseconds(&line.began)?, nanoseconds(&line.time)?);
    let is_time = line.seconds.is_finite() && line.seconds >= 0.0;
    if line.r#type != KIND || !is_time || ended_ns < began_ns {
        return None;
    }
    let mut folders = BTreeMap::<PathBuf, RecordedFolder>::new();
    for folder in line.folders {
        let path = json_path(folder.path, folder.path_bytes);
        let path = fsure_os::path::from_bytes(&path).into_owned();
        let folder = RecordedFolder {
            counts: folder.figures.counts(),
            programs: folder.names.into_iter().collect(),
            has_below: folder.has_below,
        };
        folders.entry(path).or_default().add(folder);
    }
    let mut programs = BTreeMap::<String, IoCounts>::new();
    for program in line.programs {
        programs.entry(program.program).or_default().add(&program.figures.counts());
    }
    Some(RecordedInterval {
        began_ns,
        ended_ns,
        seconds: line.seconds,
        intervals: line.intervals,
        folders,
        not_visible: line.not_visible.rest(),
        programs,
        other_programs: line.other_programs.rest(),
        lost: line.lost.into_iter().map(|lost| (lost.what, lost.count)).collect(),
        not_seen: line.not_seen.into_iter().collect(),
    })
}

pub(super) fn timestamp(time_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(time_ns)).expect("jiff knows the years -9999 to 9999")
}

/// `None` for what is not a time, or does not fit: before 1677, or after 2262.
fn nanoseconds(time: &str) -> Option<i64> {
    i64::try_from(time.parse::<Timestamp>().ok()?.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_again() {
        let counts = IoCounts {
            reads: 1,
            bytes_read: 2,
            read_ns: 3,
            writes: 4,
            bytes_written: 5,
            write_ns: 6,
            fsyncs: 7,
            fsync_ns: 8_000_001,
            synced_write_ns: 9,
            bytes_missed: 10,
            missed_ns: 86_400_000_000_011,
            bytes_mapped: 12,
        };
        let folder = |has_below| RecordedFolder {
            counts,
            programs: ["db\u{1b}".to_owned()].into(),
            has_below,
        };
        let odd = fsure_os::path::from_bytes(b"/srv/\xff\n").into_owned();
        let interval = RecordedInterval {
            began_ns: 1_700_000_000_000_000_001,
            ended_ns: 1_700_000_600_000_000_000,
            seconds: 599.25,
            intervals: 3,
            folders: [(PathBuf::from("/srv/a"), folder(true)), (odd, folder(false))].into(),
            not_visible: RecordedRest { count: 2, counts },
            programs: [("db".to_owned(), counts)].into(),
            other_programs: RecordedRest { count: 1, counts },
            lost: [("names".to_owned(), 3)].into(),
            not_seen: ["an msync".to_owned()].into(),
        };
        let line = stored_line(&interval);
        assert_eq!(read_line(line.as_bytes()), Some(interval), "{line}");
        assert!(!line.contains('\n'));
        let least = RecordedInterval::default();
        let line = stored_line(&least);
        assert_eq!(read_line(line.as_bytes()), Some(least), "{line}");
        assert!(!line.contains("waited_ms"), "no zeros: {line}");
    }

    #[test]
    fn a_damaged_line_is_none() {
        let line = stored_line(&RecordedInterval {
            began_ns: 1_000_000_000,
            ended_ns: 2_000_000_000,
            seconds: 1.0,
            ..RecordedInterval::default()
        });
        let turned = line.replace("1970-01-01T00:00:02", "1970-01-01T00:00:00");
        let negative = line.replace("\"seconds\":1.0", "\"seconds\":-1.0");
        assert!(turned != line && negative != line, "{line}");
        for damaged in [&line[..line.len() / 2], "", "\0\0\0", "{}", "[]", &turned, &negative] {
            assert_eq!(read_line(damaged.as_bytes()), None, "{damaged}");
        }
        let later = line.replacen('{', "{\"new\":[1],", 1);
        assert!(read_line(later.as_bytes()).is_some(), "a field of a later version");
    }
}
