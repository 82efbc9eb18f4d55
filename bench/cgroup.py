"""A memory cgroup, version 1 or 2, if the machine allows this script to make one."""

import os
import pathlib
import time

V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")


class MemoryLimit:
    """A cgroup with a limit as long as the `with` block; `folder` is None if none is available."""

    def __init__(self, limit):
        self.limit = limit
        self.folder = None

    def __enter__(self):
        for top, knob in ((V1, "memory.limit_in_bytes"), (V2, "memory.max")):
            folder = top / f"fsure-bench-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            try:
                # Not there where version 2 does not hand memory down.
                with open(folder / knob, "r+", encoding="ascii") as file:
                    file.write(str(self.limit))
            except OSError:
                folder.rmdir()
                continue
            self.folder = folder
            break
        return self

    def __exit__(self, *_):
        # The last process of a run that was killed needs a moment to go.
        for _ in range(50 if self.folder else 0):
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.1)
