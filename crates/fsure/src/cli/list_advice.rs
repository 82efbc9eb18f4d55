//! Advice on what was named as a list and is not one: a folder, or a record of fsure. The command
//! that was probably meant needs the folder of the files, which only the command line names.

use std::path::Path;

use fsure_core::{Error, shell_quoted};
use fsure_integrity::catalog::OWN_CATALOG;
use fsure_integrity::manifest::is_database;

/// Returns the error of a list that cannot be read, with the command that does what was meant for
/// the files of `folder`.
pub(super) fn advise(error: Error, list: &Path, folder: &Path) -> Error {
    let Error::Usage { message, hint } = error else { return error };
    let (listed, folder) = (shell_quoted(list), shell_quoted(folder));
    let hint = if list.is_dir() {
        let compare = match folder == listed {
            true => String::new(),
            false => {
                format!("; to compare two folders by content: fsure compare {folder} {listed}")
            }
        };
        Some(format!(
            "name the file that is the list, or a BagIt folder, which has one in it{compare}"
        ))
    } else if list.ends_with(OWN_CATALOG) {
        let root = list.ancestors().nth(2).filter(|root| !root.as_os_str().is_empty());
        let root = shell_quoted(root.unwrap_or(Path::new(".")));
        Some(format!("to verify a folder by the record that it has: fsure verify {root}"))
    } else if is_database(list).unwrap_or(false) {
        let verify = format!("fsure verify {folder} --catalog {listed}");
        Some(format!("to verify the folder by a record that is kept elsewhere: {verify}"))
    } else {
        hint
    };
    Error::Usage { message, hint }
}
