//! `fsure ram bind --preset`: the folders of a kind that there are, and what is at risk.

use std::path::PathBuf;

use fsure_core::{Error, Result};
use fsure_os::{path as os_path, user};
use fsure_ram::Preset;

/// Reads the name of a preset.
pub(super) fn named(text: &str) -> std::result::Result<Preset, String> {
    let names = Preset::ALL.map(Preset::name).join(", ");
    Preset::ALL.into_iter().find(|preset| preset.name() == text).ok_or(names)
}

/// Returns the folders of a preset, and for each whether it is there.
pub(super) fn folders(preset: Preset) -> Result<Vec<(PathBuf, bool)>> {
    let home = home().ok_or_else(|| Error::FailedPrecondition {
        message: "no home folder is known, in which the folders of a preset are looked for"
            .to_owned(),
        hint: Some("set HOME, or name the folders: 'fsure ram bind DIR'".to_owned()),
    })?;
    let is_there = |path: PathBuf| {
        let is_there = os_path::is_folder(&path);
        (path, is_there)
    };
    let folders: Vec<_> = preset.folders(&home).into_iter().map(is_there).collect();
    if folders.iter().any(|(_, is_there)| *is_there) {
        return Ok(folders);
    }
    let looked = folders.iter().map(|(path, _)| path.display().to_string());
    Err(Error::FailedPrecondition {
        message: format!(
            "no folder of the preset '{}' is there: {}",
            preset.name(),
            looked.collect::<Vec<_>>().join(", ")
        ),
        hint: Some("name the folder: 'fsure ram bind DIR'".to_owned()),
    })
}

/// The home folder of the user who called `sudo`, whose folders are meant, or else of this user.
fn home() -> Option<PathBuf> {
    let caller = std::env::var("SUDO_UID").ok().filter(|_| user::is_root());
    let caller = caller.and_then(|number| number.parse().ok()).and_then(user::home_of);
    caller.or_else(|| etcetera::home_dir().ok())
}
