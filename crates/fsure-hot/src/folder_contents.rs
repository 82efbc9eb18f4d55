//! Contents of a folder, as far as advice on it needs them: how large it is, and what
//! kind of data is at risk. Only names are read: no file is opened.

use std::io::ErrorKind;
use std::path::Path;

use fsure_os::physical_order::LocateFiles;
use fsure_os::root_dir::{Root, is_gone};
use fsure_os::{Kind, Stat};

use crate::placement_advice::{FolderAccess, Risk};

/// Maximum number of names that are looked at: a folder with more takes longer to
/// be copied than a user wants to wait.
const NAMES_EXAMINED_MAX: u64 = 200_000;

/// Size and risk of a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderContents {
    /// Bytes in memory: each file takes whole pages, each name a little.
    /// `None` where not all of it was seen.
    pub(super) size: Option<u64>,
    pub(super) risk: Risk,
    pub(super) access: FolderAccess,
}

/// Looks at all names in and below a folder, in its own file system.
pub(super) fn contents(path: &Path) -> FolderContents {
    let path_risk = match () {
        () if is_of_a_database(path) => Risk::Database,
        () if is_cache(path) => Risk::Cache,
        () => Risk::Unknown,
    };
    let mut sum = Sum { risk: path_risk, ..Sum::default() };
    let whole = Root::open(path).and_then(|root| {
        let device = root.stat(b"")?.device;
        let mut left = vec![Vec::new()];
        while let Some(folder) = left.pop() {
            let listing = match root.list(&folder, LocateFiles::No, &|| {}) {
                // Where much is made and removed, some of it is gone by now.
                Err(error) if is_gone(&error) && !folder.is_empty() => continue,
                other => other?,
            };
            for (name, stat) in &listing.entries {
                let (name, Ok(stat)) = (listing.names.get(*name), stat) else {
                    return Ok(false);
                };
                sum.take(name, stat);
                if stat.kind == Kind::Folder && stat.device == device {
                    let slash: &[u8] = if folder.is_empty() { b"" } else { b"/" };
                    left.push([&folder, slash, name].concat());
                }
            }
            if listing.error.is_some() || sum.names > NAMES_EXAMINED_MAX {
                return Ok(false);
            }
        }
        Ok(true)
    });
    let access = match &whole {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => FolderAccess::Denied,
        Err(error) if is_gone(error) => FolderAccess::Gone,
        _ => FolderAccess::Allowed,
    };
    let size = whole.is_ok_and(|whole| whole).then_some(sum.bytes);
    FolderContents { size, risk: sum.risk, access }
}

#[derive(Default)]
struct Sum {
    names: u64,
    bytes: u64,
    risk: Risk,
}

/// A page: what a file takes at least, and a folder or a link.
const PAGE: u64 = 4096;

impl Sum {
    fn take(&mut self, name: &[u8], stat: &Stat) {
        self.names += 1;
        self.bytes += if stat.kind == Kind::File { stat.size.next_multiple_of(PAGE) } else { PAGE };
        self.risk = self.risk.max(risk_of(name));
    }
}

/// Names that a database gives to its files, or part of them.
const DATABASE: [&str; 21] = [
    ".db",
    ".db3",
    ".sqlite",
    ".sqlite3",
    ".ibd",
    ".frm",
    ".mdb",
    ".wt",
    ".ldb",
    ".sst",
    ".rdb",
    ".aof",
    ".wal",
    ".myd",
    ".myi",
    "-wal",
    "-journal",
    "pg_version",
    "ibdata1",
    "pg_control",
    ".fdb",
];

/// Prefixes of the names that a database gives to its logs, which are in a folder of
/// their own and are what it flushes most.
const DATABASE_LOGS: [&str; 4] = ["ib_logfile", "#ib_redo", "aria_log", "wiredtiger"];

/// Names at the top of a database, each of which stands for all that is below.
const DATABASE_TOPS: [&str; 6] =
    ["PG_VERSION", "ibdata1", "aria_log_control", "WiredTiger", "mongod.lock", "member/snap/db"];

/// Maximum depth of a database folder below the top of its database.
const DATABASE_DEPTH: usize = 4;

const LOG: [&str; 3] = [".log", ".journal", "syslog"];

