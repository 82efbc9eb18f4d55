"""Measures random requests and a sustained write with `fsure speed --io` and with fio.

One run of `fsure speed --io random` measures every queue depth, so that a round is that run and
a run of fio for each. The jobs are those of KDiskMark, which calls fio: RND4K Q1T1, RND4K Q32T1
and SEQ1M Q8T1.
"""

import json
import sys

import agree
from agree import Agreement, Figure, Pair, Side, once

SIZE = 256 << 20
SECONDS = 1
# The mean of what fsure gives each of its turns, of which there are 2 for each of 6 jobs.
BUDGET = 14
JOBS = [
    (access, depth) for access in ("read", "write") for depth in (1, 4, 32)
]
SUSTAINED = 1 << 30


def fio(access, depth):
    """One job of fio, in a file of the same size that is written before."""
    lay_out = f"head -c {SIZE} /dev/urandom > x && sync x && "
    shape = f"--rw=rand{access} --bs=4k --iodepth={depth} --size={SIZE}"
    engine = "--ioengine=io_uring --direct=1 --overwrite=1"
    time = f"--time_based --runtime={SECONDS} --ramp_time=0.3"
    return agree.fio(access, f"{shape} {engine} {time}", "iops", 1, before=lay_out)


def ours(access, depth):
    """The line of fsure for the same."""

    def figure(output):
        for text in output.splitlines():
            line = json.loads(text) if text.startswith("{") else {}
            if (line.get("name"), line.get("queue_depth")) == (f"random {access}", depth):
                return float(line["iops"])
        raise ValueError(f"no random {access} at depth {depth}")

    return Side("fsure speed --io random", RANDOM, figure)


RANDOM = f"fsure speed --json --io random --runs 1 --size {SIZE}B --budget {BUDGET}s ."


def random_pairs():
    """A pair for each direction and queue depth."""
    return [
        Pair(f"random {access}, {depth} at a time", "requests/s", ours(access, depth), [fio(access, depth)])
        for access, depth in JOBS
    ]


def sustained_pair():
    """A write of so many bytes from the beginning on."""
    command = f"fsure speed --json --io sustained -y --size {SUSTAINED}B --budget 60s ."
    mine = Side(
        "fsure speed --io sustained",
        command,
        lambda out: agree.json_lines(out, "sustained", "sustained write", "mib_per_s"),
    )
    shape = f"--rw=write --bs=1M --iodepth=8 --size={SUSTAINED}"
    huge = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "
    peer = agree.fio("write", f"{shape} --ioengine=io_uring --direct=1", before=huge)
    return Pair("a sustained write", "MiB/s", mine, [peer])


def measure(pairs, rounds, folder, env):
    """All rounds of the random pairs: one run of fsure, and one of fio for each pair."""
    for pair in pairs:
        pair.samples = {side.name: [] for side in (pair.ours, *pair.peers)}
    for number in range(rounds):
        # Every other round begins with fio.
        for is_ours in (number % 2 == 0, number % 2 == 1):
            if is_ours:
                whole = once(Side("fsure", RANDOM, lambda out: out), folder, env)
                for pair in pairs:
                    pair.samples[pair.ours.name].append(read(pair.ours, whole))
            else:
                for pair in pairs:
                    for peer in pair.peers:
                        pair.samples[peer.name].append(once(peer, folder, env))
        for pair in pairs:
            shown = ", ".join(
                f"{name}: {found[-1].failure or round(found[-1].value)}"
                for name, found in pair.samples.items()
            )
            print(f"{pair.title} | round {number + 1} | {shown}", file=sys.stderr)


def read(side, whole):
    """The figure of one pair in the output of a run for all."""
    if whole.failure:
        return whole
    try:
        return Figure(side.figure(whole.value))
    except (ValueError, KeyError) as error:
        return Figure(None, repr(error))


def requests(bench):
    """The row of the benchmark."""
    work = Agreement("random requests and a sustained write beside fio", random_pairs())
    measure(work.pairs, bench.rounds, bench.folder, bench.env)
    work.pairs.append(sustained_pair())
    work.pairs[-1].measure(bench.rounds, bench.folder, bench.env)
    found = [pair.line(peer) for pair in work.pairs for peer in pair.peers]
    return found, work
