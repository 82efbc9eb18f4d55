//! Reports how much data was verified at which time, as bars for the user and as lines
//! for a program.

use jiff::tz::TimeZone;
use serde::Serialize;

use super::json::{line, rfc3339};
use super::{RootPaths, date_and_time, number};
use fsure_core::count;
use fsure_core::json_path_and_bytes;
use fsure_core::{ExitCode, RelPath, escape, units};
use fsure_integrity::model::{AgeBucket, AgeHistogram, AmountsByAge, FilesAndBytes, FolderAges};

/// Characters of a bar that is everything.
const BAR: u64 = 30;

/// The report on one root.
pub fn text(paths: &RootPaths, ages: &AgeHistogram) -> String {
    text_in(paths, ages, &TimeZone::system())
}

fn text_in(paths: &RootPaths, ages: &AgeHistogram, zone: &TimeZone) -> String {
    let root = escape(&fsure_os::path::bytes(paths.root()));
    let mut text = format!("verified {root}\n\n");
    let total = ages.total();
    let width = count(total.files).len().max(5);
    text += &format!("{:<12} {:>width$}  {:>10}\n", "", "files", "bytes");
    for when in AgeBucket::ALL {
        let amount = ages.of(when);
        let label = match when {
            AgeBucket::Today | AgeBucket::Older | AgeBucket::Never => when.name().to_owned(),
            _ => format!("this {}", when.name()),
        };
        // By bytes, or files where there are none; what is there shows.
        let (part, whole) = match total.bytes {
            0 => (amount.files, total.files),
            _ => (amount.bytes, total.bytes),
        };
        let share = (u128::from(part) * u128::from(BAR)).div_ceil(u128::from(whole.max(1)));
        let bar = "#".repeat(usize::try_from(share).unwrap_or_default());
        let (files, bytes) = (count(amount.files), units::size(amount.bytes));
        text += format!("{label:<12} {files:>width$}  {bytes:>10}  {bar}").trim_end();
        text.push('\n');
    }
    text.push('\n');
    if let Some((path, verified_s)) = &ages.oldest {
        let date = date_and_time(*verified_s, zone);
        text += &format!("Verified longest ago: {date}, {}.\n", paths.shown(path));
    }
    let damaged = ages.known_damage.total();
    if damaged > 0 {
        let since =
            ages.damaged_since_s.map_or(String::new(), |since_s| date_and_time(since_s, zone));
        let files = number(damaged, "file is", "files are");
        text += &format!(
            "KNOWN DAMAGE: {files} damaged, the first since {since}; run '{}'.\n",
            paths.command("log")
        );
    }
    if ages.bad_records > 0 {
        let records = number(ages.bad_records, "record", "records");
        let verify = paths.command("verify");
        text += &format!("RECORD BAD: {records} left out; run '{verify}'.\n");
    }
    text
}

/// The line of one root.
pub fn json_line(root: &str, ages: &AgeHistogram) -> String {
    line(&AgeLine { r#type: "age", command: None, root: Some(root), ..AgeLine::of(ages) })
}

/// A line for each folder of a root.
pub fn json_folders(root: &str, folders: &FolderAges) -> Vec<String> {
    let folder = |(path, amounts): (&RelPath, &AmountsByAge)| {
        let bars = AgeBucket::ALL.into_iter().zip(amounts).filter(|(_, amount)| amount.files > 0);
        let (path, path_bytes) = json_path_and_bytes(path.as_bytes());
        let verified = bars.map(|(when, amount)| Bar::of(when, *amount)).collect();
        line(&FolderLine { r#type: "age-folder", root, path, path_bytes, verified })
    };
    folders.iter().map(folder).collect()
}

#[derive(Serialize)]
struct FolderLine<'a> {
    r#type: &'static str,
    root: &'a str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    verified: Vec<Bar>,
}

/// The last line of the output, over all roots.
pub fn json_summary(ages: &AgeHistogram, code: ExitCode) -> String {
    let exit_code = Some(code.number());
    line(&AgeLine { r#type: "summary", command: Some("status"), exit_code, ..AgeLine::of(ages) })
}

#[derive(Serialize)]
struct AgeLine<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<&'a str>,
    verified: Vec<Bar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<Oldest>,
    bad_records: u64,
    known_damage: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged_since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
}

#[derive(Serialize)]
struct Bar {
    when: &'static str,
    files: u64,
    bytes: u64,
}

impl Bar {
    fn of(when: AgeBucket, amount: FilesAndBytes) -> Self {
        Self { when: when.name(), files: amount.files, bytes: amount.bytes }
    }
}

#[derive(Serialize)]
struct Oldest {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    verified: String,
}

impl AgeLine<'_> {
    fn of(ages: &AgeHistogram) -> Self {
        let bar = |when: AgeBucket| Bar::of(when, ages.of(when));
        let oldest = ages.oldest.as_ref().map(|(path, verified_s)| {
            let (path, path_bytes) = json_path_and_bytes(path.as_bytes());
            let verified = rfc3339(verified_s.saturating_mul(1_000_000_000));
            Oldest { path, path_bytes, verified }
        });
        Self {
            r#type: "",
            command: None,
            root: None,
            verified: AgeBucket::ALL.map(bar).into(),
            oldest,
            bad_records: ages.bad_records,
            known_damage: ages.known_damage.total(),
            damaged_since: ages
                .damaged_since_s
                .map(|since_s| rfc3339(since_s.saturating_mul(1_000_000_000))),
            exit_code: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_exactly_so() {
        let mut ages = AgeHistogram::default();
        let now_s = 1_714_564_800;
        let path = |name: &[u8]| RelPath::from_bytes(name);
        ages.add(&path(b"new"), 20 << 20, now_s - 5, now_s);
        ages.add(&path(b"old\n"), 10 << 20, now_s - 400 * 86_400, now_s);
        ages.add(&path(b"none"), 1, 0, now_s);
        ages.bad_records = 1;
        let expected = "\
verified /r

             files       bytes
today            1    20.0 MiB  ####################
this week        0         0 B
this month       0         0 B
this quarter     0         0 B
this year        0         0 B
older            1    10.0 MiB  ##########
never            1         1 B  #

Verified longest ago: 2023-03-28 12:00:00, old\\n.
RECORD BAD: 1 record left out; run 'fsure verify .'.
";
        assert_eq!(text_in(&RootPaths::in_root(), &ages, &TimeZone::UTC), expected);
    }
}
