"""Programs that the steps call, at fixed versions, installed below the target folder."""

import os
import pathlib
import subprocess
import sys

# The last version whose dependencies the Go proxy of every machine here has.
NFPM = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0"
PYTHON = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1", "wheel==0.45.1"]
# Version and features.
CARGO = {"cargo-about": ("0.9.3", "cli"), "cargo-cyclonedx": ("0.5.9", "")}

# Rust calls it for the import libraries of Windows.
DLLTOOL = '#!/bin/sh\nexec "$(dirname "$0")/python" -m ziglang dlltool "$@"\n'


class Tools:
    """Each is installed when it is first asked for."""

    def __init__(self, project):
        self.project = project
        self.folder = project.target / "tools" / "dist"
        self.cache = self.folder / "cache"  # of zig
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def python_folder(self):
        """The folder of the programs that pip installs."""
        folder = self.folder / "python"
        done = folder / "installed"
        if not done.exists() or done.read_text() != "\n".join(PYTHON):
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            subprocess.run([folder / "bin" / "pip", "install", "-q", *PYTHON], check=True)
            dlltool = folder / "bin" / "x86_64-w64-mingw32-dlltool"
            dlltool.write_text(DLLTOOL)
            dlltool.chmod(0o755)
            done.write_text("\n".join(PYTHON))
        return folder / "bin"

    @property
    def nfpm(self):
        """The program that makes deb and rpm."""
        folder = self.folder / "go"
        if not (folder / "nfpm").exists():
            environment = {**os.environ, "GOBIN": str(folder), "CGO_ENABLED": "0"}
            subprocess.run(["go", "install", NFPM], check=True, env=environment)
        return folder / "nfpm"

    def cargo(self, name):
        """Returns a program that cargo installs."""
        program = self.folder / "bin" / name
        if not program.exists():
            environment = {**os.environ, "CARGO_TARGET_DIR": str(self.folder / "build")}
            version, features = CARGO[name]
            subprocess.run(
                ["cargo", "install", "-q", "--locked", "--root", self.folder,
                 "--no-default-features", "--features", features, f"{name}@{version}"],
                check=True, env=environment,
            )  # fmt: skip
        return program

    def standard_library(self, triple):
        """Returns the sysroot with the standard library of a target that the toolchain lacks, or
        None if it has it."""
        home = self.folder / "std"
        home.mkdir(exist_ok=True)
        script = ". .ci/std; std_for \"$1\" build \"$2\""
        path = f"{self.python_folder}{os.pathsep}{os.environ['PATH']}"
        made = self.project.run(
            ["bash", "-c", script, "bash", triple, home], env={"PATH": path},
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return pathlib.Path(made.stdout.strip()) if made.stdout.strip() else None

    @property
    def objcopy(self):
        """The toolchain's own objcopy, which knows all formats, and its environment."""
        sysroot = subprocess.check_output(["rustc", "--print", "sysroot"], text=True).strip()
        found = next(pathlib.Path(sysroot).glob("lib/rustlib/*/bin/rust-objcopy"))
        return found, {"LD_LIBRARY_PATH": f"{sysroot}/lib"}
