#!/usr/bin/env python3
"""Runs bench/uncached.py in a simulated machine with control groups of version 2.

    simulated_machine.py KERNEL.deb RESULT.jsonl FSURE [OPTION OF uncached.py]...

For a machine whose own control groups are of version 1, or for another kernel. QEMU counts the
instructions, and the clock of the simulated machine goes on by 1 ns with each of them: its times
are computed, do not depend on how fast or how busy the host is, and have no caches of a processor
in them. Time in which its one processor has nothing to do is passed over. Its disk is
memory behind a model of a drive (null_blk): 80 us for a request, and 1,500 MB/s. Its root folder
is in memory, too, and has the programs of this machine.

KERNEL.deb is a package with a kernel of Debian (`apt-get download linux-image-VERSION-amd64`).
Needs qemu-system-x86_64, dpkg-deb, cpio, ldd and 10 GiB of memory, and the programs that are
measured; neither root nor KVM.
"""

import json
import lzma
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile

REQUEST_NS = 80_000
DISK_MB_S = 1_500
DISK_MIB = 4_096
PROCESSOR = "a simulated processor (QEMU)"
NOTE = f"Simulated: 1 ns for each instruction, and a disk of {DISK_MB_S:,} MB/s."
BEGIN, END = "begin of the result", "end of the result"
# Programs of the host, of the simulated machine itself, and those to be measured, of which
# uncached.py says if one is not there.
HOST = "cpio dpkg-deb ldd qemu-system-x86_64".split()
NEEDED = "bash cat cp dd fincore mkdir mke2fs mount rm sh sleep sync".split()
MEASURED = "ffmpeg nocache restic rsync sort tar".split()
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
FINIT_MODULE = 313
INIT = f"""#!/bin/bash
export PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/root LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mount -t cgroup2 cgroup /sys/fs/cgroup
echo +memory > /sys/fs/cgroup/cgroup.subtree_control
for module in configfs null_blk; do
    [ ! -e /modules/$module.ko ] || python3 -c '
import ctypes, os, sys
arguments = sys.argv[2].encode()
call = ctypes.CDLL(None, use_errno=True).syscall
if call({FINIT_MODULE}, os.open(sys.argv[1], os.O_RDONLY), arguments, 0):
    sys.exit(sys.argv[1] + ": " + os.strerror(ctypes.get_errno()))
' /modules/$module.ko "$([ $module != null_blk ] || echo nr_devices=0)"
done
mount -t configfs configfs /sys/kernel/config
disk=/sys/kernel/config/nullb/disk
mkdir $disk
while read -r knob value; do echo $value > $disk/$knob; done <<KNOBS
size {DISK_MIB}
memory_backed 1
irqmode 2
queue_mode 2
completion_nsec {REQUEST_NS}
mbps {DISK_MB_S}
blocksize 4096
power 1
KNOBS
# Its name is that of the folder, or a number in older kernels.
device=/dev/disk
[ -b $device ] || device=/dev/nullb0
# The disk takes its memory when a block is written first, which is to cost none of the programs.
dd if=/dev/zero of=$device bs=1M count={DISK_MIB} oflag=direct status=none
mke2fs -q -F -t ext4 -E lazy_itable_init=0 $device
mount $device /mnt
eval "set -- $(cat /options)"
python3 /bench/uncached.py --dir /mnt/trial --fsure /usr/bin/fsure --save /result "$@" && {{
    echo "{BEGIN}"
    cat /result
    echo "{END}"
}}
echo o > /proc/sysrq-trigger
sleep 9
"""


def add(root, path):
    """Copies a program, or a library, and the libraries that it needs into a root folder."""
    path = pathlib.Path(path)
    copy = root / str(path).lstrip("/")
    if copy.exists():
        return
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, copy)
    needs = subprocess.run(["ldd", path], check=False, capture_output=True, text=True).stdout
    for word in needs.split():
        if word.startswith("/"):
            add(root, word)


def add_program(root, name, path):
    """Copies a program, and makes it one that is found by its name."""
    add(root, path)
    link = root / "usr/bin" / name
    if not link.exists():
        link.symlink_to(path)


