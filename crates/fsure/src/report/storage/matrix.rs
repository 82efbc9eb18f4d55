//! The matrix of `fsure crash` for a person: a row as soon as its cells are
//! full, and what it all means at the end.

use super::crash::{age, pace};
use super::number;
use fsure_core::{count, safe};
use fsure_crash::{CrashCell, CrashSummary};

const WORKLOAD: usize = 19;
const SYSTEM: usize = 14;
const OWED: usize = 17;
const CELL: usize = 21;

/// Returns the lines above all rows: the legend and the headings.
pub fn head(drives: &[String]) -> String {
    let legend =
        "Cuts that lost/corrupted/left no mountable file system, of all; age of the oldest lost";
    let mut line = format!("{:<WORKLOAD$} {:<SYSTEM$} {:<OWED$}", "workload", "on", "honestly, it");
    for drive in drives {
        line += &format!(" {:<CELL$}", safe(drive));
    }
    format!("{legend}\n\n{}", line.trim_end())
}

/// A workload on a file system, with its cells in the order of the drives.
/// `honest` is what is owed on a drive that keeps its word. A line for each cell
/// that came out otherwise than was to be expected follows.
pub fn row(honest: &str, cells: &[CrashCell]) -> String {
    let Some(first) = cells.first() else { return String::new() };
    let (workload, system) = (safe(&first.workload), safe(&first.tried.fs));
    let mut text = format!("{workload:<WORKLOAD$} {system:<SYSTEM$} {honest:<OWED$}");
    for cell in cells {
        text += &format!(" {:<CELL$}", shown(cell));
    }
    text.truncate(text.trim_end().len());
    for cell in cells.iter().filter(|cell| !cell.as_expected) {
        let (drive, expected) = (safe(&cell.tried.drive), safe(&cell.expected));
        text += &format!("\n  ! {drive}: not as expected; expected: {expected}");
        if cell.tried.harness_broken > 0 {
            text += &format!("; {} cuts show nothing", count(cell.tried.harness_broken));
        }
        if let Some(why) = &cell.tried.disturbed {
            text += &format!("; harness broken: {}", safe(why));
        }
    }
    text
}

/// Cuts by kind of loss, and how old the oldest is.
fn shown(cell: &CrashCell) -> String {
    let tried = &cell.tried;
    let mut text =
        format!("{}/{}/{} of {}", tried.lost, tried.corrupt, tried.unmountable, tried.cuts);
    if tried.losses() > 0 && tried.lost == tried.losses() && tried.most_lost == 1 {
        text += ", the last";
    } else if let Some(oldest) = tried.oldest_lost_ms {
        text += &format!(", {}", age(oldest));
    }
    if cell.as_expected { text } else { format!("{text} !") }
}

/// Returns the result of the whole table.
pub fn closing(summary: &CrashSummary) -> String {
    let (cells, unexpected) = (summary.cells.unwrap_or(0), summary.unexpected.unwrap_or(0));
    let text = match unexpected {
        0 => format!("\n{} as expected\n", number(cells, "cell", "cells")),
        _ => format!(
            "\n{} of {} not as expected\n",
            count(unexpected),
            number(cells, "cell", "cells")
        ),
    };
    text + &pace(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_crash::DriveTried;

    fn cell(drive: &str, tried: DriveTried, as_expected: bool) -> CrashCell {
        CrashCell {
            workload: "sqlite:wal-full".to_owned(),
            tried: DriveTried { drive: drive.to_owned(), fs: "ext4".to_owned(), cuts: 12, ..tried },
            expected: "loses nothing".to_owned(),
            as_expected,
        }
    }

    #[test]
    fn a_row_shows_what_each_drive_did() {
        let none = DriveTried { survived: 12, ..DriveTried::default() };
        let last =
            DriveTried { lost: 3, most_lost: 1, oldest_lost_ms: Some(4), ..DriveTried::default() };
        let mixed = DriveTried {
            lost: 7,
            corrupt: 4,
            unmountable: 1,
            most_lost: 90,
            oldest_lost_ms: Some(4100),
            ..DriveTried::default()
        };
        let drives = ["honest", "plp", "lying"].map(str::to_owned);
        let cells =
            [cell("honest", none, true), cell("plp", last, false), cell("lying", mixed, true)];
        let text = format!("{}\n{}", head(&drives), row("loses nothing", &cells));
        let rows: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(rows.len(), 3, "{text}");
        for (part, column) in [("0/0/0 of 12", "honest "), ("3/0/0 of 12, the last !", "plp")] {
            assert_eq!(rows[1].find(part), rows[0].rfind(column), "{text}");
        }
        assert!(rows[1].ends_with("7/4/1 of 12, 4.1 s"), "{text}");
        assert_eq!(rows[2], "  ! plp: not as expected; expected: loses nothing");
    }
}
