#!/usr/bin/env python3
"""Measures `fsure uncached` beside nocache and a plain memory group: time until all is on
storage, page cache that is left behind, the share of a file of another program that stays in
memory, and how long that program then needs to read its file again.

Needs root, control groups of version 1 or 2, `fincore`, about 4 GB on a real disk, and what of
the programs is installed. The memory is made small by a control group around all of it, since a
large machine has room for what a program reads. The plain memory group has a hard limit in
version 1, and `memory.high`, as `systemd-run -p MemoryHigh=128M` sets it, in version 2. Prints
a table for docs/uncached.md. With --save, the medians are kept as lines of JSON that `fsure
report` draws.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

import cgroup

MIB = 1 << 20
HOT = 256 * MIB
BIG = 800 * MIB
SMALL_FILES = 6_000
SMALL_FILE = 96 << 10
MEMORY = 768 * MIB
GROUP = 128 * MIB
READER = """package main

import (
	"io"
	"os"
)

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	buffer := make([]byte, 1<<20)
	for {
		if _, err := file.Read(buffer); err == io.EOF {
			return
		} else if err != nil {
			panic(err)
		}
	}
}
"""
READ_HOT = """
import time
began = time.monotonic()
with open("hot", "rb", buffering=0) as file:
    while file.read(1 << 20):
        pass
print(time.monotonic() - began)
"""
PROGRAMS = {
    "dd": "dd if=big of=/dev/null bs=1M status=none",
    "cp": "cp big out/big",
    "tar": "tar cf out/tree.tar tree",
    "rsync": "rsync -a tree out/",
    "git fsck": "git -C repo fsck --full --no-progress",
    "git repack": "git -C repo repack -adq",
    "ffmpeg": "ffmpeg -loglevel error -nostdin -f rawvideo -pix_fmt yuv420p -s 1280x720 -i big "
    "-c:v copy -f nut out/big.nut",
    "restic": "restic -q --no-cache -r out/restic backup tree",
    "rclone": "rclone copy tree out/rclone",
    "Go, static": "./reader big",
}
OWN = ("big", "tree", "repo", "out")
METHODS = ("plain", "nocache", "group", "fsure")


def prepare(folder):
    """Makes the files, once."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for name, size in (("hot", HOT), ("big", BIG)):
        if not pathlib.Path(name).exists():
            with open(name, "wb") as file:
                for _ in range(size // MIB):
                    file.write(os.urandom(MIB))
    if not pathlib.Path("tree").exists():
        for number in range(SMALL_FILES):
            path = pathlib.Path("tree", str(number % 60), str(number))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(SMALL_FILE))
    if not pathlib.Path("repo").exists() and shutil.which("git"):
        call = "cp -r tree repo && cd repo && git init -q && git add . && git -c user.name=a "
        call += "-c user.email=a@b commit -qm a"
        call += " && git repack -adq --window=0 && git prune-packed && rm -r [0-9]*"
        subprocess.run(call, shell=True, check=True)
    if not pathlib.Path("reader").exists() and shutil.which("go"):
        pathlib.Path("reader.go").write_text(READER, encoding="ascii")
        environment = {**os.environ, "CGO_ENABLED": "0"}
        subprocess.run(["go", "build", "reader.go"], check=True, env=environment)
    os.sync()


