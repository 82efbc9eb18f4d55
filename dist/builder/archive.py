"""The archive that a user unpacks: one folder with all that belongs to fsure."""

import gzip
import io
import tarfile
import zipfile
import datetime


def write(project, target, binary, pages, notices, out):
    """Writes `fsure-VERSION-TARGET.tar.gz`, or `.zip` for Windows."""
    name = f"fsure-{project.version}-{target.triple}"
    files = [(target.program, binary.read_bytes(), 0o755)]
    plain = {file: project.root / file for file in
             ("README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE")}  # fmt: skip
    plain["THIRD-PARTY.html"] = notices
    plain |= {f"completions/{file.name}": file for file in pages.completions}
    plain |= {f"man/{file.name}": file for file in pages.man}
    if target.is_linux:
        units = (project.root / "dist" / "systemd").iterdir()
        plain |= {f"systemd/{file.name}": file for file in units}
    files += [(path, file.read_bytes(), 0o644) for path, file in sorted(plain.items())]
    files = [(f"{name}/{path}", content, mode) for path, content, mode in files]
    if target.is_windows:
        write_zip(out / f"{name}.zip", files, project.time_s)
    else:
        write_tar(out / f"{name}.tar.gz", files, project.time_s)


def write_tar(to, files, time_s):
    """Writes files with one date and owner: equal files make equal archives."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, content, mode in files:
            info = tarfile.TarInfo(path)
            info.size, info.mode, info.mtime = len(content), mode, time_s
            tar.addfile(info, io.BytesIO(content))
    to.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))


def write_zip(to, files, time_s):
    """Writes the same as a zip file."""
    date = datetime.datetime.fromtimestamp(time_s, datetime.timezone.utc).timetuple()[:6]
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content, mode in files:
            info = zipfile.ZipInfo(path, date)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system, info.external_attr = 3, (0o100000 | mode) << 16
            archive.writestr(info, content)
