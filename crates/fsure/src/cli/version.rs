//! `fsure --version --verbose`: the facts that a report of a fault needs.

use std::ffi::OsString;
use std::fmt::Write as _;

use fsure_os::kernel_features::read_features;

/// Returns true if the command line asks for more than the version.
pub(super) fn is_asked_for(args: &[OsString]) -> bool {
    let has =
        |names: [&str; 2]| args.iter().skip(1).any(|arg| names.iter().any(|name| arg == name));
    let (version, verbose) = (["--version", "-V"], ["--verbose", "-v"]);
    args.len() == 3 && has(version) && has(verbose)
}

/// Returns a line for each fact.
pub(super) fn text() -> String {
    let mut features = vec!["integrity"];
    features.extend(cfg!(feature = "storage").then_some("storage"));
    let machine = fsure_os::machine::machine();
    let mut text = format!("fsure {}\n", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("commit", env!("FSURE_COMMIT")),
        ("target", env!("FSURE_TARGET")),
        ("profile", env!("FSURE_PROFILE")),
        ("compiler", env!("FSURE_COMPILER")),
        ("features", &features.join(", ")),
        ("system", machine.system.as_deref().unwrap_or("not known")),
    ] {
        let _ = writeln!(text, "{name:<18} {value}");
    }
    for (name, is_here) in kernel_features() {
        let word = match is_here {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not tried here",
        };
        let _ = writeln!(text, "{name:<18} {word}");
    }
    text
}

/// Returns the features of the kernel that fsure uses. The file system of the program decides some
/// of them.
fn kernel_features() -> Vec<(&'static str, Option<bool>)> {
    let read = read_features();
    let all = vec![
        ("io_uring", read.io_uring),
        ("statx DIOALIGN", read.direct_alignment),
        ("RWF_DONTCACHE", read.dont_cache),
        ("cachestat", read.page_counts),
    ];
    #[cfg(feature = "storage")]
    let all = {
        let ram = fsure_os::kernel_features::features();
        let of_ram = [
            ("detached mounts", ram.detached_mount),
            ("tmpfs noswap", ram.no_swap),
            ("fanotify names", ram.file_system_marks),
            ("user namespaces", ram.user_namespaces.map(|made| made.is_ok())),
            ("zram", ram.zram),
            ("BTF (for eBPF)", ram.type_format),
        ];
        all.into_iter().chain(of_ram).collect()
    };
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_both_options_alone_ask_for_more() {
        let asks =
            |line: &str| is_asked_for(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in ["fsure --version --verbose", "fsure -v -V", "fsure -V --verbose"] {
            assert!(asks(line), "{line}");
        }
        for line in ["fsure -V", "fsure verify -v", "fsure -v -v", "fsure -V -v x"] {
            assert!(!asks(line), "{line}");
        }
    }

    #[test]
    fn every_fact_has_a_line_and_a_value() {
        for line in text().lines().skip(1) {
            let (name, value) = line.split_at(18);
            assert!(!name.trim().is_empty() && !value.trim().is_empty(), "{line:?}");
        }
        let commit = text().lines().nth(1).expect("a line").split_whitespace().last().map(str::len);
        assert!(commit >= Some(7), "{}", text());
    }
}
