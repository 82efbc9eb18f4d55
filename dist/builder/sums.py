"""Checksums of all that is published, and their signature."""

import hashlib
import os


def write(out):
    """Writes SHA256SUMS, as `sha256sum --check` reads it."""
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(out.iterdir())
    ]
    (out / "SHA256SUMS").write_text("".join(lines))


def sign(project, out):
    """Signs them with the key of minisign that FSURE_RELEASE_KEY names."""
    key = os.environ.get("FSURE_RELEASE_KEY")
    if not key:
        print("NOT SIGNED: set FSURE_RELEASE_KEY to the secret key of minisign")
        return
    comment = f"fsure {project.version} {project.commit}"
    project.run(["minisign", "-S", "-s", key, "-m", out / "SHA256SUMS", "-t", comment])
