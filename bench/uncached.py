#!/usr/bin/env python3
"""Measures `fsure uncached` beside nocache and a plain memory group: time until all is on
storage, page cache that is left behind, and the share that stays in memory of a file of another
program, which that has read once, and three times, with the time in which it reads that again.

Needs root, control groups of version 1 or 2, `fincore`, about 4 GB on a real disk, and what of
the programs is installed. The memory is made small by a control group around all of it, since a
large machine has room for what a program reads. The plain memory group has a hard limit in
version 1, and `memory.high`, as `systemd-run -p MemoryHigh=128M` sets it, in version 2. A program
that is killed is reported as that. Prints a table for docs/uncached.md. With --save, the medians
are kept as lines of JSON that `fsure report` draws.
"""

import argparse
import contextlib
import datetime
import json
import math
import os
import pathlib
import platform
import re
import shutil
import signal
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
# Memory that is used before each run, more than all programs have together.
TOUCHED = 1 << 30
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
    # Raw video of 1920 x 1080 pixels, 25 pictures a second: ten seconds.
    "play (ffmpeg -re)": "ffmpeg -loglevel error -nostdin -re -f rawvideo -pix_fmt yuv420p "
    "-s 1920x1080 -i big -f null -",
    "sort -S 300M": "sort -S 300M -T out -o out/sorted big",
}
OWN = ("big", "tree", "repo", "out")
METHODS = ("plain", "nocache", "group", "fsure")
# How often the other program has read its file: Linux protects what was read more than once.
READS = (1, 3)
# How a program that was killed ends, and one that has run it.
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


def prepare(folder, programs):
    """Makes the files that the programs need, once."""
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
    needs_repo = any(name.startswith("git ") for name in programs)
    if needs_repo and not pathlib.Path("repo").exists() and shutil.which("git"):
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


def touch_memory():
    """Uses memory that the system is to hand out next. The host of a virtual machine takes back
    what has not been used for some seconds, and the program that is handed it then has to wait,
    by another amount in each way of running it."""
    call = [sys.executable, "-c", f"b'x' * {TOUCHED}"]
    subprocess.run(call, check=True)


def inside(group, words):
    """A shell line that runs a command in a group."""
    return f"echo $$ > {group}/cgroup.procs && exec {words}"


def read_hot(group):
    """Reads the file of another program in a group, and returns the seconds that it took."""
    call = inside(group, "dd if=hot of=/dev/null bs=1M")
    environment = {**os.environ, "LC_ALL": "C"}
    said = subprocess.run(call, shell=True, check=True, env=environment, capture_output=True,
                          text=True).stderr
    return float(re.search(r"copied, ([0-9.e-]+) s", said)[1])


def machine():
    """The machine, as the first line of fsure's results describes it."""
    info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    processor = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    is_virtual = re.search(r"^flags\s*:.*\bhypervisor\b", info, re.MULTILINE)
    return {"system": f"Linux {platform.release()}",
            "processor": processor[1] if processor else None,
            "cores": len(os.sched_getaffinity(0)), "memory_bytes": memory,
            "virtualization": "virtual" if is_virtual else None}


def kernel():
    """The kernel, and its way to choose what leaves the page cache if that is not the old one."""
    name = "Linux " + ".".join(platform.release().split(".")[:2])
    switch = pathlib.Path("/sys/kernel/mm/lru_gen/enabled")
    is_on = switch.exists() and int(switch.read_text(encoding="ascii"), 16) & 1
    return f"{name}, multi-generational LRU" if is_on else name


def run(method, words, reads, groups, fsure):
    """Runs a program once, after another program has read its file so many times. Returns the
    program's seconds, the cache left behind, the share of the other file that stayed and the
    seconds in which its program reads it again; `None` if the program was killed."""
    shutil.rmtree("out", ignore_errors=True)
    os.mkdir("out")
    environment = {**os.environ, "RESTIC_PASSWORD": "x", "LC_ALL": "C"}
    if words.startswith("restic"):
        subprocess.run("restic -q --no-cache -r out/restic init", shell=True, env=environment,
                       check=True, stdout=subprocess.DEVNULL)
    # All that is in memory was brought in by processes of these groups.
    groups.empty()
    for _ in range(reads):
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
        touch_memory()
        began = time.monotonic()
        ended = subprocess.run(inside(group, words), shell=True, check=False, env=environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["sync", "-f", "out"], check=True)
        took = time.monotonic() - began
        if ended.returncode in KILLED:
            return None
        ended.check_returncode()
        kept = resident(pathlib.Path("hot")) / before
        grown = sum(resident(pathlib.Path(name)) for name in OWN if pathlib.Path(name).exists())
    return took, max(grown - other, 0), kept, read_hot(groups.home)


