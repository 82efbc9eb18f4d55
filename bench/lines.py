"""Lines of the target table, in words: the figure of fsure, the peer's, the ratio, the verdict."""

import dataclasses

import host

MIB = 1 << 20


@dataclasses.dataclass
class Line:
    """One line of the target table."""

    work: str
    ours: str
    peer: str
    ratio: str
    target: str
    verdict: str


def judge(values, bound, at_least=True, aim=None):
    """The verdict on one or more figures for the same."""
    if None in values:
        return "not measured"
    met = [value >= bound if at_least else value <= bound for value in values]
    if not all(met):
        return "**undecided**" if any(met) else "**missed**"
    return "met, and the aim" if aim is not None and min(values) >= aim else "met"


def figure(value, form, unit):
    """A figure with its unit, or a dash."""
    return "-" if value is None else f"{value:{form}} {unit}"


def named(work, peer, form="{:.3f} s", value="wall", scale=1.0):
    """A peer's figure and name, or that there is none and why."""
    found = work.median(peer, value)
    if found is not None:
        return f"{form.format(found * scale)} {peer}"
    return f"failed: {peer}" if work.samples.get(peer) else f"not available: {peer}"


def compared(work, above, below, unit):
    """Both ratios of two contenders' times, and how the table shows them.

    That of the medians is what a reader computes; that of the rounds holds where
    a whole round was disturbed. Where they differ, the figures are not firm.
    """
    tops, bottoms = work.median(above), work.median(below)
    if tops is None or bottoms is None:
        return [None], "-"
    values = [tops / bottoms, work.ratio(above, below)]
    return values, f"{values[0]:.3f} ({values[1]:.3f}) x {unit}"


def speed(work, ours, peers, bound, aim=None):
    """How many times as fast fsure is as the fastest of the peers."""
    peer = work.fastest(peers) or peers[0]
    values, shown = compared(work, peer, ours, "as fast")
    wish = f", aim {aim}" if aim else ""
    return Line(
        work.title,
        figure(work.median(ours), ".3f", "s"),
        named(work, peer),
        shown,
        f"at least {bound}{wish}",
        judge(values, bound, aim=aim),
    )


def at_most(work, ours, peer, bound):
    """How many times as long as a peer fsure takes."""
    values, shown = compared(work, ours, peer, "its time")
    return Line(
        work.title,
        figure(work.median(ours), ".3f", "s"),
        named(work, peer),
        shown,
        f"at most {bound}",
        judge(values, bound, at_least=False),
    )


def without_listing(work, ours, listing, bound):
    """CPU milliseconds of fsure without those of a plain listing."""
    whole, plain = work.median(ours, "cpu"), work.median(listing, "cpu")
    own = None if whole is None or plain is None else (whole - plain) * 1000
    return Line(
        f"{work.title}, {ours}",
        figure(own, ".0f", f"ms CPU of {(whole or 0) * 1000:.0f} ms"),
        named(work, listing, "{:.0f} ms", "cpu", 1000),
        "-",
        f"under {bound} ms without the listing (icj: 2,197-3,136)",
        judge([own], bound, at_least=False),
    )


def cache_growth(work, ours):
    """What a cold run left in memory of what it read, and what the peers left."""
    percent = 100 / work.data.bytes
    growth = work.median(ours, "growth")
    share = None if growth is None else growth * percent
    others = {one: work.median(one, "growth") for one in work.samples if one != ours}
    most = max((value * percent for value in others.values() if value is not None), default=None)
    return Line(
        f"{work.title}: growth of the page cache",
        figure(share, ".2f", "% of the bytes read"),
        figure(most, ".0f", "% at the most"),
        "-",
        "below 1 %",
        judge([share], 0.9999, at_least=False),
    )


def cpu_per_gigabyte(work, ours):
    """All CPU of a cold run for each 10^9 bytes, beside the cheapest that hashes."""
    scale = 1e9 / work.data.bytes
    cpu = work.median(ours, "cpu")
    cost = None if cpu is None else cpu * scale
    hashing = [one for one in work.samples if one.startswith(("b3sum", "xxh", "rclone"))]
    hashing = [one for one in hashing if work.good(one)]
    peer = min(hashing, key=lambda one: work.median(one, "cpu"), default="b3sum")
    return Line(
        f"{work.title}: CPU per GB",
        figure(cost, ".3f", "s/GB"),
        named(work, peer, "{:.3f} s/GB", "cpu", scale),
        "-",
        "at most 0.16 s/GB",
        judge([cost], 0.16, at_least=False),
    )


def kept(work, ours, peer):
    """How much of another program's file is still in memory after a run."""
    share = work.median(ours, "extra")
    return Line(
        f"{work.title}: kept by {ours}",
        figure(share, ".1f", "%"),
        named(work, peer, "{:.1f} %", "extra"),
        "-",
        "100 %",
        judge([share], 99.95),
    )


def peak(work, ours, bound, target):
    """The most memory a run had, or what it had less than."""
    most, least = work.median(ours, "peak"), host.own_peak()
    hidden = most is not None and most <= least
    shown = None if most is None else most / MIB
    return Line(
        f"{work.title}: {ours}",
        f"less than {least / MIB:.0f} MiB" if hidden else figure(shown, ".0f", "MiB"),
        "-",
        "-",
        f"{target} = {bound // MIB} MiB",
        judge([None if hidden and least > bound else most], bound, at_least=False),
    )
