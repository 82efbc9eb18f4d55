"""Runs commands in turn and notes what each cost.

Every run has a session of its own with a raised autogroup weight: between
sessions the scheduler ignores `nice`, and other work on the machine would take
an equal share.
"""

import contextlib
import dataclasses
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import host

WEIGHT = -18
PATIENCE = 1800  # seconds after which a run counts as hung


@dataclasses.dataclass(frozen=True)
class Contender:
    """One command, run by bash in the folder of the data set."""

    name: str
    command: str
    needs: tuple = ()  # programs; without one of them it is "not available"
    judged: bool = True  # False: shown for comparison only
    clock: object = None  # from its output to its own seconds, if it knows better
    before: object = None  # called before each run in the state, untimed
    after: object = None  # called after each run; what it returns is kept
    inside: object = None  # a memory cgroup to run in


@dataclasses.dataclass
class Sample:
    """One run."""

    wall: float
    user: float
    system: float
    peak: int
    device: int
    others: float  # CPU seconds that other processes used meanwhile
    output: str = ""
    failure: str = ""
    growth: int | None = None
    extra: float | None = None

    @property
    def cpu(self):
        """CPU seconds of all processes of the run."""
        return self.user + self.system


def session(command, inside):
    """The bash text that gives a command its weight and its cgroup first."""
    enter = f"echo $$ > '{inside}/cgroup.procs' || exit 99; " if inside else ""
    weight = f"{{ echo {WEIGHT} > /proc/self/autogroup; }} 2>/dev/null; "
    return f"set -o pipefail; {enter}{weight}{command}"


def kill_group(pid):
    """Ends a run and all it started; the session's leader heads their group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def wait(process):
    """Status and usage of a run; on any interruption nothing of it survives.

    Usage covers the descendants that were waited for, which for a pipeline of
    xargs is all of them; the peak is that of the largest single process.
    """
    timer = threading.Timer(PATIENCE, kill_group, [process.pid])
    timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        kill_group(process.pid)
        process.wait()
        raise
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage


def run(contender, folder, disk, env):
    """One run of a contender, timed from before the start to after the end."""
    text = session(contender.command, contender.inside)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        busy, device, start = host.busy_seconds(), host.device_bytes(disk), time.perf_counter()
        # No preexec_fn: it would cost a fork of this process instead of a vfork.
        process = subprocess.Popen(
            ["bash", "--norc", "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=out if contender.clock else subprocess.DEVNULL,
            stderr=err,
            cwd=folder,
            env=env,
            start_new_session=True,
        )
        usage = wait(process)
        wall = time.perf_counter() - start
        device, busy = host.device_bytes(disk) - device, host.busy_seconds() - busy
        sample = Sample(
            wall=wall,
            user=usage.ru_utime,
            system=usage.ru_stime,
            peak=usage.ru_maxrss * 1024,
            device=device,
            others=max(0.0, busy - usage.ru_utime - usage.ru_stime),
            output=tail(out),
        )
        if process.returncode != 0:
            sample.failure = f"exit code {process.returncode}"
            print(f"!! {contender.name}: {tail(err)[-2000:]}", file=sys.stderr)
        elif contender.clock:
            sample.wall = contender.clock(sample.output)
    return sample


def tail(file):
    """The text a run left in a file."""
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def warm_programs(contender, env):
    """Loads the programs themselves: after emptying the caches, the first use
    of a command would measure how many libraries it has.
    """
    for program in ("bash", *contender.needs):
        flag = "-V" if program == "hashdeep" else "--version"
        text = f'cat "$(command -v {program})" > /dev/null; {program} {flag}'
        subprocess.run(["bash", "-c", text], env=env, capture_output=True, check=False)


@dataclasses.dataclass
class Work:
    """Contenders that do the same with one data set in one state of the caches.

    cold: nothing in memory. cached: all data and the record in memory.
    listed: all names and inodes and the record in memory, data as it happens.
    """

    title: str
    data: object
    state: str
    contenders: list
    samples: dict = dataclasses.field(default_factory=dict)

    def make_state(self, contender, env):
        """Brings the caches into the state; returns the bytes resident."""
        if self.state == "cold":
            host.drop_caches()
            warm_programs(contender, env)
            return 0
        if self.state == "cached":
            self.data.load()
        else:
            list_all = ["find", self.data.folder, "-size", "+1048576G"]
            subprocess.run(list_all, check=True, stdout=subprocess.DEVNULL)
        self.data.load_catalog()
        return self.data.resident() if self.state == "cached" else None

    def measure(self, rounds, disk, env, missing):
        """All rounds; each begins with another contender than the one before."""
        able = [one for one in self.contenders if not missing.intersection(one.needs)]
        self.samples = {one.name: [] for one in able}
        for number in range(rounds):
            for step in range(len(able)):
                one = able[(number + step) % len(able)]
                sample = self.once(one, disk, env)
                self.samples[one.name].append(sample)
                print(
                    f"{self.title} | round {number + 1} | {one.name}: {sample.wall:.3f} s, "
                    f"CPU {sample.cpu:.3f} s {sample.failure}",
                    file=sys.stderr,
                    flush=True,
                )

    def once(self, contender, disk, env):
        """One run in the state asked for, and what it left in memory."""
        resident = self.make_state(contender, env)
        if contender.before:
            contender.before()
        sample = run(contender, self.data.folder, disk, env)
        if contender.after:
            sample.extra = contender.after()
        if resident is not None:
            sample.growth = self.data.resident() - resident
        return sample

    def good(self, name):
        """A contender's samples, or none if it failed or was not there."""
        found = self.samples.get(name, [])
        return [] if any(sample.failure for sample in found) else found

    def median(self, name, value="wall"):
        """The median of a value over the rounds, or None."""
        found = [getattr(sample, value) for sample in self.good(name)]
        found = [one for one in found if one is not None]
        return statistics.median(found) if found else None

    def ratio(self, above, below):
        """The median over the rounds of one contender's time to another's.

        Of each round and not of the medians: what disturbs a round disturbs
        both.
        """
        pairs = zip(self.good(above), self.good(below), strict=False)
        found = [one.wall / other.wall for one, other in pairs]
        return statistics.median(found) if found else None

    def fastest(self, names):
        """The name with the smallest median among those that ran, or None."""
        times = [(self.median(name), name) for name in names]
        times = [pair for pair in times if pair[0] is not None]
        return min(times)[1] if times else None
