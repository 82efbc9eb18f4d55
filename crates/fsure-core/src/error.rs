//! Errors that end a run. Each reports the fault, its place, and what to do now.
//! A file that cannot be read is a finding, never one of these errors.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsure_os::path as os_path;
use fsure_os::{user, user_file};

use super::similar::{is_same_in_unicode, similar_path};
use super::{ExitCode, shell_command, shell_quoted};

/// The result of anything that can end a run.
pub type Result<T> = std::result::Result<T, Error>;

/// Operations on a path that the user names and that has to be there.
const READING: [&str; 4] = ["access", "open", "read", "find"];

/// The operation on recovery data, which have their place beside the record.
pub const KEEPING_RECOVERY_DATA: &str = "keep recovery data in";

/// Advice for a record whose disk or quota is full.
pub const ROOM_HINT: &str =
    "make room there ('df' and 'df -i' show it), and run the same command again";

/// An error that ends a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request of the caller is not valid.
    #[error("{message}")]
    Usage {
        /// The fault, with its place.
        message: String,
        /// Advice on what to do now.
        hint: Option<String>,
    },
    /// The request is valid, and the state of the machine, or of what it is about, forbids it:
    /// a folder is in use, a run was not checked, a file system does not keep the order of writes.
    #[error("{message}")]
    FailedPrecondition {
        /// The state that forbids it, with its place.
        message: String,
        /// Advice on what to do now.
        hint: Option<String>,
    },
    /// No catalog was found.
    #[error("{}", no_record(.path, .folder))]
    NoRecord {
        /// The requested path.
        path: PathBuf,
        /// The folder that could have a record: that path, or the folder it is in.
        folder: PathBuf,
    },
    /// The catalog that was named does not exist.
    #[error("no record of {}: there is no catalog {}", shell_quoted(.root), shell_quoted(.catalog))]
    NoCatalog {
        /// The root folder.
        root: PathBuf,
        /// The named file.
        catalog: PathBuf,
    },
    /// The path is a link that no root holds. Links are recorded as links, and not followed.
    #[error("no record of {}, which is a link", shell_quoted(.path))]
    LinkNotRecorded {
        /// The link.
        path: PathBuf,
        /// The path that it leads to.
        target: PathBuf,
    },
    /// A path does not exist. It may be on a medium that is not mounted.
    #[error("{}", not_there(.path, *.is_recorded))]
    NotThere {
        /// True if the user named a record of it; `None` if records have no part in the run.
        is_recorded: Option<bool>,
        /// The requested path.
        path: PathBuf,
        /// A path that exists and is probably meant.
        similar: Option<PathBuf>,
    },
    /// There is nothing in the folder to record.
    #[error("{} is empty: there is nothing to record", shell_quoted(.path))]
    EmptyRoot {
        /// The folder.
        path: PathBuf,
        /// The command that records it.
        update: String,
    },
    /// The catalog cannot be trusted or understood.
    #[error("the record {} cannot be used: {why}", .catalog.display())]
    RecordUntrusted {
        /// The catalog's file.
        catalog: PathBuf,
        /// The fault in the catalog.
        why: String,
        /// Advice on what to do now.
        hint: String,
        /// True if the advice ends with the `fsure recover` of the catalog, whose root is known
        /// only later: [`Error::hint_for`] adds it.
        is_recoverable: bool,
    },
    /// The catalog has the format of a later version.
    #[error(
        "the record {} has format version {version}, and this fsure reads versions up to {known}",
        .catalog.display()
    )]
    RecordTooNew {
        /// The catalog's file.
        catalog: PathBuf,
        /// Its version.
        version: i64,
        /// The highest version that this program reads.
        known: i64,
    },
    /// The catalog cannot be written.
    #[error("cannot write the record {}: {why}", .catalog.display())]
    RecordNotWritten {
        /// The catalog's file.
        catalog: PathBuf,
        /// The error message of the system.
        why: String,
        /// Advice on what to do now.
        hint: String,
    },
    /// Another process works with the catalog, and the run was not to wait for it.
    #[error("the record {} is in use by another fsure ({holder})", .catalog.display())]
    RecordInUse {
        /// The catalog's file.
        catalog: PathBuf,
        /// The words of that process about itself.
        holder: String,
    },
    /// A file of results cannot be understood.
    #[error("{} is not a result that fsure can show: {why}", shell_quoted(.path))]
    UnreadableResult {
        /// The file.
        path: PathBuf,
        /// The fault in the file.
        why: String,
    },
    /// The system refused something outside any single file of a tree.
    #[error("cannot {doing} {}: {source}", shell_quoted(.path))]
    Io {
        /// The operation that failed, as a verb.
        doing: &'static str,
        /// The path that it was done to.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another error, such as one that another process of fsure answers a request with.
    #[error("{message}")]
    Reported {
        /// The error message.
        message: String,
        /// Advice on what to do now.
        hint: Option<String>,
        /// The exit code it deserves.
        code: ExitCode,
    },
    /// A precondition of a test does not hold, so the test has shown nothing.
    #[error("harness broken: {why}")]
    HarnessBroken {
        /// The precondition that failed.
        why: String,
    },
    /// The run was stopped before it had anything to report.
    #[error("interrupted")]
    Interrupted(ExitCode),
    /// A fault of this program.
    #[error("internal fault: {0}")]
    Internal(String),
}

