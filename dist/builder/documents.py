"""Manual pages and completions, by `cargo xtask`."""

import contextlib
import gzip
import pathlib
import tempfile


class Documents:
    """Files that are the same for all targets."""

    def __init__(self, folder):
        self.man = sorted((folder / "man").glob("*.1"))
        found = {file.name: file for file in (folder / "completions").iterdir()}
        self.completions = sorted(found.values())
        self.bash, self.zsh, self.fish = found["fsure.bash"], found["_fsure"], found["fsure.fish"]


@contextlib.contextmanager
def made(project, binary):
    """Yields them, in a folder that lasts as long. A trial takes the task that was built with its
    binary."""
    xtask = [binary.with_name("xtask")] if binary else ["cargo", "xtask"]
    with tempfile.TemporaryDirectory() as folder:
        for task in ("man", "completions"):
            project.run([*xtask, task, pathlib.Path(folder) / task])
        yield Documents(pathlib.Path(folder))


def zipped(file, folder):
    """Compresses a file as distributions have their manual pages, without name and date."""
    to = folder / f"{file.name}.gz"
    to.write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
    return to
