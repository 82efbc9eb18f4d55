//! Examples of every command, and where to read on: one table for the help, the manual pages
//! and the tests, which parse each example.

use super::command_notes::CommandNotes;

/// Returns the notes on a command, by its words behind `fsure`; `None` if there is no such
/// command.
pub fn notes(command: &str) -> Option<&'static CommandNotes> {
    all().find(|notes| notes.command == command)
}

/// Returns the notes on all commands of this build.
fn all() -> impl Iterator<Item = &'static CommandNotes> {
    #[cfg(feature = "storage")]
    let more = super::storage::EXAMPLES;
    #[cfg(not(feature = "storage"))]
    let more = &[];
    NOTES.iter().chain(more)
}

/// The notes on the commands that every build has.
const NOTES: &[CommandNotes] = &[
    CommandNotes {
        command: "update",
        examples: &[
            ("fsure update photos", "Record every file below photos; later: what has changed"),
            ("fsure update photos --exclude '*.tmp'", "Leave files out; quote the pattern"),
            ("fsure update photos --accept photos/b.raw", "Record a change that was reported"),
            ("fsure update /mnt/usb --catalog ~/usb.db", "Keep the record apart from the data"),
        ],
        see_also: &["verify", "status", "help patterns"],
        page: "docs/promises.md",
    },
    CommandNotes {
        command: "verify",
        examples: &[
            ("fsure verify photos", "Read every file again, and name those that are damaged"),
            ("fsure verify photos/2026 --rate 50MiB/s", "Read a part only, and not too fast"),
            ("fsure verify photos --against SHA256SUMS", "Compare with a list that came along"),
            ("fsure verify -q photos || echo damage", "Print findings only, for a script"),
        ],
        see_also: &["heal", "scrub", "help verdicts", "help exit-codes"],
        page: "docs/promises.md",
    },
    CommandNotes {
        command: "status",
        examples: &[
            ("fsure status photos", "Show what is new, changed or gone, in seconds"),
            ("fsure status photos --age", "Show how long ago the files were verified"),
            ("fsure status --all photos", "Also list the files that are as recorded"),
        ],
        see_also: &["verify", "log", "help verdicts"],
        page: "docs/promises.md",
    },
    CommandNotes {
        command: "scrub",
        examples: &[
            ("fsure scrub photos --budget 1h", "Verify for an hour, the longest unverified first"),
            ("fsure scrub photos --budget 10% --idle", "A tenth a night, behind all other work"),
            ("fsure scrub photos --max-age 90d", "Leave out what was verified in three months"),
        ],
        see_also: &["verify", "status"],
        page: "docs/scrub.md",
    },
    CommandNotes {
        command: "heal",
        examples: &[
            ("fsure heal photos --from /mnt/copy/photos", "Show what a copy can repair"),
            ("fsure heal photos --from /mnt/copy/photos --yes", "Repair it"),
            ("fsure heal photos --yes", "Repair from the recovery data of 'fsure protect'"),
        ],
        see_also: &["verify", "protect"],
        page: "docs/heal.md",
    },
    CommandNotes {
        command: "protect",
        examples: &[
            ("fsure protect photos --dry-run", "Show how much is read and written, and where"),
            ("fsure protect photos", "Keep recovery data for 5 % of each group of files"),
            ("fsure protect photos --redundancy 10%", "Keep more, for a disk that is failing"),
        ],
        see_also: &["heal", "update"],
        page: "docs/parity.md",
    },
    CommandNotes {
        command: "recover",
        examples: &[
            ("fsure recover photos --dry-run", "Show what is left of a damaged record"),
            ("fsure recover photos", "Put the record together again"),
            ("fsure recover photos --from ~/catalog.db.backup", "Take rows from a backup, too"),
        ],
        see_also: &["verify", "heal"],
        page: "docs/recover.md",
    },
    CommandNotes {
        command: "compare",
        examples: &[
            ("fsure compare photos /mnt/backup/photos", "Is the backup the same, by content?"),
            ("fsure compare photos SHA256SUMS", "Compare a folder with a list"),
            ("fsure compare photos copy --records", "Compare the records; read no data"),
        ],
        see_also: &["verify", "dupes", "heal"],
        page: "docs/exchange.md",
    },
    CommandNotes {
        command: "dupes",
        examples: &[
            ("fsure dupes photos", "Show files of equal content, in groups"),
            ("fsure dupes photos /mnt/usb", "Search two folders, each by itself"),
            ("fsure dupes photos --json", "One JSON object a line, for a script"),
        ],
        see_also: &["compare"],
        page: "docs/promises.md",
    },
    CommandNotes {
        command: "log",
        examples: &[
            ("fsure log photos", "Show what each run has changed or verified"),
            ("fsure log photos --signed-by me.pub", "Check that the newest state is signed"),
            ("fsure log photos --json", "One JSON object a line, for a script"),
        ],
        see_also: &["status", "seal"],
        page: "docs/trust.md",
    },
    CommandNotes {
        command: "seal",
        examples: &[
            (
                "minisign -G -p me.pub -s me.key && fsure seal photos --sign me.key",
                "Make keys, sign",
            ),
            ("fsure seal photos --sign me.key --password-file pass.txt", "Sign without a question"),
            ("fsure verify photos --signed-by me.pub", "Verify against the signed record only"),
        ],
        see_also: &["log", "verify"],
        page: "docs/trust.md",
    },
    CommandNotes {
        command: "export",
        examples: &[
            ("fsure export photos --format sha256sums -o photos/SHA256SUMS", "For sha256sum -c"),
            ("fsure export photos --format bagit -o photos-bag", "Make the list files of a bag"),
            ("fsure export photos --format json | gzip > photos.json.gz", "Keep all of it as JSON"),
        ],
        see_also: &["import", "verify"],
        page: "docs/exchange.md",
    },
    CommandNotes {
        command: "import",
        examples: &[
            ("fsure import photos/SHA256SUMS", "Record what a list says, without reading files"),
            ("fsure import SHA256SUMS --root photos", "Names in the list are relative to photos"),
            ("curl -s https://example.org/SHA256SUMS | fsure import -", "Read standard input"),
        ],
        see_also: &["export", "verify"],
        page: "docs/exchange.md",
    },
    CommandNotes {
        command: "help",
        examples: &[
            ("fsure help update", "Show all options of a command, with examples"),
            #[cfg(feature = "storage")]
            ("fsure help ram bind", "Show the help of a command of a command"),
            #[cfg(not(feature = "storage"))]
            ("fsure help verdicts", "Show what each verdict means, and what to do then"),
            ("fsure help exit-codes", "Show a topic: exit-codes, verdicts or patterns"),
        ],
        see_also: &["update", "verify"],
        page: "README.md",
    },
];

