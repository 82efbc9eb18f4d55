//! Examples of every command, and where to read on: one table for the help, the manual pages
//! and the tests, which parse each example.

/// Examples of one command, and where to read on.
pub struct CommandNotes {
    /// The words of the command behind `fsure`, such as `ram bind`.
    pub command: &'static str,
    /// Lines for a shell, each with a sentence that says what it does.
    pub examples: &'static [(&'static str, &'static str)],
    /// Related commands, by their words behind `fsure`.
    pub see_also: &'static [&'static str],
    /// The page of the documentation, by its path in the repository.
    pub page: &'static str,
}

/// Returns the notes on a command, by its words behind `fsure`; `None` if there is no such
/// command.
pub fn notes(command: &str) -> Option<&'static CommandNotes> {
    NOTES.iter().find(|notes| notes.command == command)
}

/// The notes on all commands.
pub(super) const NOTES: &[CommandNotes] = &[
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
            ("fsure protect photos", "Keep recovery data for 5 % of each group of files"),
            ("fsure protect photos --redundancy 10%", "Keep more, for a disk that is failing"),
            ("fsure protect /mnt/usb --catalog ~/usb.db", "Keep it beside a record elsewhere"),
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
        command: "speed",
        examples: &[
            ("fsure speed", "Measure the storage of the current folder for a minute"),
            ("fsure speed /mnt/a /mnt/b --save disks.jsonl", "Measure two disks, keep the result"),
            ("fsure report disks.jsonl -o disks.html", "Make a page of it"),
            ("fsure speed /mnt/a --rungs disk --budget 20s", "Measure a part, in less time"),
        ],
        see_also: &["speed compare", "flush", "report"],
        page: "docs/method.md",
    },
    CommandNotes {
        command: "speed compare",
        examples: &[
            ("fsure speed compare before.jsonl after.jsonl", "Show which rungs have changed"),
            ("fsure speed compare a.jsonl b.jsonl || echo changed", "Act on the exit code"),
            ("fsure speed compare a.jsonl b.jsonl --json", "One JSON object a line"),
        ],
        see_also: &["speed", "report"],
        page: "docs/method.md",
    },
    CommandNotes {
        command: "flush",
        examples: &[
            ("fsure flush /mnt/data", "Measure every way to make a write durable there"),
            ("fsure flush /mnt/data --profile postgres,sqlite", "Also commit as databases do"),
            ("fsure flush /mnt/a /mnt/b --save flush.jsonl", "Measure two disks, keep the result"),
        ],
        see_also: &["speed", "powercut", "report"],
        page: "docs/flush.md",
    },
    CommandNotes {
        command: "crash",
        examples: &[
            ("fsure crash --workload append", "Cut the power of a built-in program"),
            ("fsure crash --fs ext4 --check ./check.sh -- ./program", "Test a program of yours"),
            ("fsure crash --matrix", "Print what each drive and file system keeps"),
        ],
        see_also: &["powercut", "defer"],
        page: "docs/crash.md",
    },
    CommandNotes {
        command: "powercut",
        examples: &[
            (
                "fsure powercut witness --listen 0.0.0.0:7000 --dir reports",
                "On a machine that keeps its power: begin first",
            ),
            (
                "fsure powercut write /mnt/disk --witness 192.0.2.7:7000",
                "On the machine with the drive: pull its plug meanwhile",
            ),
            (
                "fsure powercut check /mnt/disk --witness 192.0.2.7:7000",
                "After the restart: is all there that was acknowledged?",
            ),
        ],
        see_also: &["flush", "crash"],
        page: "docs/powercut.md",
    },
    CommandNotes {
        command: "powercut witness",
        examples: &[
            ("fsure powercut witness --listen 0.0.0.0:7000 --dir reports", "Wait for writers"),
            (
                "fsure powercut witness --listen [::]:7000 --dir reports --token-file secret",
                "Take only writers that know the secret",
            ),
            (
                "fsure powercut witness --listen 127.0.0.1:7000 --dir reports",
                "For a virtual machine on this one, or a tunnel",
            ),
        ],
        see_also: &["powercut write", "powercut check"],
        page: "docs/powercut.md",
    },
    CommandNotes {
        command: "powercut write",
        examples: &[
            (
                "fsure powercut write /mnt/disk --witness 192.0.2.7:7000",
                "Write until the power is cut",
            ),
            (
                "fsure powercut write /mnt/disk --witness 192.0.2.7:7000 --cut-cmd './plug off'",
                "Cut it by a smart plug, at a random moment",
            ),
            (
                "fsure powercut write /mnt/disk --witness 192.0.2.7:7000 --for 30s",
                "Try the connection, without a cut",
            ),
        ],
        see_also: &["powercut witness", "powercut check"],
        page: "docs/powercut.md",
    },
    CommandNotes {
        command: "powercut check",
        examples: &[
            (
                "fsure powercut check /mnt/disk --witness 192.0.2.7:7000",
                "After a cut: is all there that was acknowledged?",
            ),
            (
                "fsure powercut check /mnt/disk --witness 192.0.2.7:7000 --token-file secret",
                "With the secret that both machines share",
            ),
            (
                "fsure powercut check /mnt/disk --witness 192.0.2.7:7000 --json",
                "One JSON object a line, for a script",
            ),
        ],
        see_also: &["powercut write", "flush"],
        page: "docs/powercut.md",
    },
    CommandNotes {
        command: "defer",
        examples: &[
            ("fsure defer --max-loss 1s -- make test", "Run tests whose database flushes a lot"),
            (
                "fsure defer --max-loss 200ms --dir /mnt/data -- ./import.sh",
                "Also on the file system of /mnt/data",
            ),
            (
                "fsure defer --max-loss 1s --backend seccomp -- ./program",
                "For a program that the library cannot be loaded into",
            ),
        ],
        see_also: &["ram run", "flush", "crash"],
        page: "docs/defer.md",
    },
    CommandNotes {
        command: "hot",
        examples: &[
            ("sudo fsure hot", "Watch all programs for 30 seconds"),
            ("sudo fsure hot --for 5m /home /var", "Watch two folders for five minutes"),
            ("sudo fsure hot --by written", "Rank folders by what is written there"),
        ],
        see_also: &["hot advise", "ram bind"],
        page: "docs/hot.md",
    },
    CommandNotes {
        command: "hot advise",
        examples: &[
            ("sudo fsure hot advise", "Watch for 30 seconds, and advise"),
            ("sudo fsure hot advise --for 10m", "Watch longer: the advice is better"),
            ("sudo fsure hot advise /srv --json", "One JSON object a line, for a script"),
        ],
        see_also: &["hot", "ram bind", "ram pin"],
        page: "docs/hot.md",
    },
    CommandNotes {
        command: "ram",
        examples: &[
            ("fsure ram run target -- cargo build", "Build in memory, without root"),
            ("sudo fsure ram bind --plan /srv/build", "Show what would be done; do nothing"),
            ("fsure ram doctor", "Show what this machine lacks for it"),
        ],
        see_also: &["hot advise", "ram run", "ram bind"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram run",
        examples: &[
            ("fsure ram run target -- cargo build", "Build in memory, without root"),
            ("fsure ram run --size 2G work -- ./batch.sh", "Take at most 2 GiB of memory"),
            ("fsure ram run a b --max-loss 200ms -- sh", "Two folders, and a shell that sees them"),
        ],
        see_also: &["ram bind", "defer"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram bind",
        examples: &[
            ("sudo fsure ram bind --plan /srv/build", "Show what would be done; do nothing"),
            ("sudo fsure ram bind /srv/build", "Keep it in memory, for all programs"),
            ("sudo fsure ram bind /srv/build --max-loss 5s --size 4G", "Set what it may take"),
        ],
        see_also: &["ram status", "ram unbind", "ram doctor"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram status",
        examples: &[
            ("fsure ram status", "Show every folder in RAM, and how far behind its disk copy is"),
            ("fsure ram status /srv/build", "Show one folder"),
            ("fsure ram status --json", "One JSON object a line, for a script"),
        ],
        see_also: &["ram sync", "ram doctor"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram sync",
        examples: &[
            ("sudo fsure ram sync /srv/build", "Bring it to the disk, and wait for that"),
            ("sudo fsure ram sync --all", "The same for every folder in RAM"),
            ("sudo fsure ram sync --all && sudo reboot", "Before a restart"),
        ],
        see_also: &["ram status", "ram unbind"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram verify",
        examples: &[
            ("sudo fsure ram verify /srv/build", "Compare memory and disk, byte by byte"),
            ("sudo fsure ram verify --all", "The same for every folder in RAM"),
            ("sudo fsure ram verify --all || echo differs", "Act on the exit code"),
        ],
        see_also: &["ram status", "ram sync"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram unbind",
        examples: &[
            ("sudo fsure ram unbind /srv/build", "Bring it to the disk, and end"),
            ("sudo fsure ram unbind --all", "The same for every folder in RAM"),
            ("sudo fsure ram unbind --all && sudo reboot", "Before a restart"),
        ],
        see_also: &["ram bind", "ram sync"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram recover",
        examples: &[
            ("sudo fsure ram recover", "After a crash: put every folder in order"),
            ("sudo fsure ram recover /srv/build", "Put one folder in order"),
            ("sudo fsure ram recover --json", "One JSON object a line, for a script"),
        ],
        see_also: &["ram doctor", "ram bind"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram pin",
        examples: &[
            ("fsure ram pin /srv/www", "Hold the files in memory; nothing can be lost"),
            ("fsure ram pin .", "Hold the current folder"),
            ("fsure ram pin --foreground /srv/www", "Stay in the foreground, for systemd"),
        ],
        see_also: &["ram unpin", "ram bind"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram unpin",
        examples: &[
            ("fsure ram unpin /srv/www", "Let go of it"),
            ("fsure ram unpin .", "Let go of the current folder"),
            ("fsure ram unpin /mnt/usb && umount /mnt/usb", "Before a disk is taken out"),
        ],
        see_also: &["ram pin"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram disk",
        examples: &[
            ("sudo fsure ram disk create scratch --size 2G", "Make /run/fsure/disk/scratch"),
            ("fsure ram disk list", "Show the RAM disks that are there"),
            ("sudo fsure ram disk destroy scratch", "Take it away, if it is empty"),
        ],
        see_also: &["ram bind", "ram run"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram disk create",
        examples: &[
            ("sudo fsure ram disk create scratch --size 2G", "Make /run/fsure/disk/scratch"),
            ("sudo fsure ram disk create ./work --size 500M", "Use an empty folder"),
            ("sudo fsure ram disk create scratch --size 2G --json", "Print the result as JSON"),
        ],
        see_also: &["ram disk list", "ram disk destroy"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram disk list",
        examples: &[
            ("fsure ram disk list", "Show the RAM disks that are there"),
            ("fsure ram disk list --json", "One JSON object a line, for a script"),
            ("fsure ram disk list && sudo fsure ram disk destroy scratch", "Look, then take away"),
        ],
        see_also: &["ram disk create", "ram disk destroy"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram disk destroy",
        examples: &[
            ("sudo fsure ram disk destroy scratch", "Take it away, if it is empty"),
            ("sudo fsure ram disk destroy ./work", "Take away one that is in a folder"),
            (
                "cp -a /run/fsure/disk/scratch . && sudo fsure ram disk destroy scratch",
                "Copy first",
            ),
        ],
        see_also: &["ram disk create", "ram disk list"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram doctor",
        examples: &[
            ("fsure ram doctor", "Show what this machine lacks for folders in RAM"),
            ("fsure ram doctor /srv/build", "Also look at a folder that a crash may have hit"),
            ("fsure ram doctor --quiet || echo act", "Print only what is to be done"),
        ],
        see_also: &["ram bind", "ram recover"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "report",
        examples: &[
            (
                "fsure speed --save speed.jsonl && fsure report speed.jsonl -o speed.html",
                "Measure, draw",
            ),
            ("fsure verify photos --json > v.json; fsure report v.json -o v.html", "Verify, draw"),
            ("fsure report a.jsonl b.jsonl -o both.html --svg charts", "Also keep the charts"),
        ],
        see_also: &["speed", "flush", "verify"],
        page: "docs/results.md",
    },
    CommandNotes {
        command: "help",
        examples: &[
            ("fsure help update", "Show all options of a command, with examples"),
            ("fsure help ram bind", "Show the help of a command of a command"),
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
        let unknown = NOTES.iter().filter(|notes| !all.iter().any(|words| words == notes.command));
        assert_eq!(unknown.map(|notes| notes.command).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn every_example_is_a_command_line_that_is_understood() {
        for notes in NOTES {
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
