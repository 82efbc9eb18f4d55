"""A RAM folder beside the same folder on its disk.

What programs do there that want to be sure: write a small file, flush it, rename
it over the one before, flush the folder; and a stream into a new file. In the RAM
folder the flushes return at once, and the disk gets it within a second: how far
behind it was at worst, with that load on, is the third figure.
"""

import agree
import drive

DURABLE = """
import os, time
data, count, end = os.urandom(4096), 0, time.monotonic() + 2
folder = os.open("d", os.O_RDONLY)
while time.monotonic() < end:
    new = os.open("d/new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(new, data)
    os.fsync(new)
    os.close(new)
    os.rename("d/new", f"d/file-{count % 100}")
    os.fsync(folder)
    count += 1
print("FIGURE", count / 2)
"""
FIRST = """
import os, time
data, began = os.urandom(1 << 20), time.monotonic()
with open("d/large", "wb", buffering=0) as file:
    for _ in range(200):
        file.write(data)
print("FIGURE", 200 / (time.monotonic() - began))
"""
BIND = "mkdir d && fsure ram bind d --max-loss 1s --size 1G >&2 && trap 'fsure ram unbind d >&2' EXIT"
# Every 0.1 s, as long as there is load.
LAG = """
import json, subprocess, time
def worst():
    said = subprocess.run(["fsure", "ram", "status", "d", "--json"], capture_output=True, text=True)
    lines = (json.loads(line) for line in said.stdout.splitlines())
    return max(state["worst_loss_ms"] for state in lines if "worst_loss_ms" in state)
load, most = subprocess.Popen(["python3", "-c", %r]), 0
while load.poll() is None:
    most = max(most, worst())
    time.sleep(0.1)
print("FIGURE", most)
"""


def figure(output):
    """The output of the program."""
    said = [line for line in output.splitlines() if line.startswith("FIGURE ")]
    return float(said[-1].split()[1])


def run(program):
    """A program of this script, as a word for the shell."""
    return "python3 -c '" + program.replace("'", "'\\''") + "'"


def pairs():
    """Every pair."""
    found = []
    for title, unit, program in (
        ("durable small writes", "op/s", DURABLE),
        ("first write", "MiB/s", FIRST),
    ):
        ours = agree.Side("fsure ram bind", f"{BIND} && {run(program)}", figure)
        disk = agree.Side("the disk folder", f"mkdir d && {run(program)}", figure)
        found.append(drive.Cost(f"ram: {title}", unit, ours, [disk]))
    load = DURABLE.replace("+ 2", "+ 5")
    lag = agree.Side("fsure ram bind", f"{BIND} && {run(LAG % load)}", figure)
    found.append(drive.Cost("ram: worst loss under load, max-loss 1 s", "ms", lag, []))
    return found


def ram(bench):
    """The row of the benchmark. Of a loss the worst counts."""
    return drive.row(bench, "a RAM folder", pairs(), alone=max)
