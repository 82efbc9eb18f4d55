"""The rows of the target table: which commands compete, and what must hold.

Every function returns the `Line`s of the table and the `Work` they came from.
"""

import dataclasses
import json
import os
import subprocess

import agree
import commands
import drive
import host
import lines
import measure
import ram
import requests
from cgroup import MemoryLimit
from commands import fsure, fsure_anew, spread, whole
from lines import Line
from measure import Contender, Work

MIB = 1 << 20
ANEW = "fsure update, new record"


@dataclasses.dataclass
class Bench:
    """What all rows share."""

    data: dict
    rounds: int
    folder: object
    disk: str
    env: dict
    missing: set

    def measured(self, title, name, state, contenders, rounds=None):
        """A work with all its rounds done."""
        work = Work(title, self.data[name], state, contenders)
        work.measure(rounds or self.rounds, self.disk, self.env, self.missing)
        return work


def record(bench, name):
    """Records a data set until an `update` finds nothing left to read."""
    data = bench.data[name]
    data.catalog.parent.mkdir(exist_ok=True)
    commands.forget(data, name)
    command = ["fsure", "update", "--catalog", data.catalog]
    more = {"cwd": data.folder, "env": bench.env}
    # As text: as JSON this would be a line for every file, all of it held here.
    subprocess.run([*command, "--quiet", "."], stdout=subprocess.DEVNULL, check=True, **more)
    for _ in range(5):
        done = subprocess.run([*command, "--json", "."], stdout=subprocess.PIPE, check=True, **more)
        if json.loads(done.stdout.splitlines()[-1])["hashed"] == 0:
            return
    raise host.Unfit(f"fsure update never comes to rest over the data set {name}")


def big_cold(bench):
    """The device's limit, and what hashing costs beside it."""
    contenders = [
        fsure("verify", "big"),
        commands.fio(8),
        commands.fio(16),
        commands.dd(),
        whole("b3sum", judged=False),
        whole("xxh128sum", judged=False),
        commands.rclone(judged=False),
    ]
    work = bench.measured("big file, cold", "big", "cold", contenders)
    found = [
        lines.speed(work, "fsure verify", commands.rivals(contenders), 0.97),
        lines.cache_growth(work, "fsure verify"),
        lines.cpu_per_gigabyte(work, "fsure verify"),
    ]
    return found, work


def big_cached(bench):
    """Hashing from memory; b3sum maps the file and uses all cores, too."""
    contenders = [
        fsure("update --full", "big"),
        whole("b3sum"),
        whole("xxh128sum", judged=False),
        fsure_anew(bench.data["big"]),
    ]
    work = bench.measured("big file, in cache", "big", "cached", contenders)
    return [lines.speed(work, "fsure update --full", ["b3sum"], 1.0, 1.1)], work


def small_cold(bench):
    """Many small files from the medium."""
    contenders = [
        fsure("verify", "small"),
        spread("b3sum", 16, "--num-threads 1"),
        spread("xxh128sum", 8),
        Contender("hashdeep", "hashdeep -r -c sha256 -j8 .", ("hashdeep",)),
        commands.rclone(),
    ]
    work = bench.measured("small files, cold", "small", "cold", contenders)
    found = [
        lines.speed(work, "fsure verify", commands.rivals(contenders), 1.5, 2.0),
        lines.speed(work, "fsure verify", ["rclone"], 3.5),
        lines.speed(work, "fsure verify", ["chkbit"], 3.5),
        lines.cache_growth(work, "fsure verify"),
        lines.cpu_per_gigabyte(work, "fsure verify"),
    ]
    return found, work


def small_cached(bench):
    """Many small files from memory, with the record written."""
    contenders = [
        fsure("update --full", "small"),
        spread("b3sum", 2, "--no-mmap --num-threads 1"),
        spread("xxh128sum", 2, judged=False),
        fsure_anew(bench.data["small"]),
    ]
    work = bench.measured("small files, in cache", "small", "cached", contenders)
    return [lines.speed(work, "fsure update --full", commands.rivals(contenders), 1.0, 1.2)], work


def by_hand(bench, title, job, name, state):
    """The readers and depth that fsure chooses beside those chosen by hand."""
    by_hand = [
        commands.fsure_by_hand(job, name, threads, depth)
        for threads, depth in ((2, 128), (16, 128), (32, 32))
    ]
    work = bench.measured(f"{title}, by hand", name, state, [fsure(job, name), *by_hand])
    return [lines.speed(work, f"fsure {job}", [one.name for one in by_hand], 0.95)], work


def unchanged(bench, name):
    """A tree in which nothing changed: what do names, sizes and dates cost?"""
    stat = "xargs -0 -P2 -n4096 stat --printf '%s %Y %n\\n'"
    fd = "fd --unrestricted --type f"
    contenders = [
        fsure("update", name),
        Contender("fd, its own stat", f"{fd} --size +0b", ("fd",)),
        Contender("fd and stat", f"{fd} -0 | {stat}", ("fd", "xargs", "stat")),
        Contender("find -printf", "find . -type f -printf '%s %T@ %p\\n'", ("find",)),
    ]
    title = f"nothing changed, {bench.data[name].spec.files:,} files"
    work = bench.measured(title, name, "listed", contenders)
    return [lines.at_most(work, "fsure update", one.name, 1.3) for one in contenders[1:]], work