impl Error {
    /// The error for a path that neither exists nor is recorded.
    pub fn not_there(path: PathBuf) -> Self {
        Self::missing(path, Some(false))
    }

    /// The error for a path that is missing, or that cannot be looked at.
    fn missing(path: PathBuf, is_recorded: Option<bool>) -> Self {
        if let Err(source) = os_path::kind(&path) {
            return Self::Io { doing: "access", path, source };
        }
        let similar = similar_path(&path);
        Self::NotThere { path, similar, is_recorded }
    }

    /// The error for a path that is to be a folder and is not one, or is not there.
    pub fn not_a_folder(path: &Path, hint: &str) -> Self {
        if !os_path::exists(path) {
            return Self::missing(path.to_owned(), None);
        }
        Self::Usage {
            message: format!("{} is not a folder", shell_quoted(path)),
            hint: Some(hint.to_owned()),
        }
    }

    /// The error for a root that does not exist and has its record elsewhere.
    pub fn root_not_there(path: PathBuf) -> Self {
        Self::missing(path, Some(true))
    }

    /// The error for a record in a place where the user may not write, or that is read-only.
    pub fn record_not_writable(catalog: &Path, why: &impl std::fmt::Display) -> Self {
        // A folder of fsure's own is made by fsure.
        let is_named = |folder: &&Path| {
            !folder.as_os_str().is_empty() && !folder.ends_with(".fsure") && !folder.exists()
        };
        let hint = match (catalog.parent().filter(is_named), own_record_command(catalog)) {
            (Some(folder), _) => format!(
                "if there was a record, its disk may not be mounted, or it was moved: '--catalog FILE' \
                 names its new place. For the first record, make the folder: {}",
                shell_command("mkdir -p", folder)
            ),
            (None, Some(command)) => format!(
                "it belongs to another user: run it as that user or as root, with sudo, or make \
                 the record yours: {command}"
            ),
            (None, None) => not_writable_hint(catalog),
        };
        Self::RecordNotWritten { catalog: catalog.to_owned(), why: why.to_string(), hint }
    }

