"""What the simulated drive costs, and how fast cuts are.

The same file system on the same memory, once on a plain file behind a loop
device and once on the drive of `fsure crash --serve`: the ratio is what going
through FUSE and keeping every write costs a program under test. No other tool
cuts a real file system without modules of the kernel, so cuts have no peer.
"""

import dataclasses
import json
import statistics

import agree
from lines import Line

SIZE = "512M"
MAKE = {"ext4": "mkfs.ext4 -q -F -b 4096", "xfs": "mkfs.xfs -q -f", "btrfs": "mkfs.btrfs -q -f"}
COMMITS = "--rw=write --bs=4k --size=16M --fsync=1 --time_based --runtime=2 --overwrite=1"
STREAM = "--rw=write --bs=1M --size=200M --end_fsync=1"


@dataclasses.dataclass
class Cost(agree.Pair):
    """The simulated drive and the plain way; there is no target, the reader decides."""

    def line(self, peer):
        """The line of the target table."""
        mine, theirs = self.good(self.ours.name), self.good(peer.name)
        ratios = [one / other for one, other in zip(mine, theirs, strict=False)]
        if not ratios:
            return Line(self.title, "-", f"{self.unit}, {peer.name}", "-", "-", "not measured")
        return Line(
            self.title,
            f"{statistics.median(mine):,.1f} {self.unit}",
            f"{statistics.median(theirs):,.1f} {self.unit} {peer.name}",
            f"{statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})",
            "reported",
            "-",
        )


def job(options, field, scale):
    """The end of a script: fio on the mounted file system, and its figure."""
    command = f"cd m && fio --name=x --filename=x --output-format=json {options}"

    def figure(output):
        # The drive prints lines, too, after those of fio.
        report, _ = json.JSONDecoder().raw_decode(output[output.index("{") :])
        return report["jobs"][0]["write"][field] / scale

    return command, figure


def plain(system, measured):
    """A file in memory behind a loop device."""
    command, figure = measured
    script = (
        "f=$(mktemp -p /dev/shm) && mkdir m && trap 'cd /; umount $OLDPWD; rm -f $f' EXIT && "
        f"truncate -s {SIZE} $f && {MAKE[system]} $f >&2 && mount -o loop $f m && {command}"
    )
    return agree.Side("plain loop file", script, figure)


def simulated(system, measured):
    """The simulated drive, honest and without latency."""
    command, figure = measured
    script = (
        "mkdir d m && trap 'cd /; umount $OLDPWD; kill %1; wait' EXIT && "
        f"{{ fsure crash --serve s --drive honest --size {SIZE} --front file --at d >&2 & }} && "
        "until test -e d/disk; do sleep 0.05; done && "
        f"{MAKE[system]} d/disk >&2 && mount -o loop d/disk m && {command}"
    )
    return agree.Side("fsure crash --serve", script, figure)


def cuts(system):
    """Cuts a minute, each mounted and checked while the program goes on."""
    command = f"fsure crash --workload append:fsync --fs {system} --cuts 30 --pause 0.01s --json"

    def figure(output):
        summary = json.loads([text for text in output.splitlines() if '"summary"' in text][-1])
        assert summary["losses"] == summary["harness_broken"] == 0, summary
        return summary["cuts_per_minute"]

    return agree.Side("fsure crash", command, figure)


def pairs():
    """Every pair."""
    found = []
    for system in MAKE:
        for title, unit, measured in (
            ("commits", "op/s", job(COMMITS, "iops", 1)),
            ("a stream", "MiB/s", job(STREAM, "bw_bytes", agree.MIB)),
        ):
            sides = simulated(system, measured), [plain(system, measured)]
            found.append(Cost(f"drive: {title} on {system}", unit, *sides))
        found.append(Cost(f"crash: cuts on {system}", "a minute", cuts(system), []))
    return found


def row(bench, title, pairs, alone=statistics.median):
    """A row of the benchmark; `alone` makes one figure of those without a peer."""
    work = agree.Agreement(title, pairs)
    for pair in work.pairs:
        pair.measure(bench.rounds, bench.folder, bench.env)
    found = [pair.line(peer) for pair in work.pairs for peer in pair.peers]
    for pair in (pair for pair in work.pairs if not pair.peers):
        values = pair.good(pair.ours.name)
        shown = f"{alone(values):,.0f} {pair.unit}" if values else "-"
        found.append(Line(pair.title, shown, "none", "-", "reported", "-"))
    return found, work


def drive(bench):
    """The row of the benchmark."""
    return row(bench, "the simulated drive", pairs())