def evict(path):
    """Takes a file, or all files of a folder, out of the page cache, once they are on storage."""
    for name in [path] if path.is_file() else path.rglob("*"):
        if name.is_file() and not name.is_symlink():
            with open(name, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resident(path):
    """Bytes of a file, or of all files of a folder, that are in the page cache."""
    files = [path] if path.is_file() else [name for name in path.rglob("*") if name.is_file()]
    files = [str(name) for name in files if name.stat().st_size and not name.is_symlink()]
    total = 0
    for start in range(0, len(files), 500):
        call = ["fincore", "-b", "-n", "-r", "-o", "RES", *files[start : start + 500]]
        total += sum(map(int, subprocess.run(call, check=True, capture_output=True).stdout.split()))
    return total


class Groups:
    """The group around all of it, and those below it. Version 2 has no memory limits below a
    group with processes, so that they are in groups below it there."""

    def __init__(self, outer):
        self.outer = outer
        self.is_v2 = (outer / "memory.max").exists()
        self.home = outer
        self.ways = {"fsure": "fsure uncached", "group": f"limit of {GROUP // MIB} MiB"}
        if self.is_v2:
            (outer / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
            self.home = outer / "home"
            self.ways["group"] = f"MemoryHigh={GROUP // MIB}M"

    def __enter__(self):
        self.home.mkdir(exist_ok=True)
        return self

    def __exit__(self, *_):
        if self.home != self.outer:
            self.home.rmdir()

    def way(self, method):
        """The name of a method in a result."""
        return self.ways.get(method, method)

    def empty(self):
        """Gives back all that was brought into memory by processes of these groups."""
        if not self.is_v2:
            (self.outer / "memory.force_empty").write_text("0", encoding="ascii")
            return
        for _ in range(5):
            # Refused once there is less than that to give back.
            with contextlib.suppress(BlockingIOError):
                (self.outer / "memory.reclaim").write_text(str(MEMORY), encoding="ascii")

    @contextlib.contextmanager
    def small(self):
        """A group with little memory."""
        group = self.outer / "small"
        group.mkdir()
        try:
            knob = "memory.high" if self.is_v2 else "memory.limit_in_bytes"
            (group / knob).write_text(str(GROUP), encoding="ascii")
            yield group
        finally:
            group.rmdir()


def inside(group, words):
    """A shell line that runs a command in a group."""
    return f"echo $$ > {group}/cgroup.procs && exec {words}"


def read_hot(group):
    """Reads the file of another program in a group. Returns the seconds of the reads alone."""
    call = inside(group, f"{sys.executable} -c '{READ_HOT}'")
    return float(subprocess.run(call, shell=True, check=True, capture_output=True).stdout)


def run(method, words, groups, fsure):
    """Runs a program once. Returns its seconds, the cache left behind, the share of the file of
    another program that stayed, and the seconds in which that file is read again."""
    shutil.rmtree("out", ignore_errors=True)
    os.mkdir("out")
    environment = {**os.environ, "RESTIC_PASSWORD": "x"}
    if words.startswith("restic"):
        subprocess.run("restic -q --no-cache -r out/restic init", shell=True, env=environment,
                       check=True, stdout=subprocess.DEVNULL)
    # All that is in memory was brought in by processes of these groups.
    groups.empty()
    read_hot(groups.home)
    before = resident(pathlib.Path("hot"))
    # What other groups have brought in is none of this program's.
    other = sum(resident(pathlib.Path(name)) for name in OWN if pathlib.Path(name).exists())
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(groups.small()) if method == "group" else groups.home
        if method == "nocache":
            words = f"nocache {words}"
        if method == "fsure":
            words = f"{fsure} -q uncached -- {words}"
        began = time.monotonic()
        subprocess.run(inside(group, words), shell=True, check=True, env=environment,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["sync", "-f", "out"], check=True)
        took = time.monotonic() - began
        kept = resident(pathlib.Path("hot")) / before
        grown = sum(resident(pathlib.Path(name)) for name in OWN if pathlib.Path(name).exists())
        again = read_hot(groups.home)
    return took, max(grown - other, 0), kept, again


class Results:
    """The lines of a result, in a file that must not be there yet, or nowhere."""

    def __init__(self, path, fsure):
        self.file = path and open(path, "x", encoding="utf-8")
        self.began = time.monotonic()
        self.trials = 0
        version = subprocess.run([fsure, "--version"], check=True, capture_output=True, text=True)
        now = datetime.datetime.now(datetime.timezone.utc)
        self.line(type="start", format=1, fsure=version.stdout.split()[1],
                  command="uncached trial", time=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                  host=platform.node())

    def line(self, **fields):
        """Writes a line."""
        if self.file:
            self.file.write(json.dumps(fields, separators=(",", ":")) + "\n")
            self.file.flush()

    def trial(self, program, way, runs, medians):
        """Writes the medians of the runs of a program in a way, and their ranges."""
        took, left, kept, again = medians
        times = [seconds for seconds, *_ in runs]
        reads = [seconds for *_, seconds in runs]
        shares = [share for _, _, share, _ in runs]
        self.trials += 1
        self.line(type="cache-trial", program=program, way=way, runs=len(runs),
                  seconds=took, seconds_low=min(times), seconds_high=max(times),
                  memory_bytes=MEMORY, left_bytes=int(left), others_bytes=HOT,
                  others_kept_bytes=int(kept * HOT),
                  others_kept_low_bytes=int(min(shares) * HOT),
                  others_kept_high_bytes=int(max(shares) * HOT), others_seconds=again,
                  others_seconds_low=min(reads), others_seconds_high=max(reads))

    def end(self):
        """Writes the last line."""
        self.line(type="summary", command="uncached trial", trials=self.trials,
                  seconds=time.monotonic() - self.began, exit_code=0)


def main():
    """Measures all, in turns, and prints medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=pathlib.Path, required=True, help="a folder on a real disk")
    parser.add_argument("--fsure", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each program [5]")
    parser.add_argument("--only", action="append", choices=PROGRAMS, help="only this program")
    parser.add_argument("--save", type=pathlib.Path, help="a file for the result")
    given = parser.parse_args()
    fsure = given.fsure.absolute()
    save = given.save and given.save.absolute()
    if save and save.exists():
        sys.exit(f"{save} is there already: name another file with --save")
    prepare(given.dir)
    with contextlib.ExitStack() as stack:
        limit = stack.enter_context(cgroup.MemoryLimit(MEMORY))
        if limit.folder is None:
            sys.exit("DID NOT RUN: needs root, and control groups that limit memory")
        groups = stack.enter_context(Groups(limit.folder))
        for name in ("big", "tree", "repo", "hot"):
            evict(pathlib.Path(name))
        results_saved = Results(save, fsure)
        print("| program | " + " | ".join(map(groups.way, METHODS)) + " |")
        print("|---|" + "---|" * len(METHODS))
        for name in given.only or PROGRAMS:
            words = PROGRAMS[name]
            if shutil.which(words.split()[0]) is None:
                print(f"| {name} | DID NOT RUN: not installed |", flush=True)
                continue
            runs = {method: [] for method in METHODS}
            for _ in range(given.rounds):
                for method, results in runs.items():
                    results.append(run(method, words, groups, fsure))
            base = statistics.median(took for took, *_ in runs["plain"])
            cells = []
            for method, results in runs.items():
                medians = [statistics.median(column) for column in zip(*results)]
                results_saved.trial(name, groups.way(method), results, medians)
                took, grown, kept, again = medians
                cells.append(f"{took / base:.2f}, {grown / MIB:,.0f} MiB, {kept:.0%}, "
                             f"{again * 1000:.0f} ms")
            print(f"| {name} ({base:.1f} s) | " + " | ".join(cells) + " |", flush=True)
        results_saved.end()


if __name__ == "__main__":
    main()