    /// The error for a record that the system refused to write.
    pub fn record_write_failed(catalog: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::RecordNotWritten {
                catalog: catalog.to_owned(),
                why: error.to_string(),
                hint: ROOM_HINT.to_owned(),
            },
            _ => Self::record_not_writable(catalog, error),
        }
    }

    /// The exit code this error deserves.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage { .. } | Self::FailedPrecondition { .. } => ExitCode::Usage,
            Self::NoRecord { .. }
            | Self::NoCatalog { .. }
            | Self::LinkNotRecorded { .. }
            | Self::NotThere { .. }
            | Self::EmptyRoot { .. }
            | Self::RecordNotWritten { .. }
            | Self::RecordInUse { .. }
            | Self::UnreadableResult { .. }
            | Self::Io { .. } => ExitCode::Incomplete,
            Self::RecordUntrusted { .. } | Self::RecordTooNew { .. } => ExitCode::RecordUntrusted,
            Self::Reported { code, .. } | Self::Interrupted(code) => *code,
            Self::HarnessBroken { .. } | Self::Internal(_) => ExitCode::Internal,
        }
    }

    /// The advice of [`Error::hint`], with the root in its command if `root_of` knows that of a
    /// catalog: one that is kept elsewhere does not name it.
    pub fn hint_for(&self, root_of: &dyn Fn(&Path) -> Option<PathBuf>) -> Option<String> {
        match self {
            Self::RecordUntrusted { catalog, hint, is_recoverable: true, .. } => {
                let root = root_of(catalog);
                Some(format!("{hint}, run: {}", recover_command(catalog, root.as_deref())))
            }
            _ => self.hint(),
        }
    }

    /// Returns advice on what to do now; `None` if there is none.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. }
            | Self::FailedPrecondition { hint, .. }
            | Self::Reported { hint, .. } => hint.clone(),
            Self::NoRecord { path, folder } => Some(no_record_hint(path, folder)),
            Self::NoCatalog { root, catalog } => Some(no_catalog_hint(root, catalog)),
            Self::LinkNotRecorded { target, .. } if os_path::exists(target) => {
                Some(format!("name the file that it leads to: {}", shell_quoted(target)))
            }
            Self::LinkNotRecorded { target, .. } => Some(dangling_link_hint(target)),
            Self::NotThere { path, similar, .. } => Some(not_there_hint(path, similar.as_deref())),
            Self::EmptyRoot { update, .. } => Some(format!(
                "if a disk should be mounted there, mount it; to make an empty record of it: \
                 {update} --allow-empty"
            )),
            Self::RecordUntrusted { is_recoverable: true, .. } => self.hint_for(&|_| None),
            Self::RecordUntrusted { hint, .. } => Some(hint.clone()),
            Self::RecordTooNew { .. } => {
                Some("nothing was changed; use a later version of fsure for it".to_owned())
            }
            Self::RecordNotWritten { hint, .. } => Some(hint.clone()),
            Self::RecordInUse { .. } => Some(
                "run the same command again when that process has ended, or without '--no-wait', \
                 which waits for it"
                    .to_owned(),
            ),
            Self::UnreadableResult { .. } => Some(
                "a result is what a command of fsure printed with '--json', or saved \
                 with '--save FILE'"
                    .to_owned(),
            ),
            Self::HarnessBroken { .. } => Some(
                "end the program that changes loop devices, and run it again; 'losetup' lists them"
                    .to_owned(),
            ),
            Self::Internal(_) => Some(
                "please report this, with the command line and what this prints: fsure --version \
                 --verbose"
                    .to_owned(),
            ),
            Self::Io { doing, path, source } => io_hint(doing, path, source.kind()),
            Self::Interrupted(_) => None,
        }
    }
}

/// Returns advice on what the system refused to do to a path; `None` if there is none.
fn io_hint(doing: &str, path: &Path, kind: io::ErrorKind) -> Option<String> {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            if doing == KEEPING_RECOVERY_DATA =>
        {
            Some(format!(
                "{ROOM_HINT}; a record that is kept elsewhere, with '--catalog FILE', has \
                 its recovery data beside it"
            ))
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("make room there, or choose another place".to_owned())
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("it is mounted read-only: choose another place".to_owned())
        }
        io::ErrorKind::PermissionDenied if doing == KEEPING_RECOVERY_DATA => {
            Some(match own_record_command(path) {
                Some(command) => {
                    format!("they belong to another user; to make them yours: {command}")
                }
                None => format!("run it {}", who_may_read()),
            })
        }
        io::ErrorKind::PermissionDenied if READING.contains(&doing) => {
            Some(not_readable_hint(path))
        }
        io::ErrorKind::PermissionDenied if user::is_root() => {
            Some(format!("choose another place, or run it {}", who_may_read()))
        }
        io::ErrorKind::PermissionDenied => Some(
            "choose a place that you may write to, or run it as its owner or as root, \
                 with sudo"
                .to_owned(),
        ),
        io::ErrorKind::NotConnected => Some(format!(
            "the program that serves this mount (FUSE) has ended: {}, then mount it again",
            shell_command("fusermount3 -u", dead_mount(path))
        )),
        io::ErrorKind::NotFound if READING.contains(&doing) => {
            Some(not_there_hint(path, similar_path(path).as_deref()))
        }
        _ => None,
    }
}

/// Returns the mount point above a path below which nothing answers any more.
fn dead_mount(path: &Path) -> &Path {
    let is_dead = |folder: &&Path| {
        os_path::kind(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotConnected)
    };
    path.ancestors().filter(is_dead).last().unwrap_or(path)
}

