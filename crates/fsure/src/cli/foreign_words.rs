//! Commands and options of other programs, and what they are called in fsure.

/// Commands that other programs have, and what to type instead.
pub(super) struct ForeignCommand {
    pub(super) words: &'static [&'static str],
    /// A sentence that holds whatever the arguments are.
    pub(super) note: Option<&'static str>,
    /// Purposes, each with the command for it, which gets the user's arguments.
    pub(super) lines: &'static [(&'static str, &'static str)],
}

/// Commands of git, restic, borg, rclone, snapraid, chkbit, hashdeep, fio and the like.
pub(super) const FOREIGN_COMMANDS: &[ForeignCommand] = &[
    ForeignCommand {
        words: &["scan", "snapshot", "index", "save", "store", "create", "make", "new"],
        note: None,
        lines: &[("to record checksums", "update"), ("to compare with the record", "verify")],
    },
    ForeignCommand {
        words: &["validate", "validation", "inspect"],
        note: None,
        lines: &[("to compare with the record", "verify")],
    },
    ForeignCommand {
        words: &["checksum", "sum", "sha256sum", "b3sum", "hashdeep", "digest", "hash"],
        note: None,
        lines: &[
            ("to record checksums", "update"),
            ("to print those that are recorded", "export --format sha256sums"),
        ],
    },
    ForeignCommand {
        words: &["diff", "cmp", "difference"],
        note: None,
        lines: &[
            ("to see what has changed since the record", "status"),
            ("to compare two folders or lists", "compare"),
        ],
    },
    ForeignCommand {
        words: &["list", "ls", "show", "files", "print"],
        note: None,
        lines: &[
            ("to see what is new, changed or gone", "status"),
            ("to print the recorded checksums", "export --format sha256sums"),
        ],
    },
    ForeignCommand {
        words: &["info", "stat", "stats", "age", "ages", "coverage"],
        note: None,
        lines: &[
            ("to see what is new, changed or gone", "status"),
            ("to see how long ago files were verified", "status --age"),
        ],
    },
    ForeignCommand {
        words: &["history", "journal"],
        note: None,
        lines: &[("to see what changed when", "log")],
    },
    ForeignCommand {
        words: &["dedup", "dedupe", "dup", "duplicates", "duplicate"],
        note: None,
        lines: &[("to find files of equal content", "dupes")],
    },
    ForeignCommand {
        words: &["bench", "benchmark", "fio", "perf", "iops", "measure", "dd", "hdparm"],
        note: None,
        lines: &[
            ("to measure how fast storage is", "speed"),
            ("to measure what a durable write costs", "flush"),
        ],
    },
    ForeignCommand {
        words: &["test"],
        note: None,
        lines: &[("to check files", "verify"), ("to measure storage", "speed")],
    },
    ForeignCommand {
        words: &["watch", "daemon", "schedule", "cron", "monitor"],
        note: Some("fsure runs from a timer; docs/scrub.md has units for systemd"),
        lines: &[("to verify a part in each run", "scrub --budget 1h")],
    },
    ForeignCommand {
        words: &["backup", "copy", "cp", "clone", "push"],
        note: Some("fsure copies no files: it checks the copies of other programs"),
        lines: &[
            ("to check a copy", "compare"),
            ("to keep recovery data for repairs without a copy", "protect"),
        ],
    },
    ForeignCommand {
        words: &["sync", "rsync", "mirror"],
        note: Some("fsure copies no files: it checks the copies of other programs"),
        lines: &[("to check a copy", "compare"), ("to bring a RAM folder to the disk", "ram sync")],
    },
    ForeignCommand {
        words: &["mount", "ramdisk", "tmpfs"],
        note: None,
        lines: &[("to see what keeping a folder in RAM would do", "ram bind --plan")],
    },
    ForeignCommand {
        words: &["nocache"],
        note: None,
        lines: &[("to run a command without filling the page cache", "uncached --")],
    },
    ForeignCommand {
        words: &["umount", "unmount"],
        note: None,
        lines: &[("to bring a RAM folder to the disk and end it", "ram unbind")],
    },
    ForeignCommand {
        words: &["clean", "cleanup", "prune", "gc", "purge"],
        note: Some("fsure leaves nothing that has to be cleaned, and removes no files"),
        lines: &[
            ("to find files of equal content", "dupes"),
            ("to record that files are gone", "update"),
        ],
    },
    ForeignCommand {
        words: &["delete", "remove", "rm"],
        note: Some("fsure removes no files"),
        lines: &[("to record that files are gone", "update")],
    },
    ForeignCommand {
        words: &["fsck", "rebuild"],
        note: None,
        lines: &[
            ("to see what can be saved of a damaged record", "recover --dry-run"),
            ("to check the files", "verify"),
        ],
    },
    ForeignCommand { words: &["sign"], note: None, lines: &[("to sign the record", "seal")] },
    ForeignCommand {
        words: &["completions", "completion", "generate", "man", "manual"],
        note: Some(
            "manual pages and completions come with the packages; in the repository of fsure, \
             'cargo xtask man DIR' and 'cargo xtask completions DIR' make them",
        ),
        lines: &[],
    },
    ForeignCommand {
        words: &["docs", "doc", "usage", "examples", "topics"],
        note: None,
        lines: &[("to see the commands", "help"), ("to see one, with examples", "help update")],
    },
    ForeignCommand {
        words: &["config", "settings", "configure"],
        note: Some("settings are in config.toml; docs/configuration.md describes them"),
        lines: &[],
    },
    ForeignCommand {
        words: &["exit-codes", "exitcodes", "codes"],
        note: None,
        lines: &[("it is a topic", "help exit-codes")],
    },
    ForeignCommand {
        words: &["verdicts", "verdict"],
        note: None,
        lines: &[("it is a topic", "help verdicts")],
    },
    ForeignCommand {
        words: &["patterns", "exclude", "ignore"],
        note: None,
        lines: &[("it is a topic", "help patterns")],
    },
    ForeignCommand {
        words: &["html", "page", "chart", "plot"],
        note: None,
        lines: &[("to draw stored results", "report")],
    },
];