def load_and_compare(bench):
    """CPU of loading and comparing a record: all of a run but the listing.

    What a plain `find` takes to stat the same files is taken off. It prints
    nothing, so that no more is taken off than the listing.
    """
    find = "find, stat only"
    contenders = [
        fsure("status", "records"),
        fsure("update", "records"),
        Contender(find, "find . -size +1048576G", ("find",)),
    ]
    spec = bench.data["records"].spec
    title = f"load and compare {spec.files:,} records in {spec.folders:,} folders"
    work = bench.measured(title, "records", "listed", contenders)
    found = [
        lines.without_listing(work, ours, find, 100) for ours in ("fsure status", "fsure update")
    ]
    return found, work


def neighbour(bench):
    """Another program's file while fsure reads its own. It was read once only, which
    makes its pages the first that the kernel would give up.
    """
    victim, big = bench.data["victim"], bench.data["big"]
    path = victim.folder / "victim.bin"
    size = victim.bytes
    with MemoryLimit(size + 600 * MIB) as group:

        def read():
            commands.forget(big, "big-new")
            text = measure.session(f"cat '{path}' > /dev/null", group.folder)
            subprocess.run(["bash", "-c", text], check=True, start_new_session=True)

        def kept():
            return min(100.0, 100 * victim.resident() / size)

        around = {"before": read, "after": kept, "inside": group.folder}
        contenders = [
            dataclasses.replace(one, **around)
            for one in (fsure("verify", "big"), fsure_anew(big), whole("b3sum"))
        ]
        limit = f"limited to {group.limit // MIB:,} MiB" if group.folder else "NOT limited"
        title = f"{size // 10**6} MB of another program's, memory {limit}"
        work = bench.measured(title, "big", "cold", contenders)
    return [lines.kept(work, ours, "b3sum") for ours in ("fsure verify", ANEW)], work


def memory(bench):
    """The peak at a million files, when they are recorded and when verified."""
    contenders = [fsure_anew(bench.data["million"]), fsure("verify", "million")]
    title = f"peak memory, {bench.data['million'].spec.files:,} files, one run"
    work = bench.measured(title, "million", "listed", contenders, rounds=1)
    cores = os.cpu_count()
    bound = (64 + 16 * cores) * MIB
    target = f"at most 64 MiB + 16 MiB for each of {cores} workers"
    return [lines.peak(work, one.name, bound, target) for one in contenders], work


def comparison(bench):
    """Two catalogs and two lists of a million files: neither is held in memory."""
    data = bench.data["million"]
    exported = data.catalog.with_suffix(".b3")
    command = ["fsure", "export", "--quiet", "--catalog", data.catalog, "--format", "b3sum"]
    subprocess.run([*command, "-o", exported, "."], cwd=data.folder, env=bench.env, check=True)
    contenders = [
        Contender(f"fsure compare, two {what}", f"fsure compare --quiet {side} {side}", ("fsure",))
        for what, side in (
            ("catalogs", f"../catalogs/{data.catalog.name}"),
            ("lists", f"../catalogs/{exported.name}"),
        )
    ]
    title = f"peak memory, {data.spec.files:,} rows on each side, one run"
    work = bench.measured(title, "million", "listed", contenders, rounds=1)
    target = "at most 16 MiB for each of 4 databases"
    return [lines.peak(work, one.name, 64 * MIB, target) for one in contenders], work


def rows(million):
    """Of every row its name, its function and the data sets it needs."""
    tree = "million" if million else "small"
    found = {
        "big-cold": (big_cold, ["big"]),
        "big-cached": (big_cached, ["big"]),
        "small-cold": (small_cold, ["small"]),
        "small-cached": (small_cached, ["small"]),
        "big-by-hand": (
            lambda bench: by_hand(bench, "big file, cold", "verify", "big", "cold"),
            ["big"],
        ),
        "small-by-hand": (
            lambda bench: by_hand(bench, "small files, cold", "verify", "small", "cold"),
            ["small"],
        ),
        "cached-by-hand": (
            lambda bench: by_hand(bench, "small files, in cache", "update --full", "small", "cached"),
            ["small"],
        ),
        "unchanged": (lambda bench: unchanged(bench, tree), [tree]),
        "load": (load_and_compare, ["records"]),
        "neighbour": (neighbour, ["big", "victim"]),
        "agree": (agree.agreement, []),
        "drive": (drive.drive, []),
        "requests": (requests.requests, []),
        "ram": (ram.ram, []),
    }
    if million:
        found["memory"] = (memory, ["million"])
        found["compare"] = (comparison, ["million"])
    return found


def left_out():
    """Lines for what is measured with --million only: nothing is dropped silently."""
    targets = {
        "nothing changed, 10^6 files": "at most 1.3 times its time",
        "peak memory, 10^6 files": "at most 64 MiB + 16 MiB per worker",
    }
    return [
        Line(work, "-", "-", "-", target, "not measured: --million")
        for work, target in targets.items()
    ]
