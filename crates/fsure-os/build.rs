//! Compiles the library that `fsure defer` loads into other programs, which goes
//! into the command as bytes, so that the command stays one file. Cargo has no
//! stable way to have one artifact inside of another.

use std::env;
use std::path::Path;
use std::process::Command;

/// The shim speaks to the kernel by numbers that it has for these.
const KNOWN: [&str; 4] = ["x86_64", "aarch64", "riscv64", "loongarch64"];

fn main() {
    println!("cargo::rerun-if-changed=shim/shim.rs");
    println!("cargo::rerun-if-changed=src/host/linux/defer/shared_page.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_OS") != "linux" || env::var_os("CARGO_FEATURE_DEFER").is_none() {
        return;
    }
    let output = Path::new(&variable("OUT_DIR")).join("shim.so");
    let is_known = KNOWN.contains(&&*variable("CARGO_CFG_TARGET_ARCH"));
    if is_known {
        // A build without the shim would have a slower `fsure defer` than promised.
        assert!(compile(&output), "the shim of 'fsure defer' does not compile: see above");
        return;
    }
    // An empty shim makes `fsure defer` use its seccomp backend and report that.
    println!("cargo::warning=without a shim: 'fsure defer' has its seccomp backend only");
    std::fs::write(&output, []).expect("write to the folder of the build");
}

fn compile(output: &Path) -> bool {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition=2024", "--crate-type=cdylib", "--crate-name=fsure_shim"]);
    rustc.args(["-Cpanic=abort", "-Copt-level=s", "-Cstrip=symbols"]);
    // The shim has no C library of its own: that of the program is there already.
    rustc.args(["-Ctarget-feature=-crt-static", "-Clink-arg=-nostdlib"]);
    rustc.args(["--target", &variable("TARGET"), "-o"]).arg(output).arg("shim/shim.rs");
    rustc.args(inherited_flags(&variable("CARGO_ENCODED_RUSTFLAGS")));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    rustc.status().is_ok_and(|status| status.success())
}

/// Returns those flags of this build that the shim needs, too: the place of a standard library that
/// is not the toolchain's, and the names that stand for folders of this machine.
fn inherited_flags(encoded: &str) -> Vec<&str> {
    let (mut flags, mut all) = (Vec::new(), encoded.split('\u{1f}'));
    while let Some(flag) = all.next() {
        if flag == "--sysroot" || flag == "--remap-path-prefix" {
            flags.extend([flag, all.next().unwrap_or_default()]);
        } else if flag.starts_with("--sysroot=") || flag.starts_with("--remap-path-prefix=") {
            flags.push(flag);
        }
    }
    flags
}
