//! The topics of `fsure help`: exit codes, verdicts, patterns.

use fsure_core::ExitCode;
use fsure_integrity::model::Verdict;

/// A topic of the help.
pub(super) struct Topic {
    pub(super) name: &'static str,
    pub(super) text: fn() -> String,
}

/// All topics.
pub(super) const TOPICS: &[Topic] = &[
    Topic { name: "exit-codes", text: exit_codes },
    Topic { name: "verdicts", text: verdicts },
    Topic { name: "patterns", text: patterns },
];

/// The exit codes, each with its meaning.
pub const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "all that was checked is as recorded; after update: or is recorded now"),
    ("1", "differences, none of them suspicious"),
    ("2", "the command line makes no sense, or the machine is not in the state for it"),
    ("3", "damage: content that no date explains, or that is not always read the same"),
    ("4", "something could not be read: unreadable, denied or busy"),
    ("5", "a root is offline, there is no record, or the run was not finished"),
    ("6", "the record, a list or a signature cannot be trusted"),
    ("7", "damage was found, and all of it repaired"),
    ("70", "an internal fault, or a broken test harness: please report it"),
    ("130, 143", "interrupted or terminated, with the state saved"),
];

/// The exit codes of the storage commands.
const OF_STORAGE: &str = if cfg!(feature = "storage") {
    "A command that runs a program ('ram run', 'defer', 'uncached') ends with the program's own code. \
     Commands that measure have meanings of their own: 'fsure COMMAND --help' lists them.\n\n"
} else {
    ""
};

fn exit_codes() -> String {
    let widest = EXIT_CODES.iter().map(|(code, _)| code.len()).max().unwrap_or(0);
    let line = |(code, meaning): &(&str, &str)| format!("  {code:<widest$}  {meaning}\n");
    let table: String = EXIT_CODES.iter().map(line).collect();
    format!(
        "Exit codes\n\n{table}\n\
         If several apply, the first of 6, 3, 4, 5, 7, 1, 0 is taken, over all folders of one \
         call. A script should treat any other code as a failure.\n\n\
         {OF_STORAGE}In a script:\n\
         \x20 fsure verify -q photos; case $? in 0|1) ;; 3) echo damage;; *) echo failed;; esac\n"
    )
}

/// Returns what a verdict means, and what to do then.
fn explained(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Ok => ("the content and its date are as recorded", "nothing"),
        Verdict::Touched => (
            "the content is as recorded, and its date is another one",
            "nothing: 'fsure update' records the date",
        ),
        Verdict::Modified => (
            "other content with a newer date, as after an edit",
            "if it is an edit: 'fsure update' records it",
        ),
        Verdict::Reverted => (
            "other content with an older date, as after a file was put back",
            "if it was put back on purpose: 'fsure update' records it",
        ),
        Verdict::Rotten => (
            "other content, although size, dates and inode are as recorded: no program wrote \
             that; the medium, a controller or memory did",
            "repair it: 'fsure heal PATH --from COPY'; do not trust the disk",
        ),
        Verdict::Altered => (
            "other content under the recorded date; a program might have written it",
            "repair it: 'fsure heal PATH --from COPY'; if it is right: 'fsure update --accept PATH'",
        ),
        Verdict::DamagedCopy => (
            "other content of the same size in a copy, which does not have the dates of the \
             recorded files",
            "compare it with the original: 'fsure heal PATH --from ORIGINAL' repairs it",
        ),
        Verdict::Mismatch => (
            "other content, or another size, than a list says",
            "get the file again from where it came with the list",
        ),
        Verdict::Flaky => (
            "one read failed or gave other content, and the next gave the recorded content",
            "the file is intact; copy the data away soon, and replace cable, memory or disk",
        ),
        Verdict::Unreadable => (
            "a read error that stayed; the rest of the file is judged",
            "repair it: 'fsure heal PATH --from COPY'; the disk is failing",
        ),
        Verdict::Denied => {
            ("you are not permitted to read it", "run the command again as a user who may read it")
        }
        Verdict::Busy => (
            "it changed each time it was read",
            "run the command again when the program that writes it is done",
        ),
        Verdict::Missing => (
            "it is recorded, and is gone",
            "if it was deleted on purpose: 'fsure update'; else 'fsure heal PATH --from COPY'",
        ),
        Verdict::Moved => (
            "a recorded file, unchanged, under a new name",
            "nothing: 'fsure update' records the name",
        ),
        Verdict::TypeChanged => (
            "a file has become a folder or a link, or the other way round",
            "if that was intended: 'fsure update --accept PATH'",
        ),
        Verdict::New => ("it is not recorded", "nothing: 'fsure update' records it"),
        Verdict::Ignored => (
            "a pattern leaves it out, or its kind, or it is on another file system",
            "nothing; 'fsure help patterns' is about patterns",
        ),
        Verdict::RecordBad => (
            "its record is damaged; nothing is known of the file",
            "put the record together: 'fsure recover PATH'",
        ),
    }
}

