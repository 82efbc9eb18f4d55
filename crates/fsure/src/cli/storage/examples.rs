//! Examples of the storage commands.

use super::super::command_notes::CommandNotes;

/// The notes on them.
pub(in crate::cli) const EXAMPLES: &[CommandNotes] = &[
    CommandNotes {
        command: "speed",
        examples: &[
            ("fsure speed", "Measure the storage of the current folder for a minute"),
            ("fsure speed /mnt/a /mnt/b --save disks.jsonl", "Measure two disks, keep the result"),
            ("fsure report disks.jsonl -o disks.html", "Make a page of it"),
            ("fsure speed /mnt/a --rungs disk --budget 20s", "Measure a part, in less time"),
            ("fsure speed /mnt/a --io random", "Random reads and writes of 4 KiB by queue depth"),
            ("fsure speed /mnt/a --io sizes", "Throughput by the size of a request"),
            ("fsure speed /mnt/a --io sustained -y", "Write until the drive becomes slower"),
            (
                "fsure speed /dev/sdb --io area",
                "Read a device from its beginning to its end (root)",
            ),
            ("fsure speed --tree /mnt/a", "Show what reading through the page cache costs"),
        ],
        see_also: &["speed compare", "flush", "report"],
        page: "docs/method.md",
    },
    CommandNotes {
        command: "speed compare",
        examples: &[
            ("fsure speed compare a.jsonl b.jsonl c.jsonl", "Show which of three disks is faster"),
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
            ("fsure flush /mnt/a --rate 30/s", "Measure what thirty writes a second cost"),
        ],
        see_also: &["flush compare", "flush trace", "speed", "powercut", "report"],
        page: "docs/flush.md",
    },
    CommandNotes {
        command: "flush compare",
        examples: &[
            ("fsure flush compare a.jsonl b.jsonl", "Show which of two disks suits a database"),
            ("fsure flush compare old.jsonl new.jsonl", "Show what other firmware has changed"),
            ("fsure flush compare a.jsonl b.jsonl --json", "One JSON object a line"),
        ],
        see_also: &["flush", "report"],
        page: "docs/flush.md",
    },
    CommandNotes {
        command: "flush trace",
        examples: &[
            ("sudo fsure flush trace -- ./import.sh", "Show what flushes cost a program, by file"),
            (
                "sudo fsure flush trace --save trace.jsonl -- make test",
                "Keep the result, for 'fsure report'",
            ),
            ("sudo fsure flush trace -- runuser -u max make test", "Run it as the user max"),
        ],
        see_also: &["hot", "defer", "flush"],
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
        command: "uncached",
        examples: &[
            (
                "sudo fsure uncached -- tar cf /mnt/usb/home.tar /home",
                "Make a backup that leaves the files of other programs in memory",
            ),
            (
                "fsure uncached -- cp -a photos /mnt/usb",
                "Without root, in a terminal of a desktop with systemd",
            ),
            (
                "sudo fsure uncached --limit 32M -- rclone copy photos remote:photos",
                "Leave it less of the page cache while it runs",
            ),
        ],
        see_also: &["hot", "ram pin", "defer"],
        page: "docs/uncached.md",
    },
    CommandNotes {
        command: "hot",
        examples: &[
            ("sudo fsure hot", "Watch all programs for 30 seconds"),
            ("sudo fsure hot --for 5m /home /var", "Watch two folders for five minutes"),
            ("sudo fsure hot --by written", "Rank folders by what is written there"),
            ("sudo fsure hot -- make test", "Watch one command alone, until it ends"),
            ("sudo fsure hot --log --operation flush", "Print each flush as it ends"),
            ("sudo fsure hot --top", "Show what programs and folders do now"),
        ],
        see_also: &["hot advise", "hot record", "flush trace", "ram bind"],
        page: "docs/hot.md",
    },
    CommandNotes {
        command: "hot advise",
        examples: &[
            ("sudo fsure hot advise", "Watch for 30 seconds, and advise"),
            ("sudo fsure hot advise --for 10m", "Watch longer: the advice is better"),
            ("sudo fsure hot advise /srv --json", "One JSON object a line, for a script"),
            ("sudo fsure hot advise --history --since 7d", "From what was recorded in a week"),
        ],
        see_also: &["hot", "hot record", "ram bind", "ram pin"],
        page: "docs/hot.md",
    },
    CommandNotes {
        command: "hot record",
        examples: &[
            ("sudo fsure hot record", "Record, an interval each ten minutes, until Ctrl-C"),
            ("sudo fsure hot record --interval 1m --keep 7d", "Finer, and for a week"),
            ("sudo fsure hot record --store /srv/hot --keep 90d", "Another place, for longer"),
        ],
        see_also: &["hot advise", "hot"],
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
        command: "ram try",
        examples: &[
            ("fsure ram try target -- sh clean-build.sh", "Would a build be faster in memory?"),
            ("fsure ram try db --runs 20 -- ./import.sh", "Run more turns for a closer interval"),
            ("fsure ram try db --save try.jsonl -- ./import.sh", "Keep it for 'fsure report'"),
        ],
        see_also: &["ram run", "defer", "flush trace"],
        page: "docs/ram.md",
    },
    CommandNotes {
        command: "ram bind",
        examples: &[
            ("sudo fsure ram bind -n --preset browser", "Look at what is at risk"),
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
];
