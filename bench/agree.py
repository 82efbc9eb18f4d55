"""Measures the same thing with the commands of fsure and with the usual tools.

A benchmark that flatters is worse than none: the figures of `fsure speed` and
`fsure flush` for a disk have to agree with those of fio, dd, pv and pg_test_fsync.
Every pair is measured in turn in one folder; the figure is each tool's own.
"""

import dataclasses
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from lines import Line

MIB = 1 << 20
SIZE = 450 * 10**6  # the founders' experiment
PG_TEST_FSYNC = "/usr/lib/postgresql"
# Medians of few rounds on a shared disk: a smaller difference than this is noise.
NOISE = 0.15


@dataclasses.dataclass(frozen=True)
class Side:
    """A command, run by bash in an empty folder, and how to read its figure."""

    name: str
    command: str
    figure: object


@dataclasses.dataclass
class Figure:
    """The output of one run."""

    value: float | None
    failure: str = ""


@dataclasses.dataclass
class Pair:
    """The figures of fsure and of its peers for one thing, in one unit."""

    title: str
    unit: str
    ours: Side
    peers: list
    samples: dict = dataclasses.field(default_factory=dict)

    def measure(self, rounds, folder, env):
        """All rounds; each begins with another side than the one before."""
        sides = [self.ours, *self.peers]
        self.samples = {side.name: [] for side in sides}
        for number in range(rounds):
            for step in range(len(sides)):
                side = sides[(number + step) % len(sides)]
                found = once(side, folder, env)
                self.samples[side.name].append(found)
                shown = found.failure or f"{found.value:,.1f} {self.unit}"
                print(f"{self.title} | round {number + 1} | {side.name}: {shown}", file=sys.stderr)

    def good(self, name):
        """A side's figures, or none if it failed once."""
        found = self.samples.get(name, [])
        return [] if any(one.failure for one in found) else [one.value for one in found]

    def line(self, peer):
        """The line of the target table for one peer."""
        mine, theirs = self.good(self.ours.name), self.good(peer.name)
        ratios = [one / other for one, other in zip(mine, theirs, strict=False)]
        if not ratios:
            text = f"{self.unit}, {peer.name}"
            return Line(self.title, "-", text, "-", "agreement within noise", "not measured")
        ratio = statistics.median(ratios)
        meets = min(ratios) <= 1 <= max(ratios) or abs(ratio - 1) <= NOISE
        return Line(
            self.title,
            f"{statistics.median(mine):,.1f} {self.unit}",
            f"{statistics.median(theirs):,.1f} {self.unit} {peer.name}",
            f"{ratio:.3f} ({min(ratios):.3f}-{max(ratios):.3f})",
            "agreement within noise",
            "met" if meets else "**missed**",
        )


def once(side, folder, env):
    """One run in a folder of its own, gone afterwards."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {side.command}"],
            cwd=own,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    output = done.stdout + done.stderr
    try:
        return Figure(side.figure(output))
    except (ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
        print(f"!! {side.name}: {output[-2000:]}", file=sys.stderr)
        return Figure(None, f"exit code {done.returncode}, no figure: {error!r}")


def json_lines(output, kind, name, field):
    """A field of the line of one rung or method."""
    for text in output.splitlines():
        line = json.loads(text) if text.startswith("{") else {}
        if line.get("type") == kind and line.get("name") == name:
            return float(line[field])
    raise ValueError(f"no {kind} {name!r}")


def speed(rung, size=SIZE):
    """One rung of `fsure speed`, alone, once."""
    command = f"fsure speed --json --runs 1 --size {size}B --rungs '{rung}' ."
    return Side("fsure speed", command, lambda out: json_lines(out, "rung", rung, "median"))


def flush(method):
    """One method of `fsure flush` among all of them."""
    command = "fsure flush --json --time 0.5s . || test $? -lt 64"
    return Side("fsure flush", command, lambda out: json_lines(out, "method", method, "ops"))


UNITS = {"": 1, "k": 1e3, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def pv(target):
    """pv's own average. It fills from /dev/zero, as the founders had it."""

    def figure(output):
        number, unit = re.findall(r"\[\s*([\d.]+)([KMG]?)iB/s\]", output)[-1]
        return float(number) * UNITS[unit] / MIB

    return Side("pv", f"pv -f -a -Ss {SIZE} < /dev/zero > {target}", figure)


def dd(flags, name, source="/dev/zero", target="test", before=""):
    """dd's bytes over its seconds."""

    def figure(output):
        count, seconds = re.findall(r"(\d+) bytes .*copied, ([\d.e-]+) s", output)[-1]
        return int(count) / float(seconds) / MIB

    block = 409600
    command = f"{before}dd if={source} of={target} bs={block} count={SIZE // block} {flags}"
    return Side(name, command, figure)