class Results:
    """The lines of a result, in a file that must not be there yet, or nowhere."""

    def __init__(self, path, fsure, note):
        self.file = path and open(path, "x", encoding="utf-8")
        self.note = note
        self.began = time.monotonic()
        self.trials = 0
        version = subprocess.run([fsure, "--version"], check=True, capture_output=True, text=True)
        now = datetime.datetime.now(datetime.timezone.utc)
        self.line(type="start", format=1, fsure=version.stdout.split()[1],
                  command="uncached trial", time=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                  host=platform.node(), machine=machine())

    def line(self, **fields):
        """Writes a line."""
        if self.file:
            self.file.write(json.dumps(fields, separators=(",", ":")) + "\n")
            self.file.flush()

    def trial(self, program, way, trial):
        """Writes the medians of the runs of a program in a way, and their intervals."""
        self.trials += 1
        fields = {"runs": len(trial.runs), "kernel": kernel(), "memory_bytes": MEMORY,
                  "others_bytes": HOT}
        if self.note:
            fields["note"] = self.note
        if trial.killed:
            fields["killed_runs"] = trial.killed
        else:
            low, middle, high = interval(trial.beside)
            fields |= {"seconds": statistics.median(trial.seconds), "beside_plain": middle,
                       "beside_plain_low": low, "beside_plain_high": high,
                       "left_bytes": int(statistics.median(trial.left))}
            for reads, name in zip(READS, ("others_kept", "others_thrice_kept")):
                shares = trial.kept[reads]
                fields |= {f"{name}_bytes": int(statistics.median(shares) * HOT),
                           f"{name}_low_bytes": int(min(shares) * HOT),
                           f"{name}_high_bytes": int(max(shares) * HOT)}
            for reads, name in zip(READS, ("others_again", "others_thrice_again")):
                seconds = trial.again[reads]
                fields |= {f"{name}_seconds": statistics.median(seconds),
                           f"{name}_low_seconds": min(seconds),
                           f"{name}_high_seconds": max(seconds)}
        self.line(type="cache-trial", program=program, way=way, **fields)

    def end(self, exit_code):
        """Writes the last line."""
        self.line(type="summary", command="uncached trial", trials=self.trials,
                  seconds=time.monotonic() - self.began, exit_code=exit_code)


class Trial:
    """The runs of a program in one way, beside those of the same rounds in the plain way."""

    def __init__(self, runs, plain):
        self.runs = runs
        self.killed = runs.count(None)
        done = [result for result in runs if result]
        self.seconds = [result[0] for result in done]
        self.left = [result[1] for result in done]
        self.beside = [one[0] / other[0] for one, other in zip(runs, plain) if one and other]
        # The runs of a round are in the order of READS.
        by_reads = {reads: [result for result in runs[at :: len(READS)] if result]
                    for at, reads in enumerate(READS)}
        self.kept = {reads: [result[2] for result in own] for reads, own in by_reads.items()}
        self.again = {reads: [result[3] for result in own] for reads, own in by_reads.items()}


def interval(values):
    """The median with its 95 % interval, by the order of the values (the sign test)."""
    ordered = sorted(values)
    count, tail, least = len(ordered), 0.0, 0
    while (tail := tail + math.comb(count, least) / 2**count) <= 0.025:
        least += 1
    first = max(least - 1, 0)
    return ordered[first], statistics.median(ordered), ordered[count - 1 - first]