/// Returns the command that recovers a catalog. One in its root names that; of one that is kept
/// elsewhere, the user has to put the root in place of a word if it is not given.
fn recover_command(catalog: &Path, root: Option<&Path>) -> String {
    let inside =
        catalog.parent().filter(|folder| folder.ends_with(".fsure")).and_then(Path::parent);
    match (inside, root) {
        (Some(root), _) => format!("fsure recover {}", shell_quoted(root)),
        (None, root) => format!(
            "fsure recover {} --catalog {}",
            root.map_or("ROOT".to_owned(), shell_quoted),
            shell_quoted(catalog)
        ),
    }
}

/// Returns the command that gives a record to this user, with the files beside it; `None` if it is
/// the user's own, or on a medium that is read-only.
pub fn own_record_command(catalog: &Path) -> Option<String> {
    let folder = catalog.parent()?;
    let is_inside = folder.ends_with(".fsure");
    // A folder that is closed to the user hides whose the file in it is.
    let known = if os_path::exists(catalog) { catalog } else { folder };
    let is_of_another =
        !user::is_root() && user::is_of_another_user(known) && !is_on_read_only(folder);
    let files = match is_inside {
        true => shell_quoted(folder),
        // The shell completes the names of what is kept beside it.
        false => format!("{}*", shell_quoted(catalog)),
    };
    // In a folder that is closed to the user, owning the files is not enough.
    let may_be_kept = || os_path::exists(catalog) && os_path::require_writable(folder).is_ok();
    (is_of_another && (is_inside || may_be_kept()))
        .then(|| format!("sudo chown -R \"$(id -un)\" {files}"))
}

/// Adds the place to a system error.
pub trait IoContext<T> {
    /// Adds the operation that failed, as a verb, and the path that it was done to.
    fn context(self, doing: &'static str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { doing, path: path.to_owned(), source })
    }
}

/// Returns the error for an operation that the storage did not complete before the timeout.
pub fn timeout_error(timeout: Duration) -> io::Error {
    let why = format!("the storage did not answer for {} s", timeout.as_secs_f64());
    io::Error::new(io::ErrorKind::TimedOut, why)
}

fn no_record(path: &Path, folder: &Path) -> String {
    let shown = shell_quoted(path);
    match path == folder {
        true => format!("no record of {shown}"),
        false => format!(
            "no record of {shown}: a file is recorded with its folder, and no folder above it has a \
             record"
        ),
    }
}

/// Returns advice on a path without a record, and on the folder that can have one.
fn no_record_hint(path: &Path, folder: &Path) -> String {
    let elsewhere = "'--catalog FILE' names a record that is kept elsewhere or was moved";
    let update = format!("fsure update {}", shell_quoted(folder));
    if is_read_only(folder) {
        return format!(
            "{elsewhere}; this folder is read-only, so that its record has to be kept in another \
             one: {update} --catalog {}",
            catalog_at_home(folder)
        );
    }
    let is_empty = user_file::names(folder).is_ok_and(|names| names.is_empty());
    match path == folder {
        true if is_empty => {
            format!("it is empty: if a disk should be mounted there, mount it; {elsewhere}")
        }
        true => format!(
            "if a disk should be mounted there, mount it; {elsewhere}; to record the folder as it \
             is now: {update}"
        ),
        false => format!("{elsewhere}; to record the folder with all files in it: {update}"),
    }
}

/// Returns advice on a catalog that was named and does not exist.
fn no_catalog_hint(root: &Path, catalog: &Path) -> String {
    let elsewhere = "if the record is on a disk that is not mounted, mount it; if it was moved, name \
                     its new place with '--catalog FILE'";
    match catalog.parent().filter(|folder| !os_path::exists(folder)) {
        Some(folder) => format!("there is no folder {}: {elsewhere}", folder.display()),
        None => format!(
            "{elsewhere}; to begin a record there: fsure update {} --catalog {}",
            shell_quoted(root),
            shell_quoted(catalog)
        ),
    }
}

/// Returns advice on what the user may not read. In fsure's own folder it is a record of another
/// user.
fn not_readable_hint(path: &Path) -> String {
    let own_folder = path.ancestors().find(|folder| folder.ends_with(".fsure"));
    match own_folder.and_then(|folder| own_record_command(&folder.join("catalog.db"))) {
        Some(command) => format!(
            "the record belongs to another user: run it as that user or as root, with sudo, or make \
             the record yours: {command}"
        ),
        None => format!("run it {}", who_may_read()),
    }
}

