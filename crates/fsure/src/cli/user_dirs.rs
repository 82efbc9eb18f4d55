//! The user's own folders, as the system has them: `XDG_CONFIG_HOME` and
//! `XDG_STATE_HOME` on Unix, the roaming application data on Windows.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use fsure_core::{Error, IoContext as _, NullMonitor, Result, copy_stream};
use fsure_integrity::UserConfig;
use fsure_integrity::trust::Verifier;
use fsure_os::input::is_stream;
use fsure_os::{path as os_path, user, user_file};

/// The value of `--signed-by` that accepts any record, signed or not.
pub(crate) const ACCEPT_UNSIGNED: &str = "none";

/// Maximum length of a key or a configuration file, in bytes; a longer file is
/// neither.
const TEXT_MAX: u64 = 1 << 20;

/// The file that remembers what was seen signed; its folder is made, unless this is a dry
/// run.
pub(crate) fn memory(is_dry_run: bool) -> Result<PathBuf> {
    let hint = "set XDG_STATE_HOME; verify can do with '--expect-head' or '--min-generation'";
    Ok(state("what was signed", hint, !is_dry_run)?.join("trust.db"))
}

/// The file that remembers what cuts of the power have shown of each drive; its
/// folder is made.
pub(crate) fn cuts() -> Result<PathBuf> {
    Ok(state("the results of power cuts", "set XDG_STATE_HOME", true)?.join("powercut.jsonl"))
}

/// The same file; `None` if it does not exist yet.
pub(crate) fn cuts_if_any() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    let folder = base.state_dir().unwrap_or_else(|| base.data_dir()).join("fsure");
    Some(folder.join("powercut.jsonl")).filter(|file| os_path::exists(file))
}

/// The folder for what lasts as long as the system runs, not made yet: one for
/// root, and one for every other user.
pub(crate) fn runtime() -> Result<PathBuf> {
    if user::is_root() {
        return Ok(PathBuf::from("/run/fsure"));
    }
    let base = etcetera::choose_base_strategy().ok();
    base.and_then(|base| base.runtime_dir()).map(|folder| folder.join("fsure")).ok_or_else(|| {
        Error::FailedPrecondition {
            message: "no runtime folder is known, in which fsure keeps sockets and locks"
                .to_owned(),
            hint: Some("set XDG_RUNTIME_DIR to a folder that belongs to you".to_owned()),
        }
    })
}

/// The folder of what is remembered; it is made if `makes` is true.
fn state(what: &str, hint: &str, makes: bool) -> Result<PathBuf> {
    let Ok(base) = etcetera::choose_base_strategy() else {
        return Err(Error::FailedPrecondition {
            message: format!("no home folder is known, in which fsure remembers {what}"),
            hint: Some(hint.to_owned()),
        });
    };
    let folder = base.state_dir().unwrap_or_else(|| base.data_dir()).join("fsure");
    let above: Vec<_> =
        folder.ancestors().filter(|folder| makes && !os_path::exists(folder)).collect();
    for folder in above.into_iter().rev() {
        os_path::make_folder(folder).context("make", folder)?;
    }
    Ok(folder)
}

/// The user's own configuration; none is as good as an empty one.
pub(crate) fn config() -> Result<UserConfig> {
    let Ok(base) = etcetera::choose_base_strategy() else { return Ok(UserConfig::default()) };
    let folder = base.config_dir().join("fsure");
    let file = folder.join("config.toml");
    if !os_path::exists(&file) {
        return Ok(UserConfig::default());
    }
    let mut user = UserConfig::parse(&file.to_string_lossy(), &text(&file)?)?;
    // From wherever it is called: a file is named beside this one.
    let is_file = |key: &String| !Verifier::is_text(key) && key != ACCEPT_UNSIGNED;
    if let Some(key) = user.signed_by.take_if(|key| is_file(key)) {
        user.signed_by = Some(folder.join(key).to_string_lossy().into_owned());
    }
    Ok(user)
}

/// The text of a small file that the user names; `-` is standard input.
pub(crate) fn text(file: &Path) -> Result<String> {
    let mut text = String::new();
    let read = if is_stream(file) {
        copy_stream(file, &NullMonitor)?.take(TEXT_MAX + 1).read_to_string(&mut text)
    } else {
        user_file::open(file).and_then(|open| open.take(TEXT_MAX + 1).read_to_string(&mut text))
    };
    if read.context("read", file)? as u64 > TEXT_MAX {
        let message = format!("{} is larger than {TEXT_MAX} bytes", file.display());
        return Err(Error::Usage {
            message,
            hint: Some(
                "name another file: keys, passwords and configurations are small".to_owned(),
            ),
        });
    }
    Ok(text)
}
