"""The binary of a target, the same byte for byte from every folder and machine."""

import os
import sys

from . import runtime, zig


def binary(project, tools, target):
    """Compiles fsure for a target and returns the binary, with its debug data."""
    build = project.target / "dist"
    folders = zig.names_of_folders(project, tools)
    environment = zig.environment_for(project, tools, target, folders)
    if target.is_linux:
        runtime.without_debug_data(project, tools, target, environment)
    zig.build(
        project, tools, target,
        ["--locked", "--package", "fsure", "--bin", "fsure", "--profile", "dist"],
        {**environment, "CARGO_TARGET_DIR": str(build), "FSURE_COMMIT": project.commit},
    )  # fmt: skip
    return build / target.triple / "dist" / target.program


def stripped(project, tools, target, built, out):
    """Leaves the debug data of a binary in `out`, and returns the binary without them."""
    objcopy, environment = tools.objcopy
    # objcopy signs what is for macOS anew, under the name of the file.
    small = built.parent / "stripped" / target.program
    small.parent.mkdir(exist_ok=True)
    if not target.is_linux:
        project.run([objcopy, "--strip-debug", built, small], env=environment)
        return small
    debug = out / f"fsure-{project.version}-{target.triple}.debug"
    project.run([objcopy, "--only-keep-debug", "--compress-debug-sections", built, debug],
                env=environment)  # fmt: skip
    project.run([objcopy, "--strip-all", built, small], env=environment)
    debug.chmod(0o644)
    return small


def refuse_folders(project, tools, built):
    """Ends the build if the name of a folder of this machine is in what it made: the same commit
    would give other bytes in another folder."""
    content = built.read_bytes()
    found = [str(folder) for folder in zig.names_of_folders(project, tools)
             if os.fsencode(folder) in content]  # fmt: skip
    if found:
        sys.exit(f"{built} has in it the names of folders of this machine: {', '.join(found)}. An "
                 f"older fsure may have left parts of it: remove {tools.cache}")
