"""The project that is packaged: its folders, version, commit and time."""

import dataclasses
import os
import pathlib
import subprocess
import tomllib


@dataclasses.dataclass(frozen=True)
class Project:
    """Facts that all steps need."""

    root: pathlib.Path  # of the repository
    target: pathlib.Path  # of cargo
    version: str
    commit: str
    time_s: int  # of the commit, in seconds since 1970: the date of every file in a package
    package: dict  # [workspace.package] of Cargo.toml

    @classmethod
    def here(cls):
        """Reads them from the repository that this file is in."""
        root = pathlib.Path(__file__).resolve().parents[2]
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target")).absolute()
        with open(root / "Cargo.toml", "rb") as file:
            package = tomllib.load(file)["workspace"]["package"]
        git = ["git", "-C", str(root)]
        commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
        time = os.environ.get("SOURCE_DATE_EPOCH") or subprocess.check_output(
            [*git, "log", "-1", "--format=%ct"], text=True
        )
        changed = subprocess.check_output(
            [*git, "status", "--porcelain", "--untracked-files=no"], text=True
        )
        if changed:
            print("warning: the repository has changes that are in no commit")
            commit += "-modified"
        return cls(root, target, package["version"], commit, int(time), package)

    def run(self, command, **options):
        """Runs a program with the time of the commit as the time of all that it writes."""
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(self.time_s), "TZ": "UTC",
                       "LC_ALL": "C.UTF-8", **options.pop("env", {})}  # fmt: skip
        options.setdefault("cwd", self.root)
        return subprocess.run(list(map(str, command)), check=True, env=environment, **options)
