//! `fsure --version --verbose`: the facts that a report of a fault needs.

use std::fmt::Write as _;

use serde::Serialize;

use super::json::{FORMAT, line};

/// Columns of the names in the text.
const NAME_WIDTH: usize = 18;

/// This program, and the kernel that it runs on.
#[derive(Clone, Debug, Serialize)]
pub struct Provenance {
    /// Version of the program.
    pub fsure: &'static str,
    /// Commit of its sources; `None` if the build did not know it.
    pub commit: Option<&'static str>,
    /// Target triple.
    pub target: &'static str,
    /// Profile of the build.
    pub profile: &'static str,
    /// Compiler with its version.
    pub compiler: &'static str,
    /// Features of the build.
    pub features: Vec<&'static str>,
    /// Operating system with its version; `None` if it does not tell.
    pub system: Option<String>,
    /// Features of the kernel that fsure uses; `None` on a system on which it probes none.
    pub kernel: Option<Vec<KernelFeature>>,
}

/// A feature of the kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelFeature {
    /// The kernel's own name for it.
    pub name: &'static str,
    /// True if it can be used here; `None` if it was not probed.
    pub is_available: Option<bool>,
    /// True if it was tried on the file of the program, and the file system of that decides, too.
    pub is_of_file_system: bool,
}

/// The line of JSON.
#[derive(Serialize)]
struct VersionLine<'a> {
    r#type: &'static str,
    format: u32,
    #[serde(flatten)]
    provenance: &'a Provenance,
}

/// The one line of JSON; no line end.
pub fn version_line(provenance: &Provenance) -> String {
    line(&VersionLine { r#type: "version", format: FORMAT, provenance })
}

/// The text: a line for each fact.
pub fn version_text(provenance: &Provenance) -> String {
    let mut text = format!("fsure {}\n", provenance.fsure);
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<NAME_WIDTH$} {value}");
    };
    fact("commit", provenance.commit.unwrap_or("unknown"));
    fact("target", provenance.target);
    fact("profile", provenance.profile);
    fact("compiler", provenance.compiler);
    fact("features", &provenance.features.join(", "));
    fact("system", provenance.system.as_deref().unwrap_or("unknown"));
    match &provenance.kernel {
        Some(features) => features.iter().for_each(|feature| fact(feature.name, word(feature))),
        None => fact("kernel features", "not probed: fsure probes them on Linux only"),
    }
    text
}

fn word(feature: &KernelFeature) -> &'static str {
    match (feature.is_available, feature.is_of_file_system) {
        (Some(true), _) => "yes",
        (Some(false), false) => "no",
        (Some(false), true) => "no, on the file system of this program",
        (None, _) => "not probed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provenance() -> Provenance {
        let feature = |name, is_available, is_of_file_system| KernelFeature {
            name,
            is_available,
            is_of_file_system,
        };
        Provenance {
            fsure: "0.1.0",
            commit: None,
            target: "x86_64-unknown-linux-gnu",
            profile: "dist",
            compiler: "rustc 1.95.0",
            features: vec!["integrity", "storage"],
            system: Some("Linux 6.12.0".to_owned()),
            kernel: Some(vec![
                feature("io_uring", Some(true), false),
                feature("cachestat", Some(false), false),
                feature("RWF_DONTCACHE", Some(false), true),
                feature("zram", None, false),
            ]),
        }
    }

    #[test]
    fn each_fact_has_a_line() {
        let expected = "\
fsure 0.1.0
commit             unknown
target             x86_64-unknown-linux-gnu
profile            dist
compiler           rustc 1.95.0
features           integrity, storage
system             Linux 6.12.0
io_uring           yes
cachestat          no
RWF_DONTCACHE      no, on the file system of this program
zram               not probed
";
        assert_eq!(version_text(&provenance()), expected);
    }

    #[test]
    fn a_system_without_probes_has_one_line_that_says_so() {
        let elsewhere = Provenance { kernel: None, ..provenance() };
        let text = version_text(&elsewhere);
        assert!(text.ends_with("kernel features    not probed: fsure probes them on Linux only\n"));
        assert!(version_line(&elsewhere).ends_with(r#""kernel":null}"#));
    }
}
