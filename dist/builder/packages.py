"""deb and rpm, by nfpm: everything in the places where the system looks for it."""

import datetime
import email.utils
import json
import pathlib
import subprocess
import tempfile

from .documents import zipped

DESCRIPTION = """\
Finds files that changed by themselves (bit rot), and measures storage
fsure records digests of whole trees and verifies them for years, from the
medium itself and past the page cache. It names the file and the block that
is damaged, and repairs it from a copy. It also measures how fast a storage
is, and if an acknowledged write is on the medium."""


def write(project, tools, target, binary, pages, notices, out):
    """Writes one package of each kind for a target."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for kind in ("deb", "rpm"):
            arch = getattr(target, kind)
            config = folder / f"{kind}.json"
            contents = common(project, binary, pages, notices, folder) + OF_KIND[kind](
                project, pages, folder
            )
            config.write_text(json.dumps(description(project, arch, kind, contents)))
            name = {
                "deb": f"fsure_{project.version}-1_{arch}.deb",
                "rpm": f"fsure-{project.version}-1.{arch}.rpm",
            }[kind]
            project.run(
                [tools.nfpm, "package", "--config", config, "--packager", kind, "--target",
                 out / name],
                stdout=subprocess.DEVNULL,
            )  # fmt: skip


def description(project, arch, kind, contents):
    """Returns what nfpm reads, which is YAML, and so may be JSON."""
    date = datetime.datetime.fromtimestamp(project.time_s, datetime.timezone.utc)
    scripts = project.root / "dist" / "packages"
    return {
        "name": "fsure",
        "arch": arch,
        "platform": "linux",
        "version": project.version,
        "release": "1",
        "section": "utils",
        "priority": "optional",
        "maintainer": project.package["authors"][0],
        "description": DESCRIPTION,
        "homepage": project.package.get("repository", ""),
        "license": project.package["license"],
        "mtime": date.isoformat(),
        "contents": contents,
        "scripts": {
            "postinstall": str(scripts / "after-install"),
            "preremove": str(scripts / "before-removal"),
            "postremove": str(scripts / "after-removal"),
        },
        "rpm": {"compression": "zstd", "buildhost": "reproducible", "group": "Applications/File"},
        "deb": {"compression": "xz"},
    }


def file(source, to, mode=0o644, **more):
    """Describes a file of a package."""
    return {"src": str(source), "dst": to, "file_info": {"mode": mode}, **more}


def common(project, binary, pages, notices, folder):
    """Returns the files that have the same place in every distribution."""
    units = sorted((project.root / "dist" / "systemd").iterdir())
    return [
        file(binary, "/usr/bin/fsure", 0o755),
        file(pages.bash, "/usr/share/bash-completion/completions/fsure"),
        file(pages.fish, "/usr/share/fish/vendor_completions.d/fsure.fish"),
        file(project.root / "README.md", "/usr/share/doc/fsure/README.md"),
        file(notices, "/usr/share/doc/fsure/THIRD-PARTY.html"),
        *[file(unit, f"/usr/lib/systemd/system/{unit.name}") for unit in units],
        *[
            file(zipped(page, folder), f"/usr/share/man/man1/{page.name}.gz")
            for page in pages.man
        ],
    ]


def of_deb(project, pages, folder):
    """Returns the files that Debian's policy asks for."""
    copyright = folder / "copyright"
    mit = (project.root / "LICENSE-MIT").read_text(encoding="utf-8")
    lines = [f" {line}" if line.strip() else " ." for line in mit.splitlines()[2:]]
    copyright.write_text(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: fsure\n"
        "Comment: What is linked into it, and under which licences, is in THIRD-PARTY.html.\n\n"
        f"Files: *\nCopyright: {project.package['authors'][0]}\n"
        "License: Expat or Apache-2.0\n\n"
        "License: Expat\n" + "\n".join(lines) + "\n\n"
        "License: Apache-2.0\n The text is in /usr/share/common-licenses/Apache-2.0.\n",
        encoding="utf-8",
    )
    changes = folder / "changelog.Debian"
    changes.write_text(
        f"fsure ({project.version}-1) unstable; urgency=low\n\n"
        "  * What is new is in CHANGELOG.md.gz.\n\n"
        f" -- {project.package['authors'][0]}  {email.utils.formatdate(project.time_s)}\n"
    )
    news = zipped(project.root / "CHANGELOG.md", folder)
    return [
        file(copyright, "/usr/share/doc/fsure/copyright"),
        file(zipped(changes, folder), "/usr/share/doc/fsure/changelog.Debian.gz"),
        file(news, "/usr/share/doc/fsure/CHANGELOG.md.gz"),
        file(pages.zsh, "/usr/share/zsh/vendor-completions/_fsure"),
    ]


def of_rpm(project, pages, _folder):
    """Returns the files that Fedora's guidelines ask for."""
    licences = [
        file(project.root / name, f"/usr/share/licenses/fsure/{name}", type="license")
        for name in ("LICENSE-MIT", "LICENSE-APACHE")
    ]
    return [
        *licences,
        *[{"dst": folder, "type": "dir"} for folder in
          ("/usr/share/doc/fsure", "/usr/share/licenses/fsure")],
        file(project.root / "CHANGELOG.md", "/usr/share/doc/fsure/CHANGELOG.md"),
        file(pages.zsh, "/usr/share/zsh/site-functions/_fsure"),
    ]


OF_KIND = {"deb": of_deb, "rpm": of_rpm}