/// Names at the top of a user's work.
const SOURCE: [&str; 9] = [
    ".git",
    ".hg",
    ".svn",
    "cargo.toml",
    "package.json",
    "makefile",
    "cmakelists.txt",
    "pyproject.toml",
    "go.mod",
];

fn risk_of(name: &[u8]) -> Risk {
    let name = name.to_ascii_lowercase();
    let ends = |all: &[&str]| all.iter().any(|end| name.ends_with(end.as_bytes()));
    let is = |all: &[&str]| all.iter().any(|one| name == one.as_bytes());
    let begins = |all: &[&str]| all.iter().any(|start| name.starts_with(start.as_bytes()));
    // PostgreSQL numbers its log by timeline and place.
    let is_segment = name.len() == 24 && name.iter().all(u8::is_ascii_hexdigit);
    if ends(&DATABASE) || begins(&DATABASE_LOGS) || is_segment {
        Risk::Database
    } else if is(&SOURCE) {
        Risk::Source
    } else if ends(&LOG) {
        Risk::Log
    } else if is(&["cachedir.tag"]) {
        Risk::Cache
    } else {
        Risk::Unknown
    }
}

/// Returns true if it is a folder of a database, judged by the files beside the names in
/// its path.
fn is_of_a_database(path: &Path) -> bool {
    let above = path.ancestors().take(DATABASE_DEPTH + 1);
    above
        .into_iter()
        .any(|above| DATABASE_TOPS.iter().any(|top| fsure_os::path::exists(&above.join(top))))
}

/// Returns true if the names in its path show that its content can be made again.
fn is_cache(path: &Path) -> bool {
    const NAMES: [&str; 7] =
        ["cache", ".cache", "caches", "tmp", "node_modules", "__pycache__", "target"];
    let mut parts = path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase());
    parts.any(|part| NAMES.contains(&&*part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_name_decides() {
        for (name, risk) in [
            ("Cargo.toml", Risk::Source),
            ("app.log", Risk::Log),
            ("places.sqlite-wal", Risk::Database),
            ("PG_VERSION", Risk::Database),
            ("0000000100000000000000A7", Risk::Database),
            ("0000000000000000-0000000000000000.wal", Risk::Database),
            ("#ib_redo10", Risk::Database),
            ("WiredTigerLog.0000000001", Risk::Database),
            ("CACHEDIR.TAG", Risk::Cache),
            ("letter.txt", Risk::Unknown),
        ] {
            assert_eq!(risk_of(name.as_bytes()), risk, "{name}");
        }
        assert!(is_cache(Path::new("/home/a/.cache/b")));
        assert!(!is_cache(Path::new("/home/cached")));
    }

    #[test]
    fn a_folder_of_a_database_is_known_by_what_is_above_it() {
        let folder = tempfile::tempdir().expect("make a folder");
        let main = folder.path().join("tmp/main");
        let log = main.join("pg_wal/archive_status");
        std::fs::create_dir_all(&log).expect("make folders");
        assert_eq!(contents(&log).risk, Risk::Cache);
        std::fs::write(main.join("PG_VERSION"), "15").expect("write");
        assert_eq!(contents(&log).risk, Risk::Database);
        assert_eq!(contents(folder.path()).risk, Risk::Database);
    }

    #[test]
    fn pages_are_counted_and_nothing_beside_the_folder() {
        let folder = tempfile::tempdir().expect("make a folder");
        let work = folder.path().join("work");
        std::fs::create_dir_all(work.join("a/b")).expect("make folders");
        std::fs::write(work.join("a/b/one"), vec![1; 4097]).expect("write");
        std::fs::write(work.join("empty"), "").expect("write");
        std::fs::write(folder.path().join("x.sqlite"), "").expect("write");
        let found = contents(&work);
        // Two folders, two pages of a file, and none.
        assert_eq!(found.size, Some(2 * PAGE + 2 * PAGE));
        assert_ne!(found.risk, Risk::Database);
        assert_eq!(contents(folder.path()).risk, Risk::Database);
        let none = contents(&folder.path().join("none"));
        assert_eq!((none.size, none.access), (None, FolderAccess::Gone));
    }
}
