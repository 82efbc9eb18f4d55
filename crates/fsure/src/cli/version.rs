//! `fsure --version --verbose`: gathers the facts that a report of a fault needs.

use std::ffi::OsString;

use clap::builder::FalseyValueParser;
use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser};
use fsure_os::kernel_features::read_features;

use super::environment;
use crate::report::version::{KernelFeature, Provenance, version_line, version_text};

/// The command line that asks for more than the version.
#[derive(Parser)]
#[command(name = "fsure", disable_help_flag = true, disable_version_flag = true)]
pub(super) struct VersionArgs {
    #[arg(short = 'V', long, required = true)]
    version: bool,
    #[arg(short, long, required = true)]
    verbose: bool,
    #[arg(long, env = "FSURE_JSON", value_parser = FalseyValueParser::new(),
          action = ArgAction::SetTrue)]
    json: bool,
}

impl VersionArgs {
    /// Parses a command line; `None` if it asks for something else.
    pub(super) fn parse_line(args: &[OsString]) -> Option<Self> {
        // No command's line is parsed twice.
        let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        if !args.iter().skip(1).all(is_option) {
            return None;
        }
        let parsed = environment::parse(Self::command(), args).ok()?;
        Self::from_arg_matches(&parsed).ok()
    }

    /// Returns the lines to print.
    pub(super) fn lines(&self) -> String {
        match self.json {
            true => version_line(&provenance()) + "\n",
            false => version_text(&provenance()),
        }
    }
}

fn provenance() -> Provenance {
    let mut features = vec!["integrity"];
    features.extend(cfg!(feature = "storage").then_some("storage"));
    Provenance {
        fsure: env!("CARGO_PKG_VERSION"),
        commit: Some(env!("FSURE_COMMIT")).filter(|commit| *commit != "unknown"),
        target: env!("FSURE_TARGET"),
        profile: env!("FSURE_PROFILE"),
        compiler: env!("FSURE_COMPILER"),
        features,
        system: fsure_os::machine::machine().system,
        kernel: kernel_features(),
    }
}

/// Returns the features of the kernel that the commands of this build use; `None` on a system on
/// which none is probed.
fn kernel_features() -> Option<Vec<KernelFeature>> {
    let read = read_features()?;
    let of = |name, is_available, is_of_file_system| KernelFeature {
        name,
        is_available,
        is_of_file_system,
    };
    let all = vec![
        of("io_uring", read.io_uring, false),
        of("statx DIOALIGN", read.direct_alignment, true),
        of("RWF_DONTCACHE", read.dont_cache, true),
        of("cachestat", read.page_counts, false),
    ];
    #[cfg(feature = "storage")]
    let all = {
        let rest = fsure_os::kernel_features::features();
        let of_storage = [
            ("FUSE", rest.fuse),
            // Only a mount tells.
            ("FUSE passthrough", None),
            ("fanotify names", rest.file_system_marks),
            ("BTF (for eBPF)", rest.type_format),
            ("detached mounts", rest.detached_mount),
            ("tmpfs noswap", rest.no_swap),
            ("user namespaces", rest.user_namespaces.map(|made| made.is_ok())),
            ("zram", rest.zram),
        ];
        all.into_iter().chain(of_storage.map(|(name, is)| of(name, is, false))).collect()
    };
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_options_together_ask_for_more() {
        let asks = |line: &str| {
            let args: Vec<_> = line.split(' ').map(OsString::from).collect();
            VersionArgs::parse_line(&args).is_some()
        };
        for line in [
            "fsure --version --verbose",
            "fsure -v -V",
            "fsure -vV",
            "fsure -V --verbose --json",
            "fsure --json --version -v",
        ] {
            assert!(asks(line), "{line}");
        }
        for line in ["fsure -V", "fsure verify -v", "fsure -v -v", "fsure -V -v x", "fsure --json"]
        {
            assert!(!asks(line), "{line}");
        }
    }

    #[test]
    fn every_fact_has_a_value() {
        let facts = provenance();
        for fact in [facts.target, facts.profile, facts.compiler] {
            assert!(!fact.is_empty(), "{facts:?}");
        }
        assert!(facts.commit.is_none_or(|commit| commit.len() >= 7), "{facts:?}");
        assert_eq!(facts.kernel.is_some(), cfg!(target_os = "linux"), "{facts:?}");
    }
}
