"""The Markdown: method, machine, the target table, and what every run cost."""

import dataclasses
import os

import agree
import host

MIB = 1 << 20

METHOD = """\
All commands of a row do the same work on the same data, in turn: {rounds} rounds,
each beginning with the next command. Figures are medians. A ratio is that of the
medians, and in brackets the median of the rounds' own ratios; if the two do not
agree about a target, it is undecided. Every run is a session of its own with a
raised autogroup weight.

- **cold**: after `sync` and dropping all caches. The programs themselves are
  loaded before the clock starts; data, names and fsure's record are not. A host may
  still have in memory what its guest believes to be cold.
- **in cache**: every page of the data and of fsure's record is in memory.
- **nothing changed**: all names and inodes and fsure's record are in memory.
- fsure's time is that of the whole command, record included. fio's is the time of
  its reads alone, as it reports it. fio and dd read into huge pages, which
  makes them up to three times as fast on a virtual disk.
- **load and compare** is all CPU of the command less that of a plain `find` that
  asks for the size of every file and prints nothing.
- **another program's** file was read once, so its pages are the first that the
  kernel drops; the command and that file share the limited memory.
- **cache growth** counts resident pages of the data (`cachestat`), not those of
  fsure's record; a small file's last page counts whole. **device** is what all
  processes read from the disk meanwhile.
- **others** is the CPU that other work on the machine used during the run; a
  run with much of it says little.
- **agreement**: the figure that each tool reports itself, in turn in one folder.
  It is met if the rounds' ratios lie on both sides of 1 or their median is within
  15 % of it. pg_test_fsync writes 8 KiB, the others 4.
- **peak** is that of the largest single process; below {floor:.0f} MiB it cannot be
  distinguished from the benchmark's own.
"""


def table(head, rows):
    """A Markdown table; the first column is text, the others figures."""
    rule = ["---"] + ["--:" for _ in head[1:]]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows)) + "\n"


def verdicts(found):
    """The target table."""
    rows = [dataclasses.astuple(one) for one in found]
    return table(("work", "fsure", "peer", "ratio", "target", "verdict"), rows)


def size(value, unit=1e6):
    """A number of bytes in the column's unit."""
    return "-" if value is None else f"{value / unit:,.0f}"


def costs(work, contender):
    """One contender's row in the table of a work."""
    name = contender.name
    if name not in work.samples:
        return (name, "not available", *["-"] * 7)
    if not work.good(name):
        return (name, f"failed, {work.samples[name][0].failure}", *["-"] * 7)
    walls = [sample.wall for sample in work.good(name)]
    wall, cpu = work.median(name), work.median(name, "cpu")
    reads = work.state != "listed"
    peak = max(sample.peak for sample in work.good(name))
    return (
        name,
        f"{wall:.3f} ({min(walls):.3f}-{max(walls):.3f})",
        size(work.data.bytes / wall) if reads else "-",
        f"{cpu:.3f}",
        f"{cpu / work.data.bytes * 1e9:.3f}" if reads else "-",
        f"< {host.own_peak() / MIB:.0f}" if peak <= host.own_peak() else size(peak, MIB),
        size(work.median(name, "device")),
        size(work.median(name, "growth")),
        f"{work.median(name, 'others'):.2f}",
    )


def details(work):
    """All figures of a work and the commands behind them."""
    if isinstance(work, agree.Agreement):
        return agreed(work)
    head = (
        "command", "seconds (from-to)", "MB/s", "CPU s", "CPU s/GB",
        "peak MiB", "device MB", "cache growth MB", "others CPU s",
    )  # fmt: skip
    rows = [costs(work, one) for one in work.contenders]
    width = max(len(one.name) for one in work.contenders)
    commands = "\n".join(f"{one.name:{width}}  {one.command}" for one in work.contenders)
    return f"### {work.title}\n\n{table(head, rows)}\n```text\n{commands}\n```\n"


def agreed(work):
    """The figures of fsure and of others for the same things, and the commands."""
    rows = table(("what", "said by", "median (from-to)"), work.rows())
    commands = "\n".join(work.commands())
    return f"### {work.title}\n\n{rows}\n```text\n{commands}\n```\n"


def markdown(found, works, machine, versions, rounds, quick):
    """The whole document."""
    warning = (
        "**QUICK RUN with small data: it shows that the benchmark works, and"
        " nothing else. Not for the documentation.**\n\n"
        if quick
        else ""
    )
    parts = [
        "# Benchmarks\n",
        warning + "Written by `make bench`; the last run is kept here. What it measures and\n"
        "why is in [method.md](method.md).\n",
        METHOD.format(rounds=rounds, floor=host.own_peak() / MIB),
        "## Targets\n",
        verdicts(found),
        "## Machine and versions\n",
        "".join(f"- {name}: {text}\n" for name, text in {**machine, **versions}.items()),
        "## All figures\n",
        *[details(work) for work in works],
    ]
    return "\n".join(parts)


def write(path, text):
    """Writes the file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
