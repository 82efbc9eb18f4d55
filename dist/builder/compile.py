"""The binary of a target, the same byte for byte from every folder and machine."""

import hashlib
import os
import pathlib
import struct
import sys

# Header of the note with a build ID of 20 bytes: two lengths, the type, the name of the owner.
BUILD_ID_NOTE = struct.pack("<III4s", 4, 20, 3, b"GNU")

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


def binary(project, tools, target):
    """Compiles fsure for a target and returns the binary, with its debug data."""
    python = tools.python_folder
    sysroot = tools.standard_library(target.triple)
    build = project.target / "dist"
    folders = names_of_folders(project, tools)
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
    project.run(
        [python / "cargo-zigbuild", "zigbuild", "--quiet", "--locked", "--package", "fsure",
         "--bin", "fsure", "--profile", "dist",
         "--target", f"{target.triple}.{target.glibc}" if target.glibc else target.triple],
        env={
            "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
            "CARGO_TARGET_DIR": str(build),
            "CARGO_INCREMENTAL": "0",
            f"CARGO_TARGET_{name.upper()}_RUSTFLAGS": " ".join(flags),
            f"CFLAGS_{name}": " ".join(c_flags),
            # The C library, which zig compiles by its own clang, has debug data as well.
            "CCC_OVERRIDE_OPTIONS": " ".join(["#", *(f"+{flag}" for flag in c_flags)]),
            "FSURE_COMMIT": project.commit,
            "MACOSX_DEPLOYMENT_TARGET": MACOS_MIN,
            "XDG_CACHE_HOME": str(tools.folder / "cache"),
        },
    )  # fmt: skip
    built = build / target.triple / "dist" / target.program
    if target.is_linux:
        set_build_id(project, tools, built)
    return built


def set_build_id(project, tools, built):
    """Makes the build ID of a binary a digest of the binary without its debug data: those of zig's
    own runtime name the folder that zig is in."""
    objcopy, environment = tools.objcopy
    small = built.with_name("stripped-for-its-id")
    project.run([objcopy, "--strip-all", built, small], env=environment)
    content = bytearray(small.read_bytes())
    write_build_id(content, bytes(20))
    build_id = hashlib.sha1(content).digest()
    content = bytearray(built.read_bytes())
    write_build_id(content, build_id)
    built.write_bytes(content)
    small.unlink()


def write_build_id(content, build_id):
    """Puts a build ID of 20 bytes into the note for it, of which there must be one."""
    if content.count(BUILD_ID_NOTE) != 1:
        sys.exit("the linker has made no note with a build ID, or several")
    at = content.index(BUILD_ID_NOTE) + len(BUILD_ID_NOTE)
    content[at : at + 20] = build_id


def stripped(project, tools, target, built, out):
    """Leaves the debug data of a binary in `out`, and returns the binary without them."""
    objcopy, environment = tools.objcopy
    small = built.with_name(f"stripped-{target.program}")
    if not target.is_linux:
        project.run([objcopy, "--strip-debug", built, small], env=environment)
        return small
    debug = out / f"fsure-{project.version}-{target.triple}.debug"
    project.run([objcopy, "--only-keep-debug", "--compress-debug-sections", built, debug],
                env=environment)  # fmt: skip
    # A link would have a checksum of the debug data, which name the folder of zig.
    project.run([objcopy, "--strip-all", built, small], env=environment)
    debug.chmod(0o644)
    return small


def refuse_folders(project, tools, built):
    """Ends the build if the name of a folder of this machine is in what it made: the same commit
    would give other bytes in another folder."""
    content = built.read_bytes()
    found = [str(folder) for folder in names_of_folders(project, tools)
             if os.fsencode(folder) in content]  # fmt: skip
    if found:
        sys.exit(f"{built} has in it the names of folders of this machine: {', '.join(found)}. An "
                 f"older fsure may have left parts of it: remove {tools.folder / 'cache'}")
