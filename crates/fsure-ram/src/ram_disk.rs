//! `ram disk`: a plain RAM disk. What is in it is in no other place: it is made
//! over an empty folder only, and taken away only when it is empty or the user
//! says that its files may go.

use std::io;
use std::path::{Path, PathBuf};

use fsure_os::ramdisk::{self, Disk};
use fsure_os::{machine, overmount, path as os_path, user_file};

use fsure_core::{Error, IoContext as _, Result, units};

/// Minimum size of a RAM disk: less is not a disk to speak of.
const SIZE_MIN_BYTES: u64 = 64 << 10;
/// Names of those in the way that are shown.
const SHOWN: usize = 5;

/// Result of removing a RAM disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestroyOutcome {
    /// The disk, as it was.
    pub disk: Disk,
    /// Processes that still have it mounted in another mount namespace and keep its
    /// memory.
    pub kept_by: Vec<String>,
}

/// Makes a RAM disk: over the folder that `what` names, or over one in `home` of
/// that name.
pub fn create_disk(what: &Path, home: &Path, bytes: u64) -> Result<Disk> {
    check_size(bytes, machine::available_memory())?;
    let (name, place) = named(what, home)?;
    if let Some(other) = all()?.into_iter().find(|disk| disk.name == name) {
        let message = format!("a RAM disk {name} exists already, in {}", other.place.display());
        return Err(usage(message, "choose another name"));
    }
    let is_made = !os_path::exists(&place);
    if is_made {
        for folder in place.ancestors().take(3).collect::<Vec<_>>().into_iter().rev() {
            os_path::make_folder(folder).context("make", folder)?;
        }
    } else {
        free(&place)?;
    }
    let made = ramdisk::create(&name, &place, bytes).context("make a RAM disk in", &place);
    if made.is_err() && is_made {
        let _ = os_path::remove_empty_folder(&place);
    }
    made?;
    let found = all()?.into_iter().find(|disk| disk.place == place);
    found.ok_or_else(|| Error::Internal(format!("{} is not in the mount table", place.display())))
}

/// Returns all RAM disks of fsure.
pub fn disks() -> Result<Vec<Disk>> {
    all()
}

/// Takes a RAM disk away, by its name or its folder. Files in it go with it only
/// with `discard`.
pub fn destroy_disk(what: &Path, home: &Path, discard: bool) -> Result<DestroyOutcome> {
    let real = os_path::without_links(what).unwrap_or_else(|_| what.to_owned());
    let disk = all()?.into_iter().find(|disk| Path::new(&disk.name) == what || disk.place == real);
    let Some(disk) = disk else {
        let message = format!("{} is not a RAM disk that fsure made", what.display());
        return Err(usage(message, "'fsure ram disk list' shows them"));
    };
    let shown = disk.place.display();
    let holders = ramdisk::holders(&disk).context("find the processes that use", &disk.place)?;
    if !holders.is_empty() {
        let all: Vec<_> = holders.iter().take(SHOWN).map(ToString::to_string).collect();
        let message = format!("{shown} is in use: {}", all.join("; "));
        return Err(usage(message, "end these processes, or wait until they finish"));
    }
    if !discard {
        // From here on no process puts a file there that would go unseen.
        ramdisk::set_read_only(&disk, true).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => {
                let message = format!("{shown} is in use: a file in it is open for writing");
                usage(message, "end the program that writes, or wait until it finishes")
            }
            _ => Error::Io { doing: "make read-only", path: disk.place.clone(), source: error },
        })?;
    }
    let gone = unmount(&disk, discard);
    if gone.is_err() && !discard {
        ramdisk::set_read_only(&disk, false).context("make writable again", &disk.place)?;
    }
    let elsewhere = gone?;
    if disk.place.parent() == Some(home) {
        // It was made for this.
        let _ = os_path::remove_empty_folder(&disk.place);
    }
    let words = |it: overmount::Elsewhere| format!("process {} ({})", it.process, it.command);
    Ok(DestroyOutcome { disk, kept_by: elsewhere.into_iter().map(words).collect() })
}

