"""Builds fsure and gets the peers from their packages; names what is not available."""

import os
import pathlib
import shutil
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
CRATES = {"b3sum": ("b3sum", "1.8.7"), "fd": ("fd-find", "10.5.0")}
# Debian's rclone is too old to know BLAKE3, so Go's package comes first.
GO_PACKAGES = {"rclone": "github.com/rclone/rclone@v1.75.1"}
DEBS = {"fio": "fio", "xxh128sum": "xxhash", "hashdeep": "hashdeep", "rclone": "rclone", "pv": "pv"}
VERSION = {
    "hashdeep": ["hashdeep", "-V"],
    "rclone": ["rclone", "--config=", "version"],
}
PEERS = ("b3sum", "fd", "fio", "xxh128sum", "hashdeep", "rclone", "pv")
SYSTEM = ("dd", "find", "xargs", "stat")
PATIENCE = 1800


def target():
    """Cargo's target folder."""
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")).absolute()


def environment():
    """The environment of every run: the built fsure and the installed tools come first."""
    tools = target() / "bench-tools"
    path = [str(target() / "release"), str(tools / "bin"), os.environ.get("PATH", "")]
    return {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "LC_ALL": "C.UTF-8",
        "RCLONE_CONFIG": os.devnull,
    }


def has(program):
    """Whether a run would find the program."""
    return shutil.which(program, path=environment()["PATH"]) is not None


def attempt(command, **more):
    """Runs one step of an installation; a failure is reported and ends nothing."""
    print("== " + " ".join(map(str, command)), file=sys.stderr, flush=True)
    env = {**environment(), **more.pop("env", {})}
    try:
        done = subprocess.run(
            command, check=False, env=env, stdout=sys.stderr, timeout=PATIENCE, **more
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"!! {error}", file=sys.stderr)
        return False
    return done.returncode == 0


def build():
    """The release build that is measured; without it there is nothing to do."""
    command = ["cargo", "build", "--release", "--locked", "--package", "fsure"]
    subprocess.run(command, cwd=REPOSITORY, check=True, stdout=sys.stderr)


def install():
    """Gets every peer that is missing."""
    tools = target() / "bench-tools"
    for program, (package, version) in CRATES.items():
        if not has(program):
            flags = ["--version", version, "--locked", "--quiet", "--root", tools]
            scratch = {"CARGO_TARGET_DIR": str(tools / "build")}
            attempt(["cargo", "install", package, *flags], env=scratch)
    for program, package in GO_PACKAGES.items():
        if not has(program) and has("go"):
            install_go(package, tools)
    shutil.rmtree(tools / "build", ignore_errors=True)
    wanted = [package for program, package in DEBS.items() if not has(program)]
    if wanted and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        attempt(["apt-get", "update", "-q"], env=quiet)
        for package in wanted:
            attempt(
                ["apt-get", "install", "-q", "-y", "--no-install-recommends", package], env=quiet
            )


def install_go(package, tools):
    """One Go command, with nothing of the build left behind."""
    scratch = {
        "GOBIN": str(tools / "bin"),
        "GOMODCACHE": str(tools / "build" / "modules"),
        "GOCACHE": str(tools / "build" / "cache"),
        "GOFLAGS": "-modcacherw",
    }
    attempt(["go", "install", package], env=scratch, cwd="/")


def missing():
    """The programs that no run can use."""
    return {program for program in PEERS + SYSTEM if not has(program)}


def version(program):
    """The first line of the version that a program prints, or "not available"."""
    if not has(program):
        return "not available"
    command = VERSION.get(program, [program, "--version"])
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].split(" by ")[0] if lines else "unknown"


def versions():
    """Name and version of everything that took part or should have."""
    commit = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty"]
    done = subprocess.run(commit, capture_output=True, text=True, check=False)
    found = {"fsure": f"{version('fsure')}, commit {done.stdout.strip() or 'unknown'}"}
    found.update((program, version(program)) for program in PEERS + SYSTEM)
    found["chkbit"] = "not available: the Go module proxy refuses it (403)"
    return found


def rclone_hash():
    """BLAKE3 where this rclone has it, else MD5, which is the next fastest."""
    command = ["rclone", "hashsum"]
    if not has("rclone"):
        return "blake3"
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    return "blake3" if "blake3" in (done.stdout + done.stderr).lower() else "md5"
