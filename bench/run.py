#!/usr/bin/env python3
"""Measures fsure beside its peers and writes docs/benchmarks.md.

Needs root, because caches have to be emptied; Python's standard library, cargo
and about 10 GB on a real disk (15 GB with --million). Data sets, peers and
release build are kept and used again.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys

import data
import host
import peers
import report
import rows

QUIET = 0.7  # load average above which figures are called provisional


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add(
        "--dir",
        type=pathlib.Path,
        help="folder for the data sets, on a real disk [target/bench-data]",
    )
    add("--out", type=pathlib.Path, help="file to write [docs/benchmarks.md]")
    add("--rounds", type=int, help="rounds of every row [5; quick: 2]")
    add("--million", action="store_true", help="also the rows over 10^6 files, which take long")
    add("--quick", action="store_true", help="small data, written to target/bench-quick.md")
    add(
        "--only",
        action="append",
        metavar="ROW",
        help="only this row, printed and not written; repeatable",
    )
    add("--no-install", action="store_true", help="do not install peers that are missing")
    given = parser.parse_args()
    if given.rounds is not None and given.rounds < 1:
        parser.error("--rounds must be at least 1")
    top = given.dir or peers.target() / "bench-data"
    given.dir = (top / "quick" if given.quick else top).absolute()
    given.rounds = given.rounds or (2 if given.quick else 5)
    docs = peers.REPOSITORY / "docs" / "benchmarks.md"
    given.out = given.out or (peers.target() / "bench-quick.md" if given.quick else docs)
    return given


def chosen(given):
    """The rows to measure, and the data sets they need, each once."""
    every = rows.rows(given.million)
    unknown = set(given.only or []) - set(every)
    if unknown:
        raise host.Unfit(f"no such row: {', '.join(unknown)}; there are {', '.join(every)}")
    picked = [row for name, row in every.items() if not given.only or name in given.only]
    names = dict.fromkeys(name for _, needed in picked for name in needed)
    return [function for function, _ in picked], list(names)


def prepare(given, names):
    """Checks the machine, then builds, installs and makes what is missing."""
    host.require_cold()
    given.dir.mkdir(parents=True, exist_ok=True)
    disk = host.disk_of(given.dir)
    host.require_cachestat(__file__)
    peers.build()
    if not given.no_install:
        peers.install()
    specs = data.QUICK if given.quick else data.FULL
    made = {name: data.prepare(given.dir, name, specs) for name in names}
    bench = rows.Bench(made, given.rounds, given.dir, disk, peers.environment(), peers.missing())
    for name in sorted(bench.missing):
        print(f"!! not available: {name}", file=sys.stderr)
    return bench


def measure(bench, functions):
    """All rows asked for, as (lines, works)."""
    for name in bench.data:
        if name != "victim":
            print(f"== recording {name}", file=sys.stderr, flush=True)
            rows.record(bench, name)
    found, works = [], []
    for function in functions:
        lines, work = function(bench)
        found += lines
        works.append(work)
    return found, works


def broken(works):
    """The commands of fsure that failed: then the figures are worth nothing."""
    return [
        f"{work.title}: {name}"
        for work in works
        for name in work.samples
        if name.startswith("fsure") and not work.good(name)
    ]


def main():
    """Runs everything; the exit code is 0 if all commands of fsure succeeded."""
    # So that `finally` and `with` also run at a signal to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    given = arguments()
    try:
        functions, names = chosen(given)
        # Before the build and the data, whose own load would hide that of other work.
        before = host.load()
        provisional = os.getloadavg()[0] > QUIET
        bench = prepare(given, names)
        found, works = measure(bench, functions)
    except (host.Unfit, subprocess.CalledProcessError, OSError) as error:
        print(f"\n!!! {error}\n", file=sys.stderr)
        return 1
    found += [] if given.only or given.million else rows.left_out()
    note = " - **PROVISIONAL: other work was running**" if provisional else ""
    machine = {**host.facts(given.dir), "load before": before + note, "load after": host.load()}
    text = report.markdown(found, works, machine, peers.versions(), given.rounds, given.quick)
    if given.only:
        print(text)
    else:
        report.write(given.out, text)
        print(report.verdicts(found))
    for name in broken(works):
        print(f"!!! failed: {name}", file=sys.stderr)
    return 1 if broken(works) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
