//! Folders of 'ram run', of which no registry tells: each has fsure's own folder on its disk
//! side, as one has that was in RAM when the machine crashed.

use std::path::{Path, PathBuf};

use fsure_os::overmount::Survey;
use fsure_os::path as os_path;

use super::bind_refusal::{BindRefusal, refuse};
use crate::write_back::OWN;
use fsure_core::shell_command;

/// One that a folder is in, or that is in it.
pub(super) fn find(path: &Path, survey: &Survey) -> Option<PathBuf> {
    let is_ram_folder = |folder: &&Path| os_path::is_folder(&folder.join(OWN));
    let above = path.ancestors().skip(1).find(is_ram_folder).map(Path::to_owned);
    let below = survey.looks.keys().filter(|name| name.ends_with(OWN));
    let mut below = below.map(|name| path.join(name.parent().unwrap_or(name)));
    above.or_else(|| below.find(|folder| is_ram_folder(&&**folder)))
}

/// Refuses a folder that has a folder in RAM above or below it; `None` if there is none.
pub(super) fn check(overlapping: Option<&Path>) -> Option<BindRefusal> {
    let overlapping = overlapping?;
    let why = format!(
        "{} is in RAM, or was when the machine crashed, and one of the two folders contains the \
         other",
        overlapping.display()
    );
    Some(refuse(
        why,
        format!(
            "wait until it is unbound, or run {}",
            shell_command("fsure ram recover", overlapping)
        ),
    ))
}
