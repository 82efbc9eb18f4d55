//! Further sentences on a scrub: how much was due, what is left, and what it will never
//! come to by itself.

use super::{RootPaths, number};
use fsure_core::block_hash::BLOCK;
use fsure_core::count;
use fsure_core::units;
use fsure_integrity::model::{Outcome, ScrubSummary, Verdict};

/// The sentences of a scrub, the gravest first.
pub(super) fn sentences(paths: &RootPaths, scrub: &ScrubSummary, outcome: &Outcome) -> Vec<String> {
    let undecided = (scrub.undecided_files > 0).then(|| {
        let who = number(scrub.undecided_files, "file", "files");
        format!(
            "{who} DIFFERED at the first read, and the run ended before the second one: they are \
             not judged, and the next run begins with them."
        )
    });
    let too_large = scrub.too_large_first.as_ref().map(|first| {
        let who = number(scrub.too_large_files - scrub.below_block_files, "file is", "files are");
        let larger = match scrub.too_large_budget {
            0 => "A longer budget".to_owned(),
            bytes => format!("'--budget {}'", budget_of(bytes)),
        };
        format!(
            "{who} TOO LARGE for this budget and cannot be verified in parts, for want of block \
             values. {larger} verifies them, or each by itself, the first with '{}'.",
            paths.command_on("verify", first)
        )
    });
    let below_block = (scrub.below_block_files > 0).then(|| {
        let who = number(scrub.below_block_files, "file WAITS", "files WAIT");
        format!(
            "{who}: the budget leaves less than one block ({}), the least that is read of a large \
             file. The least that works is '--budget {}'.",
            units::size(BLOCK),
            budget_of(scrub.below_block_budget)
        )
    });
    let eaten_up = scrub.is_eaten_up().then(|| {
        "Only files that were bad before fitted into the budget: the OTHERS WAIT until those are \
         healed or the budget is larger."
            .to_owned()
    });
    let elsewhere = (outcome.files.of(Verdict::Missing) > 0).then(|| {
        format!(
            "Missing files might have been renamed, which a scrub does not detect: run '{}'.",
            paths.command("status")
        )
    });
    let all =
        [undecided, too_large, below_block, eaten_up, elsewhere, Some(how_far(scrub, outcome))];
    all.into_iter().flatten().collect()
}

/// A budget of at least so many bytes, as the option takes it.
fn budget_of(bytes: u64) -> String {
    format!("{}MiB", bytes.div_ceil(1 << 20))
}

fn how_far(scrub: &ScrubSummary, outcome: &Outcome) -> String {
    let well = outcome.files.count(|verdict| matches!(verdict, Verdict::Ok | Verdict::Touched));
    let are = if well == 1 { "is" } else { "are" };
    let mut text = match scrub.due_files {
        0 => "Nothing was due.".to_owned(),
        due => format!("{} of {} due {are} as recorded", count(well), number(due, "file", "files")),
    };
    if scrub.due_files > 0 {
        if scrub.partly_files > 0 {
            let who = number(scrub.partly_files, "large file", "large files");
            let bytes = units::size(scrub.partly_bytes);
            text += &format!(", and {bytes} of {who} so far");
        }
        text += match scrub.left_files() {
            0 => "; nothing is left.",
            _ => "; ",
        };
        if scrub.left_files() > 0 {
            let left = number(scrub.left_files(), "file", "files");
            let bytes = units::size(scrub.left_bytes());
            text += &format!("{left} ({bytes}) left for the next run.");
        }
    }
    text + " A scrub does not look for new files."
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_core::RelPath;

    #[test]
    fn remaining_and_oversized_files_are_reported() {
        let mut outcome = Outcome::default();
        let mut scrub = ScrubSummary::default();
        let note = " A scrub does not look for new files.";
        assert_eq!(
            sentences(&RootPaths::in_root(), &scrub, &outcome),
            [format!("Nothing was due.{note}")]
        );
        outcome.files.add(Verdict::Ok);
        (scrub.due_files, scrub.due_bytes) = (1, 5);
        (scrub.done_files, scrub.done_bytes) = (1, 5);
        let all = "1 of 1 file due is as recorded; nothing is left.";
        assert_eq!(sentences(&RootPaths::in_root(), &scrub, &outcome), [format!("{all}{note}")]);
        (scrub.due_files, scrub.due_bytes) = (1_003, 3 << 20);
        (scrub.partly_files, scrub.partly_bytes) = (1, 1 << 20);
        (scrub.too_large_files, scrub.too_large_first) = (1, Some(RelPath::from_bytes(*b"a\n")));
        (scrub.undecided_files, scrub.by_age_files) = (2, 1);
        let text = sentences(&RootPaths::in_root(), &scrub, &outcome);
        assert!(text[0].starts_with("2 files DIFFERED at the first read"), "{text:?}");
        assert!(
            text[1].contains("1 file is TOO LARGE") && text[1].contains(r"'fsure verify $'a\x0a''"),
            "{text:?}"
        );
        (scrub.again_files, scrub.by_age_files) = (1, 0);
        assert!(sentences(&RootPaths::in_root(), &scrub, &outcome)[2].contains("OTHERS WAIT"));
        assert_eq!(
            text[2],
            format!(
                "1 of 1,003 files due is as recorded, and 1.0 MiB of 1 large file so far; \
                 1,002 files (2.0 MiB) left for the next run.{note}"
            )
        );
    }
}
