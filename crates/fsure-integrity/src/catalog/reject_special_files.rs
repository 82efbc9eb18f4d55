//! Files beside a catalog and below `.fsure`, looked at before anything opens it. A
//! tree can come from any user: behind a link of such a name lies a file of another place,
//! which would be read, written or removed, and a FIFO blocks the process that opens it
//! for ever.
//!
//! The files that fsure opens itself are looked at again when they are open. SQLite opens
//! by name: a process that replaces a name between this look and SQLite's own gains a wait
//! without end, or an error; SQLite follows no link.

use std::path::Path;

use fsure_os::path::{self as os_path, FileKind};
use fsure_os::user_file;

use super::own_names::{OWN_CATALOG, OWN_FOLDER, RECOVERED};
use fsure_core::{Error, IoContext as _, Result, shell_quoted};

/// The end of the name of the folder with the recovery data.
const PARITY: &str = ".parity";

/// Files and folders beside a catalog: the end of each name, and its kind.
const BESIDE: [(&str, FileKind); 13] = [
    ("", FileKind::File),
    ("-journal", FileKind::File),
    ("-wal", FileKind::File),
    ("-shm", FileKind::File),
    (".lock", FileKind::File),
    (".making", FileKind::File),
    (".backup", FileKind::File),
    (".backup.making", FileKind::File),
    (".recovering", FileKind::File),
    (RECOVERED, FileKind::File),
    (".healing", FileKind::File),
    (PARITY, FileKind::Folder),
    (".seal", FileKind::Folder),
];

/// The same below `.fsure`.
const BELOW_OWN_FOLDER: [(&str, FileKind); 4] = [
    ("", FileKind::Folder),
    ("config.toml", FileKind::File),
    ("replaced", FileKind::Folder),
    ("seal", FileKind::Folder),
];

/// Refuses a catalog beside which there is a link, a FIFO, a socket or a device where
/// fsure keeps a file or a folder. `file` may be there or not.
pub(super) fn refuse_irregular(file: &Path) -> Result<()> {
    let own_folder = file.ends_with(OWN_CATALOG).then(|| file.parent()).flatten();
    let below = own_folder.into_iter().flat_map(|folder| {
        BELOW_OWN_FOLDER.map(|(name, wanted)| {
            (if name.is_empty() { folder.to_owned() } else { folder.join(name) }, wanted)
        })
    });
    let beside = BESIDE.map(|(tail, wanted)| (os_path::with_suffix(file, tail), wanted));
    below.chain(beside).try_for_each(|(path, wanted)| require(&path, wanted))
}

/// The same for each file of the recovery data of a catalog. Only a run that uses them
/// looks at all of them.
pub fn refuse_irregular_parity(catalog: &Path) -> Result<()> {
    refuse_irregular(catalog)?;
    let folder = os_path::with_suffix(catalog, PARITY);
    match user_file::irregular_entry(&folder).context("list", &folder)? {
        None => Ok(()),
        // Beside the folder: in it, it would be refused by any name.
        Some((path, found)) => {
            let name = path.file_name().unwrap_or_default();
            Err(refusal(&path, found, FileKind::File, &folder.with_file_name(name)))
        }
    }
}

/// Returns true if a path is not one of the files that stand beside a catalog, nor below such a
/// folder: only the user can have named it.
fn is_named_catalog(path: &Path) -> bool {
    let is_own = |part: &Path| {
        let name = part.as_os_str().to_string_lossy();
        let is_beside = BESIDE.iter().any(|(tail, _)| !tail.is_empty() && name.ends_with(tail));
        is_beside || part.ends_with(OWN_FOLDER)
    };
    !path.ancestors().any(is_own)
}

fn require(path: &Path, wanted: FileKind) -> Result<()> {
    // What cannot be looked at cannot be opened either, which is reported then.
    let found = os_path::kind(path).ok().flatten();
    match found.filter(|found| *found != wanted) {
        None => Ok(()),
        Some(found) => Err(refusal(path, found, wanted, path)),
    }
}

/// The name that most users give a catalog that is kept elsewhere, and fsure its own.
const CATALOG_NAME: &str = "catalog.db";

/// The error for what is where fsure keeps something else, and the way to move it to a name
/// like `away`.
fn refusal(path: &Path, found: FileKind, wanted: FileKind, away: &Path) -> Error {
    let is_record = path.ends_with(OWN_CATALOG) || path.ends_with(OWN_FOLDER);
    let hint = if found == FileKind::Link && is_record {
        "'--catalog FILE' names a record kept elsewhere".to_owned()
    } else if path.ends_with(OWN_FOLDER) && wanted == FileKind::File {
        "that folder holds the record of the folder it is in: without '--catalog', fsure finds it"
            .to_owned()
    } else if found == FileKind::Folder && path.join(CATALOG_NAME).is_file() {
        let catalog = shell_quoted(&path.join(CATALOG_NAME));
        format!("name the record in that folder: --catalog {catalog}")
    } else if is_named_catalog(path) && wanted == FileKind::File && !is_record {
        // What the user named by mistake stays where it is: it may be /dev/null.
        format!(
            "'--catalog' takes the name of a file, such as {}; without it, the record of a folder \
             is in the folder",
            shell_quoted(&os_path::with_suffix(path, ".fsure.db"))
        )
    } else {
        let (path, away) = (shell_quoted(path), shell_quoted(&os_path::with_suffix(away, ".away")));
        format!("'mv {path} {away}' puts it out of the way")
    };
    Error::FailedPrecondition {
        message: format!(
            "{} is {found}, and fsure keeps {wanted} there: it was not opened",
            path.display()
        ),
        hint: Some(hint),
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn only_what_fsure_makes_may_be_there() {
        use std::os::unix::fs::symlink;

        use super::*;
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let own = folder.path().join(OWN_FOLDER);
        let catalog = folder.path().join(OWN_CATALOG);
        assert!(refuse_irregular(&catalog).is_ok(), "there is nothing");
        std::fs::create_dir(&own).unwrap();
        for (tail, wanted) in BESIDE {
            let path = os_path::with_suffix(&catalog, tail);
            let make = |kind| match kind {
                FileKind::Folder => std::fs::create_dir(&path).unwrap(),
                _ => std::fs::write(&path, "").unwrap(),
            };
            make(wanted);
            assert!(refuse_irregular(&catalog).is_ok(), "{tail}");
            if wanted == FileKind::File {
                std::fs::remove_file(&path).unwrap();
                make(FileKind::Folder);
                assert!(refuse_irregular(&catalog).is_err(), "{tail}");
            }
            std::fs::remove_dir(&path).unwrap();
            for target in [elsewhere.path(), Path::new("nowhere")] {
                symlink(target, &path).unwrap();
                let error = refuse_irregular(&catalog).unwrap_err();
                assert!(error.to_string().contains("is a symbolic link"), "{error}");
                std::fs::remove_file(&path).unwrap();
            }
        }
        std::fs::remove_dir(&own).unwrap();
        symlink(elsewhere.path(), &own).unwrap();
        let error = refuse_irregular(&catalog).unwrap_err();
        assert!(error.hint().unwrap().contains("--catalog"), "{error}");
    }
}
