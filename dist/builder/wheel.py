"""A wheel that carries the binary: `pip install fsure` gives the command."""

import pathlib
import shutil
import subprocess
import tempfile


def write(project, tools, target, binary, pages, notices, out):
    """Writes the wheel of a target, by the program that pip's makers have for it."""
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / f"fsure-{project.version}"
        data, info = tree / f"{tree.name}.data", tree / f"{tree.name}.dist-info"
        place(binary, data / "scripts" / target.program, 0o755)
        share = data / "data" / "share"
        for page in pages.man:
            place(page, share / "man" / "man1" / page.name)
        place(pages.bash, share / "bash-completion" / "completions" / "fsure")
        place(pages.zsh, share / "zsh" / "site-functions" / "_fsure")
        place(pages.fish, share / "fish" / "vendor_completions.d" / "fsure.fish")
        for name in ("LICENSE-MIT", "LICENSE-APACHE"):
            place(project.root / name, info / "licenses" / name)
        place(notices, info / "licenses" / "THIRD-PARTY.html")
        (info / "METADATA").write_text(metadata(project), encoding="utf-8")
        tags = "".join(f"Tag: py3-none-{tag}\n" for tag in target.wheel.split("."))
        (info / "WHEEL").write_text(
            f"Wheel-Version: 1.0\nGenerator: fsure\nRoot-Is-Purelib: false\n{tags}"
        )
        project.run(
            [tools.python_folder / "wheel", "pack", "--dest-dir", out, tree], stdout=subprocess.DEVNULL
        )


def place(file, to, mode=0o644):
    """Copies a file into the tree."""
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)
    to.chmod(mode)


def metadata(project):
    """Returns the description of the package, with the README as its page."""
    readme = (project.root / "README.md").read_text(encoding="utf-8")
    repository = project.package.get("repository")
    lines = [
        "Metadata-Version: 2.4",
        "Name: fsure",
        f"Version: {project.version}",
        "Summary: Finds files that changed by themselves (bit rot), and measures storage",
        f"Author: {project.package['authors'][0]}",
        f"License-Expression: {project.package['license']}",
        "License-File: LICENSE-MIT",
        "License-File: LICENSE-APACHE",
        "Keywords: checksum,bit rot,fixity,integrity,fsync,benchmark",
        "Requires-Python: >=3.8",
        *([f"Project-URL: Source, {repository}"] if repository else []),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + readme
