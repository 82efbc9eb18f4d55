//! Names under which damaged catalogs are kept beside the one that took their place.

use std::path::{Path, PathBuf};

use fsure_os::path::{self as os_path, with_suffix};
use fsure_os::user_file;

use crate::catalog::RECOVERED;

/// The end of the name of a damaged catalog that is kept; a number follows.
const DAMAGED: &str = ".damaged-";

/// The name under which the damaged catalog is kept: that which a run that was cut off has
/// begun to use, else the next one. Its number is above all others, so that the last one
/// tells which that was.
pub(super) fn kept_name(catalog: &Path) -> PathBuf {
    let last = last_kept(catalog);
    let name = |number: u64| with_suffix(catalog, &format!("{DAMAGED}{number}"));
    let is_cut_off = os_path::exists(&with_suffix(catalog, RECOVERED))
        && (!os_path::exists(catalog) || !os_path::exists(&name(last)));
    name(if is_cut_off { last.max(1) } else { last + 1 })
}

/// The highest number of a damaged catalog, or of a file that was beside it; 0 if there
/// is none.
fn last_kept(catalog: &Path) -> u64 {
    let start = damaged_start(catalog);
    let number = |name: &Vec<u8>| -> Option<u64> {
        let rest = std::str::from_utf8(name.strip_prefix(&start[..])?).ok()?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    damaged_names(catalog).iter().filter_map(number).max().unwrap_or(0)
}

/// Returns the names of all damaged catalogs, and of files that were beside them, in the
/// folder of a catalog.
pub(super) fn damaged_names(catalog: &Path) -> Vec<Vec<u8>> {
    let start = damaged_start(catalog);
    let mut names =
        catalog.parent().and_then(|folder| user_file::names(folder).ok()).unwrap_or_default();
    names.retain(|name| name.starts_with(&start));
    names
}

/// Returns what the name of a damaged catalog begins with.
fn damaged_start(catalog: &Path) -> Vec<u8> {
    let damaged = with_suffix(catalog, DAMAGED);
    os_path::bytes(damaged.file_name().unwrap_or_default().as_ref()).into_owned()
}