/// Advice for an option of another program.
#[derive(Clone, Copy)]
pub(super) enum OptionAdvice {
    /// The option of fsure that takes the same value.
    Is(&'static str),
    /// A sentence that needs no command.
    Note(&'static str),
    /// The reason why nothing has to be asked for.
    NotNeeded(&'static str),
    /// The same, for some commands only.
    NotNeededBy(&'static [&'static str], &'static str),
    /// A purpose, and the command that serves it.
    Command(&'static str, &'static str),
}

/// Options of other programs, with advice. The first is given whose line is understood.
pub(super) const FOREIGN_OPTIONS: &[(&[&str], OptionAdvice)] = &[
    (&["--ignore", "--skip", "--exclude-dir", "--filter", "--omit"], OptionAdvice::Is("--exclude")),
    (&["--hash", "--algorithm", "--algo", "--checksum", "--digests"], OptionAdvice::Is("--digest")),
    (
        &["--jobs", "--num-threads", "--checkers", "--workers", "--parallel", "--cores"],
        OptionAdvice::Is("--threads"),
    ),
    (
        &["--limit", "--limit-rate", "--limit-download", "--max-rate", "--throttle"],
        OptionAdvice::Is("--rate"),
    ),
    (&["--database", "--db", "--record"], OptionAdvice::Is("--catalog")),
    (&["--key", "--pubkey", "--public-key"], OptionAdvice::Is("--signed-by")),
    (
        &["-n", "--dry-run", "--dryrun"],
        OptionAdvice::NotNeededBy(
            &["status", "compare", "dupes", "log"],
            "this command writes nothing anyway",
        ),
    ),
    (
        &["-n", "--dry-run", "--dryrun"],
        OptionAdvice::NotNeededBy(
            &["export"],
            "without '--output' the list is printed; only digests that the record lacks are computed \
             and recorded",
        ),
    ),
    (&["--verify", "--check", "-c"], OptionAdvice::Command("to compare with the record", "verify")),
    (&["--update", "--create", "--add"], OptionAdvice::Command("to record checksums", "update")),
    (&["--silent"], OptionAdvice::Is("--quiet")),
    (&["--no-color", "--no-colour", "--nocolor"], OptionAdvice::Is("--color=never")),
    (&["--colour"], OptionAdvice::Is("--color")),
    (&["--duration", "--time", "--runtime"], OptionAdvice::Is("--for")),
    (&["--duration", "--time", "--runtime"], OptionAdvice::Is("--budget")),
    (&["--rehash", "--always", "--paranoid", "--deep"], OptionAdvice::Is("--full")),
    (&["--out", "--outfile"], OptionAdvice::Is("--output")),
    (&["--older-than", "--age"], OptionAdvice::Is("--max-age")),
    (
        &["-r", "-R", "--recursive", "--recurse"],
        OptionAdvice::NotNeeded("folders below are always included"),
    ),
    (
        &["--one-file-system", "-x", "--xdev"],
        OptionAdvice::NotNeeded("other file systems are left out anyway"),
    ),
    (&["-x"], OptionAdvice::Is("--exclude")),
    (
        &["--include", "--only", "--include-dir"],
        OptionAdvice::Note(
            "name the folders and files that are wanted in place of PATH, or a list of them with \
             '--files-from FILE'; patterns only leave out, with '--exclude'",
        ),
    ),
    (&["--progress", "-P"], OptionAdvice::NotNeeded("progress is shown on a terminal anyway")),
    (&["--version", "-V"], OptionAdvice::Command("to see the version of fsure", "--version")),
    (
        &["--fix", "--repair", "--heal"],
        OptionAdvice::Command("to see what can be repaired", "heal"),
    ),
];