/// Unmounts it, and returns the processes that have it mounted elsewhere.
fn unmount(disk: &Disk, discard: bool) -> Result<Vec<overmount::Elsewhere>> {
    let shown = disk.place.display();
    let names = user_file::names(&disk.place).context("list", &disk.place)?;
    let is_own = |name: &Vec<u8>| ramdisk::OWN.iter().any(|own| own.as_bytes() == name);
    if !discard && !names.iter().all(is_own) {
        let used = units::size(disk.used);
        let message = format!("{shown} holds {used} that exist nowhere else");
        return Err(usage(message, "copy what you want to keep; '--discard' destroys the rest"));
    }
    let elsewhere =
        ramdisk::elsewhere(disk).context("find the processes that mount", &disk.place)?;
    ramdisk::destroy(disk).context("unmount", &disk.place)?;
    Ok(elsewhere)
}

fn all() -> Result<Vec<Disk>> {
    ramdisk::disks().context("read the mount table in", Path::new("/proc"))
}

fn check_size(bytes: u64, available: Option<u64>) -> Result<()> {
    if bytes < SIZE_MIN_BYTES {
        let message = format!("a RAM disk of {}", units::size(bytes));
        return Err(usage(message, "the minimum is 64K"));
    }
    match available {
        Some(available) if bytes > available => {
            let (bytes, available) = (units::size(bytes), units::size(available));
            let message = format!("{bytes} are more than the available memory ({available})");
            Err(usage(message, "choose a smaller '--size', or end what takes the memory"))
        }
        _ => Ok(()),
    }
}

/// The name and the place: what has a slash in it, or is there, is a folder.
fn named(what: &Path, home: &Path) -> Result<(String, PathBuf)> {
    let is_place = what.components().count() > 1 || what.is_absolute() || os_path::is_folder(what);
    let place = if is_place {
        os_path::without_links(what).context("find", what)?
    } else {
        home.join(what)
    };
    if is_place && !os_path::is_folder(&place) {
        let message = format!("{} is not a folder", what.display());
        return Err(usage(
            message,
            "make it first with mkdir: the RAM disk gets its owner and mode",
        ));
    }
    let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    // The mount table writes others in its own way, and a comma ends an option.
    let is_plain = |c: char| c.is_alphanumeric() || "-_.+@".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        let message = format!("{name:?} is not a valid name for a RAM disk");
        return Err(usage(message, "use letters, digits, and - _ . + @"));
    }
    Ok((name, place))
}

/// Fails if a folder cannot be covered: what is in it would not be found.
fn free(place: &Path) -> Result<()> {
    let shown = place.display();
    if !user_file::names(place).context("list", place)?.is_empty() {
        let message = format!("{shown} is not empty: a RAM disk would hide what is in it");
        let hint = "'fsure ram bind' puts a folder into memory with what is in it";
        return Err(usage(message, hint));
    }
    // If the mount is not known, no process is known to be in the way.
    let Ok(mount) = overmount::mount_at(place) else { return Ok(()) };
    if mount.point == place {
        let message = format!("{} is mounted on {shown} already", mount.source);
        return Err(usage(message, "choose another folder"));
    }
    let survey = overmount::survey(place, "").context("access", place)?;
    let is_it = |device: u64, inode: u64| (device, inode) == (survey.device, survey.inode);
    let holders = overmount::holders(&[std::process::id()], &is_it)
        .context("find the processes that use", place)?;
    let Some(holder) = holders.first() else { return Ok(()) };
    let message = format!("{shown} is in use: {holder}");
    Err(usage(
        message,
        "it would go on writing to the covered folder: end it, or let it leave the folder first",
    ))
}

fn usage(message: impl Into<String>, hint: &str) -> Error {
    Error::Usage { message: message.into(), hint: Some(hint.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_fits_the_memory_that_is_there() {
        assert!(check_size(1 << 20, Some(1 << 20)).is_ok());
        assert!(check_size(1 << 20, None).is_ok());
        let error = check_size((1 << 20) + 1, Some(1 << 20)).unwrap_err().to_string();
        assert!(error.contains("available memory (1.0 MiB)"), "{error}");
        assert!(check_size(100, None).is_err());
    }

    #[test]
    fn a_name_and_a_folder_are_distinguished() {
        let home = Path::new("/run/fsure/disk");
        let (name, place) = named(Path::new("fast"), home).unwrap();
        assert_eq!((&*name, &*place), ("fast", Path::new("/run/fsure/disk/fast")));
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("work");
        os_path::make_folder(&real).unwrap();
        assert_eq!(named(&real, home).unwrap().0, "work");
        for wrong in ["a,b", "a b", "none/there", "/nonexistent/x"] {
            assert!(named(Path::new(wrong), home).is_err(), "{wrong}");
        }
    }
}
