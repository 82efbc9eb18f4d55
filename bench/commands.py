"""The commands that compete, of fsure and its peers, each at its best setting."""

import json

import peers
from measure import Contender

# Debian's fio and dd read into 4 KiB pages, which cost a virtual disk two
# thirds of its speed. This makes malloc ask for huge ones: the peer at its best.
HUGE = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
FILES = "find . -type f -print0 | xargs -0"


def fsure(job, name, **more):
    """The command of fsure over a data set; its record lies outside of the data."""
    command = f"fsure {job} --quiet --catalog ../catalogs/{name}.db ."
    return Contender(f"fsure {job}", command, ("fsure",), **more)


def fsure_by_hand(job, name, threads, depth):
    """The same with readers and reads in flight chosen by hand."""
    command = f"fsure {job} --quiet --threads {threads} --depth {depth}"
    command += f" --catalog ../catalogs/{name}.db ."
    return Contender(f"{threads} threads, depth {depth}", command, ("fsure",))


def forget(data, name):
    """Removes a record with all that belongs to it."""
    for path in data.catalog.parent.glob(f"{name}.db*"):
        path.unlink()


def fsure_anew(data):
    """The first `update`, whose record is made from nothing."""
    new = f"{data.name}-new"
    command = f"fsure update --quiet --catalog ../catalogs/{new}.db ."
    return Contender(
        "fsure update, new record", command, ("fsure",), before=lambda: forget(data, new)
    )


def fio_clock(output):
    """The seconds of the reading alone: fio takes long to start and to end,
    and fsure must not profit from that at the limit of the device.
    """
    reads = json.loads(output[output.index("{") :])["jobs"][0]["read"]
    return reads["io_bytes"] / reads["bw_bytes"]


def fio(depth):
    """Fio's direct reads of the big file."""
    command = (
        f"{HUGE} fio --name=read --filename=big.bin --readonly --rw=read --direct=1 "
        f"--ioengine=io_uring --bs=1M --iodepth={depth} --output-format=json"
    )
    return Contender(f"fio direct, depth {depth}", command, ("fio",), clock=fio_clock)


def dd():
    """Direct reads one after the other, of a size that hides the gaps."""
    return Contender("dd direct", f"{HUGE} dd if=big.bin of=/dev/null bs=64M iflag=direct", ("dd",))


def rclone(**more):
    """Rclone's own walk and hashing, with its default of 8 files at once."""
    return Contender("rclone", f"rclone hashsum {peers.rclone_hash()} .", ("rclone",), **more)


def whole(program, **more):
    """A program over the big file."""
    return Contender(program, f"{program} big.bin", (program,), **more)


def spread(program, processes, options="", **more):
    """A program over all small files in several processes, which no file keeps waiting.

    Without a limit xargs hands out 128 KiB of names: few starts, but not enough
    portions for many processes.
    """
    portions = " -n500" if processes > 2 else ""
    command = f"{FILES} -P{processes}{portions} {program} {options}".rstrip()
    name = f"{program} as {processes} processes"
    return Contender(name, command, ("find", "xargs", program), **more)


def rivals(contenders):
    """Names of the peers that count."""
    return [one.name for one in contenders if one.judged and "fsure" not in one.needs]
