//! `serve`: a simulated drive by itself, for users who want to run their own programs on
//! it: as a file or a folder, and by a control socket. `docs/crash.md` is the contract.

mod requests;
mod responses;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fsure_os::control_socket::Control;
use fsure_os::fuse_disk::{self, ServedDisk};
use fsure_os::fuse_files::ServedFs;

use fsure_core::{Error, IoContext as _, Monitor, Result};
use fsure_simdrive::files::Mode;
use fsure_simdrive::{Behavior, Image, Latency, Traits};
use fsure_simdrive::{LiveDrive, LiveFolder, SYNCFS};
use requests::{answer, forgotten};

use crate::backend::BackendDrive;

/// Options of the service: the drive, and the paths at which it is served.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Path of the control socket.
    pub socket: PathBuf,
    /// The drive.
    pub drive: Behavior,
    /// Time that requests to the drive take.
    pub latency: Latency,
    /// Size of the drive in bytes; for a folder, the space in it.
    pub size: u64,
    /// File with the content of the drive in the beginning; `None` if it is empty.
    pub image: Option<PathBuf>,
    /// Form in which other programs see the drive, besides the socket.
    pub front: ServeFront,
    /// Folder with space for everything that is written to the drive.
    pub history_folder: PathBuf,
}

/// Form in which other programs see a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServeFront {
    /// By the control socket only.
    Nowhere,
    /// As the only file of a folder.
    File(PathBuf),
    /// As a folder.
    Folder(PathBuf, Mode),
}

/// The front that is being served, with its path.
enum Fronts {
    Nowhere,
    File(ServedDisk),
    Folder(ServedFs),
}

impl Fronts {
    /// Returns the path at which other programs find the drive; `None` if there is only
    /// the socket.
    fn place(&self) -> Option<&Path> {
        match self {
            Self::Nowhere => None,
            Self::File(served) => Some(served.file()),
            Self::Folder(front) => Some(front.place()),
        }
    }

    /// Returns the folder that this process must not access.
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::File(served) => served.file().parent(),
            Self::Nowhere | Self::Folder(_) => self.place(),
        }
    }
}

/// Serves a drive until a client or the monitor ends the service. Calls `ready` with the
/// path of the drive once the drive is there.
pub fn serve(
    options: &ServeOptions,
    monitor: &dyn Monitor,
    ready: &dyn Fn(Option<&Path>),
) -> Result<()> {
    let drive = drive(options)?;
    // The socket comes first: a drive that has one is not served a second time.
    let control = Control::listen(&options.socket).context("listen on", &options.socket)?;
    let front = front(options, &drive)?;
    if let BackendDrive::Files(_) = &drive {
        monitor.warn(SYNCFS);
    }
    let (is_over, has_warned) = (AtomicBool::new(false), AtomicBool::new(false));
    ready(front.place());
    control.serve(
        &|line| {
            let (response, ends) = answer(&drive, front.folder(), line);
            is_over.fetch_or(ends, Ordering::Relaxed);
            response
        },
        &|| {
            if let Err(error) = drive.remembers_all()
                && !has_warned.swap(true, Ordering::Relaxed)
            {
                let folder = options.history_folder.display();
                monitor.warn(&format!("{}; they were in {folder}", forgotten(&error)));
            }
            is_over.load(Ordering::Relaxed) || monitor.stop_requested().is_some()
        },
    );
    Ok(())
}

fn drive(options: &ServeOptions) -> Result<BackendDrive> {
    if let ServeFront::Folder(_, mode) = options.front {
        if options.image.is_some() {
            return Err(Error::Usage {
                message: "'--image' needs a block device, and this front is a folder".to_owned(),
                hint: Some("leave '--image' out, and copy files into the folder".to_owned()),
            });
        }
        let folder = LiveFolder::new(options.drive, mode, options.latency, options.size);
        return Ok(BackendDrive::Files(folder));
    }
    let traits = Traits { latency: options.latency, ..Traits::new(options.drive) };
    let content = match &options.image {
        Some(path) => read(path, options.size)?,
        None => Image::new(options.size),
    };
    let live = LiveDrive::new(traits, content);
    let remembers = live.with(|drive, _| drive.remember(&options.history_folder));
    remembers.context("remember every write in", &options.history_folder)?;
    Ok(BackendDrive::Blocks(Arc::new(live)))
}

/// Reads a file as the content of a drive, which is at least as long as the file.
fn read(path: &Path, size: u64) -> Result<Image> {
    const READ_CHUNK_BYTES: usize = 1 << 20;
    let mut file = fsure_os::user_file::open(path).context("open", path)?;
    let mut image = Image::new(size);
    let (mut piece, mut offset) = (vec![0; READ_CHUNK_BYTES], 0_u64);
    loop {
        let read = file.read(&mut piece).context("read", path)?;
        if read == 0 {
            break;
        }
        let end = offset + read as u64;
        if end > image.size() {
            image.resize(end);
        }
        // Blocks of zeros take no space in the image.
        if piece[..read].iter().any(|byte| *byte != 0) {
            image.write(offset, &piece[..read]).expect("it was made long enough");
        }
        offset = end;
    }
    Ok(image)
}

fn front(options: &ServeOptions, drive: &BackendDrive) -> Result<Fronts> {
    match (&options.front, drive) {
        (ServeFront::File(at), BackendDrive::Blocks(drive)) => {
            let served = fuse_disk::publish(drive.clone(), at);
            Ok(Fronts::File(served.context("serve a drive in", at)?))
        }
        (ServeFront::Folder(at, _), BackendDrive::Files(folder)) => {
            Ok(Fronts::Folder(folder.mount_at(at).context("serve a drive in", at)?))
        }
        _ => Ok(Fronts::Nowhere),
    }
}

#[cfg(test)]
mod tests;
