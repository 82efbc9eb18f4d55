"""What this machine is and what its kernel counts: the only module that reads /proc and /sys.

Nothing here names the host, a user or a path of the machine in what it
returns for the report.
"""

import ctypes
import os
import pathlib
import platform
import re
import resource

PAGE = os.sysconf("SC_PAGE_SIZE")
CACHESTAT = 451  # the same number on every architecture but alpha
LIBC = ctypes.CDLL(None, use_errno=True)
DROP_CACHES = pathlib.Path("/proc/sys/vm/drop_caches")
# Disks made of memory: a cold run would measure nothing.
MEMORY_DISKS = re.compile(r"zram|ram\d|pmem")


class Range(ctypes.Structure):
    """`struct cachestat_range`; a length of 0 means to the end of the file."""

    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class Pages(ctypes.Structure):
    """`struct cachestat`."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    ]


class Unfit(Exception):
    """The machine or the folder cannot give the figures asked for."""


def require_cold():
    """Fails unless caches can be dropped: without that, "cold" would be a lie."""
    try:
        drop_caches()
    except OSError as error:
        raise Unfit(
            "CANNOT DROP THE PAGE CACHE, so no cold figure would be true: "
            f"{error.strerror} (run as root, outside of a container)"
        ) from error


def drop_caches():
    """Writes back what is dirty and empties the page, dentry and inode caches."""
    os.sync()
    DROP_CACHES.write_text("3\n", encoding="ascii")


def resident_pages(path):
    """How many pages of a file are in memory, without changing that."""
    fd = os.open(path, os.O_RDONLY | os.O_NOATIME)
    try:
        pages = Pages()
        span = Range(0, 0)
        if LIBC.syscall(CACHESTAT, fd, ctypes.byref(span), ctypes.byref(pages), 0):
            raise OSError(ctypes.get_errno(), "cachestat")
        return pages.cached
    finally:
        os.close(fd)


def require_cachestat(path):
    """Fails where the kernel cannot say what is in memory (before Linux 6.5)."""
    try:
        resident_pages(path)
    except OSError as error:
        raise Unfit(f"this kernel cannot count resident pages: {error}") from error


def mounted_on(folder):
    """The (mount point, file system, source) that a folder is on."""
    folder = os.path.realpath(folder)
    best = ("", "unknown", "")
    for line in pathlib.Path("/proc/self/mountinfo").read_text("utf-8").splitlines():
        left, right = line.split(" - ", 1)
        point = left.split()[4].encode().decode("unicode_escape")
        kind, source = right.split()[:2]
        inside = folder == point or folder.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best[0]):
            best = (point, kind, source)
    return best


def disk_of(folder):
    """The kernel's name of the block device under a folder, or raises `Unfit`.

    btrfs and others give files a device number of no disk: then the mount's
    source is asked.
    """
    _, kind, source = mounted_on(folder)
    numbers = [os.stat(folder).st_dev]
    if source.startswith("/") and os.path.exists(source):
        numbers.append(os.stat(source).st_rdev)
    for number in numbers:
        link = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
        if os.path.exists(link):
            name = os.path.basename(os.path.realpath(link))
            if not MEMORY_DISKS.match(name):
                return name
    raise Unfit(f"the data must be on a real disk, and this folder is on {kind}")


def device_bytes(disk):
    """Bytes read from a disk since boot, by all processes."""
    for line in pathlib.Path("/proc/diskstats").read_text("ascii").splitlines():
        fields = line.split()
        if fields[2] == disk:
            return int(fields[5]) * 512
    raise Unfit(f"{disk} is not in /proc/diskstats")


def busy_seconds():
    """CPU seconds that all cores together were not idle since boot."""
    line = pathlib.Path("/proc/stat").read_text("ascii").splitlines()[0]
    user, nice, system, _idle, _wait, irq, soft, steal = map(int, line.split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def own_peak():
    """The peak of this process in bytes: a command cannot be seen to have had less,
    because the kernel counts on from this peak when it is started.
    """
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def load():
    """The load averages as one short text."""
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def facts(folder):
    """Lines about the machine for the report."""
    info = pathlib.Path("/proc/cpuinfo").read_text("utf-8")
    model = re.search(r"^model name\s*:\s*(.*)$", info, re.MULTILINE)
    virtual = ", in a virtual machine" if re.search(r"\bhypervisor\b", info) else ""
    memory = os.sysconf("SC_PHYS_PAGES") * PAGE / 2**30
    disk = disk_of(folder)
    name = model.group(1) if model else platform.machine()
    return {
        "CPU": f"{os.cpu_count()} cores of {name}{virtual}",
        "memory": f"{memory:.0f} GiB",
        "kernel": f"Linux {platform.release()}",
        "data on": f"{mounted_on(folder)[1]} on {disk}",
    }