def measure_round(turn, programs, methods, groups, fsure):
    """Runs all programs in all ways. Returns the runs of each way by program."""
    runs = {name: {method: [] for method in methods} for name in programs}
    for name in programs:
        for reads in READS:
            # Each way begins once in as many rounds, since each one finds what the last one left.
            for at in range(len(methods)):
                method = methods[(turn + at) % len(methods)]
                result = run(method, PROGRAMS[name], reads, groups, fsure)
                if method == "plain" and result is None:
                    sys.exit(f"{name} was killed as it is: it needs more than "
                             f"{MEMORY // MIB} MiB. Name the other programs with --only")
                runs[name][method].append(result)
    return runs


def measure(programs, methods, rounds, groups, fsure):
    """Runs all programs in all ways, round by round, so that what changes meanwhile meets them
    alike. Ctrl-C and SIGTERM end it, and what the rounds before have measured is kept. Returns
    the trial of each way by program, and the exit code of an early end or `None`."""
    done, ended_by = [], None
    try:
        for turn in range(rounds):
            done.append(measure_round(turn, programs, methods, groups, fsure))
            print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
    except (KeyboardInterrupt, SystemExit) as end:
        if not done or isinstance(getattr(end, "code", None), str):
            raise
        ended_by = getattr(end, "code", 130)
        print(f"ended early: the result is of {len(done)} rounds", file=sys.stderr)
    runs = {name: {method: [result for one in done for result in one[name][method]]
                   for method in methods} for name in programs}
    trials = {name: {method: Trial(own, ways["plain"]) for method, own in ways.items()}
              for name, ways in runs.items()}
    return trials, ended_by


def row(name, trials):
    """The row of a program in the table for docs/uncached.md."""
    cells = []
    for trial in trials.values():
        if trial.killed:
            cells.append(f"killed in {trial.killed} of {len(trial.runs)}")
            continue
        low, middle, high = interval(trial.beside)
        kept = ", ".join(f"{statistics.median(trial.kept[reads]):.0%}" for reads in READS)
        left = statistics.median(trial.left) / MIB
        cells.append(f"{middle:.2f} ({low:.2f} - {high:.2f}), {left:,.0f} MiB, {kept}")
    seconds = statistics.median(trials["plain"].seconds)
    return f"| {name} ({seconds:.1f} s) | " + " | ".join(cells) + " |"


def main():
    """Measures all, in turns, and prints medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=pathlib.Path, required=True, help="a folder on a real disk")
    parser.add_argument("--fsure", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each program [5]")
    parser.add_argument("--only", action="append", choices=PROGRAMS, help="only this program")
    parser.add_argument("--without", action="append", default=[], choices=METHODS[1:],
                        help="not in this way: a program that needs much memory can stand still "
                        "in a group of version 2")
    parser.add_argument("--save", type=pathlib.Path, help="a file for the result")
    parser.add_argument("--note", help="a sentence on the machine, for the picture")
    given = parser.parse_args()
    fsure = given.fsure.absolute()
    save = given.save and given.save.absolute()
    if save and save.exists():
        sys.exit(f"{save} is there already: name another file with --save")
    # What was set and made for the time of the run is taken back after SIGTERM, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    programs = given.only or list(PROGRAMS)
    prepare(given.dir, programs)
    with contextlib.ExitStack() as stack:
        limit = stack.enter_context(cgroup.MemoryLimit(MEMORY))
        if limit.folder is None:
            sys.exit("DID NOT RUN: needs root, and control groups that limit memory")
        groups = stack.enter_context(Groups(limit.folder))
        for name in ("big", "tree", "repo", "hot"):
            evict(pathlib.Path(name))
        saved = Results(save, fsure, given.note)
        found = [name for name in programs if shutil.which(PROGRAMS[name].split()[0])]
        methods = [method for method in METHODS if method not in given.without]
        trials, ended_by = measure(found, methods, given.rounds, groups, fsure)
        print("| program | " + " | ".join(map(groups.way, methods)) + " |")
        print("|---|" + "---|" * len(methods))
        for name in programs:
            if name not in found:
                print(f"| {name} | DID NOT RUN: not installed |")
                continue
            for method, trial in trials[name].items():
                saved.trial(name, groups.way(method), trial)
            print(row(name, trials[name]))
        saved.end(ended_by or 0)
    sys.exit(ended_by)


if __name__ == "__main__":
    main()