def fio(job, options, field="bw_bytes", scale=MIB, before=""):
    """fio's own figure for one job."""
    command = f"{before}fio --name=x --filename=x --output-format=json {options}"

    def figure(output):
        return json.loads(output[output.index("{") :])["jobs"][0][job][field] / scale

    return Side(f"fio {options}", command, figure)


def pg_test_fsync(method):
    """Operations per second of its first table: one write of 8 KiB."""
    found = sorted(pathlib.Path(PG_TEST_FSYNC).glob("*/bin/pg_test_fsync"))
    program = str(found[-1]) if found else shutil.which("pg_test_fsync") or "pg_test_fsync"

    def figure(output):
        one_write = output[output.index("one 8kB write") : output.index("two 8kB writes")]
        return float(re.search(rf"\b{method}\s+([\d.]+) ops/sec", one_write).group(1))

    return Side("pg_test_fsync", f"{program} -s 1 -f ./pg", figure)


def pairs():
    """Every pair."""
    huge = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "
    lay_out = f"head -c {SIZE} /dev/urandom > x && sync x && "
    # In the large pages that reading ahead makes, and not as it was written.
    read_in = "dd of=x oflag=nocache conv=notrunc count=0 2> /dev/null && cat x > /dev/null && "
    # As much in flight as the readers of fsure have, 32 MiB.
    big = f"--bs=1M --size={SIZE} --ioengine=io_uring --iodepth=32 --direct=1"
    small = "--size=16M --bs=4k --ioengine=psync --time_based --runtime=1 --overwrite=1"
    found = [
        Pair(
            "speed: void",
            "MiB/s",
            speed("void"),
            [dd("", "dd", target="/dev/null"), pv("/dev/null")],
        ),
        Pair(
            "speed: written to the page cache",
            "MiB/s",
            speed("disk write cached"),
            [pv("test"), dd("", "dd")],
        ),
        Pair(
            "speed: written to the device",
            "MiB/s",
            speed("disk write written"),
            [fio("write", f"--rw=write {big}", before=huge)],
        ),
        Pair(
            "speed: flushed at the end",
            "MiB/s",
            speed("disk write durable"),
            [dd("conv=fdatasync", "dd conv=fdatasync")],
        ),
        Pair(
            "speed: read from the device",
            "MiB/s",
            speed("disk read direct"),
            # Again and again, as fsure reads after its warm-up: a host has memory, too.
            [fio("read", f"--rw=read {big} --time_based --runtime=2", before=lay_out + huge)],
        ),
        Pair(
            "speed: read from the page cache",
            "MiB/s",
            speed("disk read cached"),
            [dd("", "dd", source="x", target="/dev/null", before=lay_out + read_in)],
        ),
        Pair(
            "flush: direct writes, not flushed",
            "op/s",
            flush("O_DIRECT"),
            [fio("write", f"--rw=write --direct=1 {small}", "iops", 1)],
        ),
    ]
    for ours, theirs in (("fdatasync", "fdatasync"), ("fsync", "fsync"), ("O_DSYNC", "open_datasync")):
        peers = [pg_test_fsync(theirs)]
        if ours == "fdatasync":
            peers.append(fio("write", f"--rw=write --fdatasync=1 {small}", "iops", 1))
        found.append(Pair(f"flush: {ours}", "op/s", flush(ours), peers))
    return found


@dataclasses.dataclass
class Agreement:
    """All pairs, as one work of the report."""

    title: str
    pairs: list

    @property
    def samples(self):
        """Returns the runs of every side; those of fsure also by the title of the pair."""
        return {
            f"{side.name}, {pair.title}": pair.samples.get(side.name, [])
            for pair in self.pairs
            for side in (pair.ours, *pair.peers)
        }

    def good(self, name):
        """Whether none of a side's runs failed."""
        return not any(run.failure for run in self.samples[name])

    def rows(self):
        """A row for each side of each pair: title, side, median and range, unit."""
        for pair in self.pairs:
            for side in (pair.ours, *pair.peers):
                found = pair.good(side.name)
                shown = "failed or not there"
                if found:
                    middle = statistics.median(found)
                    shown = f"{middle:,.1f} ({min(found):,.1f}-{max(found):,.1f}) {pair.unit}"
                yield pair.title, side.name, shown

    def commands(self):
        """What was run, each command once."""
        sides = [side for pair in self.pairs for side in (pair.ours, *pair.peers)]
        return list(dict.fromkeys(side.command for side in sides))


def agreement(bench):
    """The row of the benchmark."""
    work = Agreement("fsure's measurements beside known tools", pairs())
    for pair in work.pairs:
        pair.measure(bench.rounds, bench.folder, bench.env)
    found = [pair.line(peer) for pair in work.pairs for peer in pair.peers]
    return found, work
