"""zig as the linker and the compiler of C for cargo, by cargo-zigbuild: one for all targets."""

import os
import pathlib

# Older systems than that are not supported by Rust either.
MACOS_MIN = "11.0"


def names_of_folders(project, tools):
    """Returns the folders of this machine, and the name that stands for each in what is built. One
    may be within another: to the compilers, the last one that fits counts."""
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    return {
        project.root: "/fsure",
        home: "/cargo",
        project.target / "dist": "/target",
        tools.folder: "/tools",
    }


def environment_for(project, tools, target, folders):
    """Returns what cargo and zig need to compile for a target, with each of the folders renamed."""
    sysroot = tools.standard_library(target.triple)
    if sysroot:
        folders[sysroot.parent] = "/std"
    flags = [f"--remap-path-prefix={folder}={name}" for folder, name in folders.items()]
    flags += ["--sysroot", str(sysroot)] if sysroot else []
    if target.is_linux:
        flags.append("-Clink-arg=-Wl,--build-id=sha1")
    if target.triple.endswith("-musl"):
        flags.append("-Clink-self-contained=no")  # zig has its own musl
    c_flags = [f"-ffile-prefix-map={folder}={name}" for folder, name in folders.items()]
    name = target.triple.replace("-", "_")
    return {
        "PATH": f"{tools.python_folder}{os.pathsep}{os.environ['PATH']}",
        "CARGO_INCREMENTAL": "0",
        f"CARGO_TARGET_{name.upper()}_RUSTFLAGS": " ".join(flags),
        f"CFLAGS_{name}": " ".join(c_flags),
        "MACOSX_DEPLOYMENT_TARGET": MACOS_MIN,
        "XDG_CACHE_HOME": str(tools.cache),
    }


def build(project, tools, target, arguments, environment):
    """Calls cargo with zig as its linker and compiler of C."""
    triple = f"{target.triple}.{target.glibc}" if target.glibc else target.triple
    program = tools.python_folder / "cargo-zigbuild"
    project.run([program, "zigbuild", "--quiet", "--target", triple, *arguments], env=environment)
