//! Copies the content of a file system served by fsure to a folder on a real one.

use std::collections::HashMap;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::fuse_files::{Attributes, FsResult, ROOT, Sort, VirtualFs};

/// Bytes that are copied at once.
const COPY_CHUNK_BYTES: usize = 1 << 20;
/// Mode bits that are copied. The owners are not copied, so running a file as its owner or
/// group would then mean another one: that of this process.
const MODE: u32 = 0o777;

pub(crate) fn copy_out(files: &impl VirtualFs, to: &Path) -> io::Result<()> {
    let mut copy = CopyOut { files, made: HashMap::new() };
    copy.folder(ROOT, to)
}

struct CopyOut<'a, F> {
    files: &'a F,
    /// Path of the copy of each inode that has more names to come.
    made: HashMap<u64, PathBuf>,
}

impl<F: VirtualFs> CopyOut<'_, F> {
    fn folder(&mut self, inode: u64, to: &Path) -> io::Result<()> {
        fs::create_dir(to)?;
        for name in sound(self.files.list(inode))? {
            let place = to.join(&name.name);
            let is = sound(self.files.attributes(name.inode))?;
            if let Some(made) = self.made.get(&name.inode) {
                fs::hard_link(made, &place)?;
                continue;
            }
            if matches!(is.sort, Sort::File | Sort::Link) && is.links > 1 {
                self.made.insert(name.inode, place.clone());
            }
            match is.sort {
                Sort::Folder => self.folder(name.inode, &place)?,
                Sort::File => self.file(&is, &place)?,
                Sort::Link => symlink(sound(self.files.target(name.inode))?, &place)?,
                // They hold nothing.
                Sort::Fifo | Sort::Socket => {}
            }
        }
        // Last: until then, a folder that must not be written can still be filled.
        let is = sound(self.files.attributes(inode))?;
        fs::set_permissions(to, Permissions::from_mode(is.mode & MODE))
    }

    fn file(&self, is: &Attributes, to: &Path) -> io::Result<()> {
        let file = File::create_new(to)?;
        file.set_len(is.size)?;
        for offset in (0..is.size).step_by(COPY_CHUNK_BYTES) {
            let data = sound(self.files.read(is.inode, offset, COPY_CHUNK_BYTES))?;
            if data.iter().any(|byte| *byte != 0) {
                file.write_all_at(&data, offset)?;
            }
        }
        file.set_permissions(Permissions::from_mode(is.mode & MODE))?;
        file.set_times(FileTimes::new().set_modified(is.modified))
    }
}

fn sound<T>(answer: FsResult<T>) -> io::Result<T> {
    answer.map_err(|refusal| io::Error::other(format!("the file system is not sound: {refusal:?}")))
}
