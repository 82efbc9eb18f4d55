"""The C library and the runtime that zig links into every program.

zig compiles them when it first links for a target, and their debug data name the folder that zig is
in. They would be in the debug data of fsure, and in its build ID, which is a digest of all of it.
"""

import pathlib
import tempfile

from . import zig

# The profile decides on options of the linker, and so on which runtime zig takes: that of `dist`.
MANIFEST = """
[package]
name = "smallest"
version = "0.0.0"
edition = "2024"

[workspace]

[profile.release]
debug = "line-tables-only"
strip = "none"
"""


def without_debug_data(project, tools, target, environment):
    """Has zig compile the runtime of a target, by linking the smallest program, and removes its
    debug data from zig's cache, which does not look at its files again."""
    done = tools.cache / f"{target.triple}-is-without-debug-data"
    if done.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        crate = pathlib.Path(folder)
        (crate / "src").mkdir()
        (crate / "Cargo.toml").write_text(MANIFEST)
        (crate / "src" / "main.rs").write_text("fn main() {}\n")
        arguments = ["--manifest-path", crate / "Cargo.toml", "--release"]
        zig.build(project, tools, target, arguments,
                  {**environment, "CARGO_TARGET_DIR": folder})  # fmt: skip
    objcopy, libraries = tools.objcopy
    for pattern in ("*.a", "*crt*.o"):
        for file in tools.cache.glob(f"zig/o/*/{pattern}"):
            project.run([objcopy, "--strip-debug", file], env=libraries)
    done.touch()