/// Returns the user as whom a run may read what this one was refused. Root is refused nothing
/// but on mounts that know other rules.
pub fn who_may_read() -> &'static str {
    match user::is_root() {
        false => "as a user who may read it, or as root, with sudo",
        true => {
            "as the user who mounted it: root itself was refused, as on a FUSE mount of another \
             user without '-o allow_other', or on NFS with root_squash"
        }
    }
}

/// Returns advice on a record in a place where the user may not write.
fn not_writable_hint(catalog: &Path) -> String {
    let there = catalog.ancestors().find(|path| path.exists());
    let tried = there.map_or(Ok(()), os_path::require_writable);
    let has_record = os_path::exists(catalog);
    let cure = match tried.map_err(|error| error.kind()) {
        Err(io::ErrorKind::ReadOnlyFilesystem) => "mount the disk so that it can be written",
        Err(_) if has_record && !user::is_of_another_user(catalog) => {
            return format!("it is yours: chmod u+w {}", shell_quoted(catalog));
        }
        Err(_) if user::is_root() => {
            "root itself was refused: run it as the user who mounted that place"
        }
        Err(_) => "run it as the owner of that place or as root, with sudo",
        Ok(()) => "no user can write there",
    };
    // Another record would take for sound what this one knows to be damaged.
    if has_record {
        return cure.to_owned();
    }
    let root = catalog.parent().filter(|folder| folder.ends_with(".fsure")).and_then(Path::parent);
    match root {
        Some(root) => format!(
            "{cure}; to begin another record, in your home folder: fsure update {} --catalog {}",
            shell_quoted(root),
            catalog_at_home(root)
        ),
        None => {
            format!("{cure}; '--catalog FILE' begins another record, in a place of your choice")
        }
    }
}

/// Returns true if a path, or the folder that it would be in, is on a medium that is read-only.
fn is_on_read_only(path: &Path) -> bool {
    path.ancestors().find(|path| path.exists()).is_some_and(is_read_only)
}

/// Returns true if a folder is on a medium that is read-only.
fn is_read_only(folder: &Path) -> bool {
    let tried = os_path::require_writable(folder);
    tried.is_err_and(|error| error.kind() == io::ErrorKind::ReadOnlyFilesystem)
}

/// Returns a file in the user's home folder for the catalog of a folder that cannot be written, as
/// it is typed in a shell.
fn catalog_at_home(folder: &Path) -> String {
    let name = folder.file_name().map_or("root".into(), |name| name.to_string_lossy());
    format!("~/{}", shell_quoted(Path::new(&format!("{name}.catalog.db"))))
}

/// Returns advice on a path that neither exists nor is recorded.
fn not_there(path: &Path, is_recorded: Option<bool>) -> String {
    let path = shell_quoted(path);
    match is_recorded {
        Some(true) => {
            format!("{path} does not exist, so that nothing was compared with its record")
        }
        Some(false) => format!("{path} does not exist, and there is no record of it"),
        None => format!("{path} does not exist"),
    }
}

/// Returns advice on a link to what does not exist.
fn dangling_link_hint(target: &Path) -> String {
    format!(
        "it leads to {}, which does not exist: if that is on a disk that is not mounted, mount it",
        shell_quoted(target)
    )
}

fn not_there_hint(path: &Path, similar: Option<&Path>) -> String {
    let mount = "if it is on a disk that is not mounted, mount it";
    if let Some(target) = os_path::dangling_link(path) {
        return dangling_link_hint(&target);
    }
    match similar {
        _ if is_pattern(path) => {
            "fsure takes names, and patterns in '--exclude' only: without quotes, the shell puts the \
             names in place of the pattern, if there are any"
                .to_owned()
        }
        None if is_digest(path) => {
            "several digests are one value, with commas: --digest sha256,sha512".to_owned()
        }
        None => format!("check the spelling; {mount}"),
        Some(similar) if is_same_in_unicode(path, similar) => format!(
            "its name is there in another form of Unicode, which looks the same (NFC and NFD); this \
             one can be copied: {}",
            shell_quoted(similar)
        ),
        Some(similar) => format!("did you mean {}? Otherwise, {mount}", shell_quoted(similar)),
    }
}

/// Returns true if the last part of a path is the name of a digest.
fn is_digest(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| crate::Algorithm::from_typed(&name).is_some())
}

/// Returns true if the last part of a path looks like a pattern of a shell.
fn is_pattern(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains(['*', '?', '[']))
}
