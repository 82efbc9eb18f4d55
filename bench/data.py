"""The data sets: made once, kept, and made again only when their description changes."""

import dataclasses
import functools
import json
import os
import pathlib
import random
import shutil
import sys

import host

CHUNK = 4 << 20


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a data set consists of; equal specs give equal data."""

    files: int
    folders: int
    smallest: int
    largest: int
    seed: int = 20261120


FULL = {
    "big": Spec(1, 0, 4 << 30, 4 << 30),
    "small": Spec(100_000, 1_000, 4 << 10, 64 << 10),
    "records": Spec(154_269, 11_773, 1, 64),
    "million": Spec(1_000_000, 10_000, 1, 64),
    "victim": Spec(1, 0, 600_000_000, 600_000_000),
}
QUICK = {
    "big": Spec(1, 0, 256 << 20, 256 << 20),
    "small": Spec(2_000, 20, 4 << 10, 64 << 10),
    "records": Spec(3_000, 230, 1, 64),
    "million": Spec(20_000, 200, 1, 64),
    "victim": Spec(1, 0, 64_000_000, 64_000_000),
}


class DataSet:
    """A folder of files as its spec describes them."""

    def __init__(self, top, name, spec):
        self.name = name
        self.spec = spec
        self.folder = pathlib.Path(top) / name
        self.catalog = pathlib.Path(top) / "catalogs" / f"{name}.db"

    def paths(self):
        """Every file. Never a list: what this process holds when it starts a
        command is where the kernel begins to count the command's peak.
        """
        for folder, _, names in os.walk(self.folder):
            for name in names:
                yield os.path.join(folder, name)

    @functools.cached_property
    def bytes(self):
        """Sum of all files' sizes."""
        return sum(os.lstat(path).st_size for path in self.paths())

    @functools.cached_property
    def pages(self):
        """Bytes of all files in whole pages: what they take in memory."""
        sizes = (os.lstat(path).st_size for path in self.paths())
        return sum(-(-size // host.PAGE) for size in sizes) * host.PAGE

    def resident(self):
        """Bytes of these files that are in memory, in whole pages."""
        return sum(host.resident_pages(path) for path in self.paths()) * host.PAGE

    def load(self):
        """Brings every page into memory, unless all are there already."""
        if self.resident() >= self.pages:
            return
        buffer = memoryview(bytearray(CHUNK))
        for path in self.paths():
            read_file(path, buffer)

    def load_catalog(self):
        """Brings the record into memory: it is not what a warm run measures."""
        for path in self.catalog.parent.glob(self.catalog.name + "*"):
            read_file(path, memoryview(bytearray(CHUNK)))


def read_file(path, buffer):
    """Reads a file and forgets it; its pages stay in memory."""
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def prepare(top, name, specs):
    """The data set of that name, made if it is not there or differs."""
    made = DataSet(top, name, specs[name])
    marker = made.folder.with_suffix(".json")
    wanted = dataclasses.asdict(made.spec)
    if marker.exists():
        found = json.loads(marker.read_text("utf-8"))
        if found == {**wanted, "complete": True} and made.folder.is_dir():
            return made
    elif made.folder.exists():
        # Without the marker of this script it is the user's data.
        raise host.Unfit(f"{name}/ exists in the data folder and is not ours; use another --dir")
    print(f"== making the data set {name}: {made.spec}", file=sys.stderr, flush=True)
    note(marker, {**wanted, "complete": False})
    shutil.rmtree(made.folder, ignore_errors=True)
    made.folder.mkdir(parents=True)
    generate(made)
    os.sync()
    note(marker, {**wanted, "complete": True})
    return made


def note(marker, content):
    """Writes the marker whole or not at all."""
    marker.parent.mkdir(parents=True, exist_ok=True)
    draft = marker.with_suffix(".json.new")
    draft.write_text(json.dumps(content), encoding="utf-8")
    draft.replace(marker)


def generate(made):
    """Writes the files: one, or many in turn over all folders.

    Neighbours in a folder then lie far apart on the disk, which is the worst
    case for a reader that goes by folder and inode.
    """
    spec = made.spec
    source = random.Random(spec.seed)
    if spec.folders == 0:
        write_big(made.folder / f"{made.name}.bin", spec.largest, source)
        return
    for number in range(spec.folders):
        (made.folder / f"d{number:05}").mkdir()
    pool = source.randbytes(1 << 20)
    for number in range(spec.files):
        size = source.randint(spec.smallest, spec.largest)
        start = source.randint(0, len(pool) - size)
        path = f"{made.folder}/d{number % spec.folders:05}/f{number:07}.bin"
        with open(path, "wb", buffering=0) as file:
            file.write(pool[start : start + size])


def write_big(path, size, source):
    """One file of content that no file system can compress."""
    with open(path, "wb", buffering=0) as file:
        while size > 0:
            size -= file.write(source.randbytes(min(CHUNK, size)))