fn verdicts() -> String {
    let one = |verdict: Verdict| {
        let (meaning, advice) = explained(verdict);
        format!("{}\n    {meaning}\n    -> {advice}\n", verdict.name())
    };
    let all: String = Verdict::ALL.map(one).concat();
    format!(
        "Verdicts: what fsure says of a file, and what to do then\n\n{all}\n\
         rotten, altered, damaged-copy and mismatch count as damage: such a file is never \
         recorded, unless '--accept' names it. With them, and with flaky, the exit code is \
         {}.\n",
        ExitCode::Damage.number()
    )
}

fn patterns() -> String {
    "Patterns: how to leave files out\n\n\
     Patterns are those of .gitignore. They work in three places:\n\
     \x20 --exclude '*.tmp'       for one call; can be repeated\n\
     \x20 .fsureignore            a file in the folder, a pattern on each line; for good\n\
     \x20 .fsure/config.toml      exclude = [\"*.tmp\"]; for all of a root, for good\n\n\
     Quote a pattern on the command line: without quotes the shell puts the names of files in \
     its place, and fsure takes all but the first for folders to work on.\n\n\
     \x20 *.tmp          every file and folder whose name ends with .tmp, at any depth\n\
     \x20 /cache         'cache' in this folder only\n\
     \x20 cache/         folders of this name, at any depth, with all that is in them\n\
     \x20 a/**/z         z at any depth below a\n\
     \x20 photo?.jpg     one letter in place of the question mark\n\
     \x20 [0-9]*.log     a name that begins with a digit\n\
     \x20 !keep.tmp      what an earlier pattern leaves out, but for this\n\
     \x20 # words        a comment, in a file\n\n\
     A file that is recorded and then left out stays recorded, and is reported as ignored.\n"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_has_a_line() {
        let codes = [
            ExitCode::Clean,
            ExitCode::Differences,
            ExitCode::Usage,
            ExitCode::Damage,
            ExitCode::Unread,
            ExitCode::Incomplete,
            ExitCode::RecordUntrusted,
            ExitCode::Healed,
            ExitCode::Internal,
            ExitCode::Interrupted,
            ExitCode::Terminated,
        ];
        let listed: Vec<_> = EXIT_CODES.iter().flat_map(|(code, _)| code.split(", ")).collect();
        assert_eq!(listed, codes.map(|code| code.number().to_string()));
    }

    #[test]
    fn every_verdict_has_a_meaning_and_an_advice() {
        let text = verdicts();
        for verdict in Verdict::ALL {
            let heading = format!("\n{}\n    ", verdict.name());
            assert_eq!(text.matches(&heading).count(), 1, "{}", verdict.name());
        }
        assert_eq!(text.matches("\n    -> ").count(), Verdict::ALL.len());
    }

    #[test]
    fn damage_is_what_the_exit_code_says() {
        let suspicious: Vec<_> = Verdict::ALL
            .into_iter()
            .filter(|verdict| verdict.is_suspicious())
            .map(Verdict::name)
            .collect();
        assert_eq!(suspicious, ["rotten", "altered", "damaged-copy", "mismatch"]);
        assert!(verdicts().contains("rotten, altered, damaged-copy and mismatch count as damage"));
    }

    #[test]
    fn tables_fit_on_a_narrow_terminal() {
        for Topic { name, text } in TOPICS {
            // What is not indented is wrapped by the help.
            let text = text();
            let table = text.lines().filter(|line| line.starts_with("  ") && !line.contains("->"));
            for line in table.filter(|line| !line.starts_with("    ")) {
                assert!(line.chars().count() <= 88, "{name}: {line}");
            }
        }
    }
}