def add_python(root):
    """Copies this interpreter with the standard library."""
    add_program(root, "python3", pathlib.Path(sys.executable).resolve())
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    ignored = ("test", "*-packages", "__pycache__", "config-*", "lib-dynload")
    copy = root / str(library).lstrip("/")
    shutil.copytree(library, copy, ignore=shutil.ignore_patterns(*ignored))
    for module in (library / "lib-dynload").glob("*.so"):
        add(root, module)


def add_modules(root, package):
    """Copies the modules that make the disk, if the kernel does not have them built in."""
    for module in ("configfs", "null_blk"):
        for path in package.rglob(f"{module}.ko*"):
            data = path.read_bytes()
            if path.suffix == ".xz":
                data = lzma.decompress(data)
            (root / "modules" / f"{module}.ko").write_bytes(data)


def make_root(root, package, fsure, options):
    """Makes the root folder of the simulated machine."""
    for name in ("bench", "dev", "mnt", "modules", "proc", "root", "run", "sys", "tmp", "usr/bin"):
        (root / name).mkdir(parents=True)
    for name in (*NEEDED, *MEASURED):
        path = shutil.which(name, path=PATH)
        if path:
            add_program(root, name, path)
    (root / "bin").mkdir(exist_ok=True)
    for name in ("bash", "sh"):
        if not (root / "bin" / name).exists():
            (root / "bin" / name).symlink_to(f"/usr/bin/{name}")
    for preloaded in pathlib.Path("/usr/lib").rglob("nocache.so"):
        add(root, preloaded)
    add_python(root)
    add_modules(root, package)
    add_program(root, "fsure", fsure)
    here = pathlib.Path(__file__).resolve().parent
    for name in ("uncached.py", "cgroup.py"):
        shutil.copy(here / name, root / "bench")
    (root / "options").write_text(shlex.join(["--note", NOTE, *options]), encoding="utf-8")
    (root / "init").write_text(INIT, encoding="ascii")
    (root / "init").chmod(0o755)


def run(linux, image):
    """Runs the machine, passes on what it says, and returns the lines of its result."""
    call = "qemu-system-x86_64 -M q35 -cpu max,-erms,-fsrm -accel tcg,thread=single -smp 1 "
    call += "-icount shift=0,align=off,sleep=off -m 8G -nic none -nographic -no-reboot"
    append = "console=ttyS0 quiet rdinit=/init panic=1 tsc=reliable mitigations=off"
    call = [*call.split(), "-kernel", linux, "-initrd", image, "-append", append]
    result = None
    with subprocess.Popen(call, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          errors="replace") as machine:
        try:
            for line in machine.stdout:
                line = line.rstrip("\r\n")
                if line == END:
                    return result
                if result is not None:
                    result.append(line)
                elif line == BEGIN:
                    result = []
                else:
                    print(line, file=sys.stderr, flush=True)
        finally:
            machine.kill()
    sys.exit("DID NOT RUN to its end: the lines above are those of the simulated machine")


def main():
    """Makes the machine, runs it and keeps the result."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    kernel, result, fsure = (pathlib.Path(name).absolute() for name in sys.argv[1:4])
    if result.exists():
        sys.exit(f"{result} is there already: name another file")
    for path in (kernel, fsure):
        if not path.is_file():
            sys.exit(f"{path} is not a file: name a kernel's package, the result, and fsure")
    missing = [name for name in (*HOST, *NEEDED) if not shutil.which(name, path=PATH)]
    if missing:
        sys.exit(f"needs {', '.join(missing)}: install them first")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        package, root, image = folder / "package", folder / "root", folder / "root.cpio"
        if subprocess.run(["dpkg-deb", "-x", kernel, package], check=False).returncode:
            sys.exit(f"{kernel} is not a package of Debian: 'apt-get download' fetches one")
        make_root(root, package, fsure, sys.argv[4:])
        with open(image, "wb") as file:
            pack = "find . | cpio --quiet -o -H newc"
            subprocess.run(pack, shell=True, cwd=root, check=True, stdout=file)
        shutil.rmtree(root)
        (linux,) = (package / "boot").glob("vmlinuz-*")
        try:
            lines = run(linux, image)
        except KeyboardInterrupt:
            sys.exit(130)
    start = json.loads(lines[0])
    start["machine"]["processor"] = PROCESSOR
    lines[0] = json.dumps(start, separators=(",", ":"))
    result.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
