//! Folders that many users put into RAM, by what they hold, and what a crash would lose of them.
//! It is a table and no search: `hot advise` finds the folders in which programs wait.

use std::path::{Path, PathBuf};

/// A kind of folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Profiles of browsers.
    Browser,
    /// Caches of compilers and package managers.
    Builds,
    /// Caches of all programs.
    Caches,
    /// Logs of the system.
    Logs,
}

/// Below the home folder of the user.
const BROWSER: &[&str] = &[
    ".mozilla/firefox",
    ".librewolf",
    ".config/chromium",
    ".config/google-chrome",
    ".config/BraveSoftware/Brave-Browser",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    "snap/firefox/common/.mozilla/firefox",
    ".var/app/org.mozilla.firefox/.mozilla/firefox",
];
const BUILDS: &[&str] = &[
    ".cache/ccache",
    ".ccache",
    ".cache/sccache",
    ".cache/go-build",
    ".cache/bazel",
    ".cargo/registry",
    ".gradle/caches",
    ".m2/repository",
    ".npm/_cacache",
];
const CACHES: &[&str] = &[".cache"];
/// From the root.
const LOGS: &[&str] = &["/var/log"];

impl Preset {
    /// All presets.
    pub const ALL: [Self; 4] = [Self::Browser, Self::Builds, Self::Caches, Self::Logs];

    /// Its name, as options and results have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::Builds => "builds",
            Self::Caches => "caches",
            Self::Logs => "logs",
        }
    }

    /// Returns the loss in a crash, in a sentence or two, beside that of `--max-loss`.
    pub fn risk(self) -> &'static str {
        match self {
            Self::Browser => {
                "passwords, cookies, bookmarks and open tabs that were saved last. Its databases \
                 are of one moment for certain only with '--backend zram-xfs'. End the browser \
                 before, and start it again"
            }
            Self::Builds => {
                "compiled files and packages that came last, which the next build makes"
            }
            Self::Caches => {
                "what was cached last, which its program fetches or computes again. Some programs \
                 keep more there than they should"
            }
            Self::Logs => {
                "the last lines before a crash, which would say why it came. Logs that must prove \
                 something do not belong in RAM"
            }
        }
    }

    /// Returns its folders, those that are not there included.
    pub fn folders(self, home: &Path) -> Vec<PathBuf> {
        let names = match self {
            Self::Browser => BROWSER,
            Self::Builds => BUILDS,
            Self::Caches => CACHES,
            Self::Logs => LOGS,
        };
        // One that begins at the root replaces the home folder.
        names.iter().map(|name| home.join(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_below_the_home_folder_or_the_systems() {
        for preset in Preset::ALL {
            let folders = preset.folders(Path::new("/home/me"));
            assert!(!folders.is_empty() && !preset.risk().ends_with('.'));
            let is_known = |path: &PathBuf| {
                path.starts_with("/home/me") || path.starts_with("/var") && preset == Preset::Logs
            };
            assert!(folders.iter().all(is_known), "{folders:?}");
            // None contains another one: only one of two can be in RAM.
            for one in &folders {
                assert_eq!(folders.iter().filter(|other| other.starts_with(one)).count(), 1);
            }
        }
    }
}
