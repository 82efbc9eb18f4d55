"""The systems that packages are made for."""

import dataclasses
import subprocess


@dataclasses.dataclass(frozen=True)
class Target:
    """A target of the compiler, and the names that packagers have for it."""

    triple: str
    # The oldest C library that the binary runs with, as cargo-zigbuild takes it; "" for none.
    glibc: str = ""
    # Names of the architecture; "" if no such package is made of this target.
    deb: str = ""
    rpm: str = ""
    # Platform tags of the wheel; "" for no wheel.
    wheel: str = ""

    @property
    def is_windows(self):
        """True if programs end in .exe and archives are zip files."""
        return "-windows-" in self.triple

    @property
    def is_linux(self):
        """True if packages contain units for systemd."""
        return "-linux-" in self.triple

    @property
    def program(self):
        """The name of the binary."""
        return "fsure.exe" if self.is_windows else "fsure"


# The static binaries run on every Linux, whatever its C library: so the wheel and the packages of
# distributions carry these. The dynamic one is for systems whose users want the C library of the
# distribution, from the oldest one that Rust supports on.
TARGETS = [
    Target(
        "x86_64-unknown-linux-musl",
        deb="amd64",
        rpm="x86_64",
        wheel="manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    ),
    Target(
        "aarch64-unknown-linux-musl",
        deb="arm64",
        rpm="aarch64",
        wheel="manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    ),
    Target("x86_64-unknown-linux-gnu", glibc="2.17"),
    Target("x86_64-pc-windows-gnu", wheel="win_amd64"),
    Target("aarch64-apple-darwin", wheel="macosx_11_0_arm64"),
    Target("x86_64-apple-darwin", wheel="macosx_11_0_x86_64"),
]


def native():
    """Returns the triple of the packages for this machine: static, if it is a Linux."""
    version = subprocess.check_output(["rustc", "-vV"], text=True)
    host = next(line.split()[1] for line in version.splitlines() if line.startswith("host:"))
    return host.replace("-linux-gnu", "-linux-musl")
