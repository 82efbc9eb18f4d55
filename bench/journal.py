#!/usr/bin/env python3
"""Measures why commits under `fsure defer` come in bursts: SQLite commits on ext4 with
`data=journal`, on a simulated drive that takes 21.7 ms for each flush, with a small and with a
large journal, in turns.

Needs root, sqlite3, e2fsprogs and a kernel with loop devices. Prints of each journal the commits
in a second, the share of 20 ms spans without one, the transactions of ext4's journal, and what
`fsure defer` says at its end. Nothing of it stays.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

JOURNALS_MIB = (16, 256)
DRIVE_MIB = 1000
SPAN_S = 0.02
SQLITE = pathlib.Path(__file__).resolve().parent.parent / "docs/examples/sqlite/run"


def end_once(number, _):
    """Ends the run by a signal, and lets no other one disturb that what was mounted goes."""
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    sys.exit(128 + number)


def call(*words):
    """Runs a command to its end. Returns its output."""
    words = [str(word) for word in words]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def mounted(fsure, folder, journal_mib):
    """Mounts a new ext4 with a journal of this size on a simulated drive. Yields the folder and
    the name of the loop device."""
    image, drive, top = folder / "image", folder / "drive", folder / "mount"
    with open(image, "wb") as file:
        file.truncate(DRIVE_MIB << 20)
    call("mkfs.ext4", "-q", "-F", "-J", f"size={journal_mib}", image)
    with contextlib.ExitStack() as stack:
        for new in (drive, top):
            new.mkdir()
            stack.callback(new.rmdir)
        words = [fsure, "crash", "--quiet", "--serve", folder / "socket", "--latency", "apple"]
        words += ["--image", image, "--front", "file", "--at", drive]
        # Ctrl-C must not end the drive before it is unmounted.
        server = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
        stack.callback(server.wait)
        stack.callback(server.terminate)
        while not (drive / "disk").exists():
            if server.poll() is not None:
                sys.exit("DID NOT RUN: 'fsure crash --serve' has ended")
            time.sleep(0.1)
        loop = call("losetup", "-f", "--show", drive / "disk").strip()
        stack.callback(call, "losetup", "-d", loop)
        name = loop.removeprefix("/dev/")
        # Without a write cache the loop device passes on no flush.
        pathlib.Path(f"/sys/block/{name}/queue/write_cache").write_text("write back", "ascii")
        call("mount", "-o", "data=journal", loop, top)
        stack.callback(call, "umount", top)
        yield top, name
    image.unlink()


def run(fsure, top, seconds):
    """Commits for some seconds. Returns the times of the commits and what `fsure defer` says."""
    words = [str(fsure), "defer", "--max-loss", "1s", "--dir", str(top), "--", str(SQLITE)]
    program = subprocess.Popen([*words, "wal", "full"], env={"MNT": str(top), "PATH": "/usr/bin:/bin"},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    times, began = [], time.monotonic()
    try:
        for line in program.stdout:
            now = time.monotonic() - began
            if line.startswith("ACK"):
                times.append(now)
            if now > seconds:
                break
    finally:
        # As Ctrl-C in a terminal: the shell and sqlite3 behind it end, too.
        os.killpg(program.pid, signal.SIGINT)
        for _ in program.stdout:
            pass
        said = program.stderr.read()
        program.wait()
    if not times:
        sys.exit(f"DID NOT RUN: SQLite has committed nothing: {said.strip()}")
    return times, said


def main():
    """Measures each journal in turns and prints medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fsure", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each [3]")
    parser.add_argument("--seconds", type=float, default=10, help="length of a run [10]")
    given = parser.parse_args()
    fsure = given.fsure.absolute()
    programs = (str(fsure), "sqlite3", "mkfs.ext4", "losetup")
    missing = [program for program in programs if shutil.which(program) is None]
    if os.geteuid() or missing:
        sys.exit(f"DID NOT RUN: needs root, and {', '.join(missing or programs)}")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end_once)
    results = {journal: [] for journal in JOURNALS_MIB}
    print("| journal | commits/s | spans without | transactions/s | each took | defer |")
    print("|---|---|---|---|---|---|")
    for _ in range(given.rounds):
        for journal, rates in results.items():
            with tempfile.TemporaryDirectory() as folder:
                with mounted(fsure, pathlib.Path(folder), journal) as (top, name):
                    times, said = run(fsure, top, given.seconds)
                    info = pathlib.Path(f"/proc/fs/jbd2/{name}-8/info").read_text("ascii")
            spans = int(times[-1] / SPAN_S)
            empty = spans - len({int(at / SPAN_S) for at in times if at < spans * SPAN_S})
            count = int(re.search(r"(\d+) transactions", info).group(1))
            took = int(re.search(r"(\d+)us average transaction commit", info).group(1))
            rates.append(len(times) / times[-1])
            facts = re.findall(r"[\d,]+ calls|[\d,]+ waited|Flushed: \d+|lag [\d.]+ m?s", said)
            print(f"| {journal} MiB | {rates[-1]:,.0f} | {empty / spans:.0%} | "
                  f"{count / times[-1]:.1f} | {took / 1000:.0f} ms | {', '.join(facts)} |",
                  flush=True)
    small, large = (statistics.median(results[journal]) for journal in JOURNALS_MIB)
    print(f"medians: {small:,.0f} and {large:,.0f} commits/s, {large / small:.1f} times as many")


if __name__ == "__main__":
    main()