#[cfg(test)]
mod tests {
    use clap::Command;
    use clap::error::ErrorKind;

    use super::super::help;
    use super::*;

    /// The words of each command of a line for a shell that calls fsure.
    fn calls(line: &str) -> Vec<Vec<String>> {
        let (mut calls, mut words, mut word) = (vec![], vec![], None::<String>);
        let mut is_quoted = false;
        for letter in line.chars().chain([';']) {
            match letter {
                '\'' => {
                    is_quoted = !is_quoted;
                    word.get_or_insert_default();
                }
                ' ' | ';' | '|' | '&' | '>' if !is_quoted => {
                    words.extend(word.take());
                    if letter != ' ' {
                        calls.push(std::mem::take(&mut words));
                    }
                }
                other => word.get_or_insert_default().push(other),
            }
        }
        let behind_sudo = |mut call: Vec<String>| {
            call.drain(..usize::from(call.first().is_some_and(|word| word == "sudo")));
            call
        };
        let calls = calls.into_iter().map(behind_sudo);
        calls.filter(|call| call.first().is_some_and(|word| word == "fsure")).collect()
    }

    /// All commands below one, by their words behind `fsure`.
    fn commands(above: &str, command: &Command, all: &mut Vec<String>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let words = format!("{above} {}", sub.get_name()).trim().to_owned();
            commands(&words, sub, all);
            all.push(words);
        }
    }

    #[test]
    fn lines_are_split_as_a_shell_does() {
        let line = "minisign -G && sudo fsure update 'a b' --exclude '*.tmp' | wc > f; fsure log";
        let expected = [vec!["fsure", "update", "a b", "--exclude", "*.tmp"], vec!["fsure", "log"]];
        assert_eq!(calls(line), expected);
    }

    #[test]
    fn every_command_has_three_examples_and_a_page() {
        let mut all = vec![];
        commands("", &help::command(), &mut all);
        for words in &all {
            let notes = notes(words).unwrap_or_else(|| panic!("no notes on {words}"));
            assert!(notes.examples.len() >= 3, "{words}");
            let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
            assert!(std::path::Path::new(root).join(notes.page).is_file(), "{}", notes.page);
            for other in notes.see_also {
                let is_topic = other.strip_prefix("help ").is_some();
                assert!(is_topic || all.iter().any(|words| words == other), "{words}: {other}");
            }
        }
        let unknown = super::all().filter(|notes| !all.iter().any(|words| words == notes.command));
        assert_eq!(unknown.map(|notes| notes.command).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn every_example_is_a_command_line_that_is_understood() {
        for notes in super::all() {
            let mut mentions = false;
            for (line, sentence) in notes.examples {
                let calls = calls(line);
                assert!(!calls.is_empty(), "{line}");
                for call in calls {
                    mentions |= call[1..].join(" ").starts_with(notes.command);
                    let parsed = help::command().try_get_matches_from(&call);
                    let error = parsed.err().filter(|error| error.kind() != ErrorKind::DisplayHelp);
                    assert!(error.is_none(), "{line}: {}", error.unwrap());
                }
                assert!(line.len() <= 78 && sentence.len() <= 74, "too wide: {line}");
                assert!(!sentence.ends_with('.'), "{sentence}");
            }
            assert!(mentions, "no example of {} is one", notes.command);
        }
    }
}
