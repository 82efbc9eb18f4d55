//! Scans what is below a folder, entry by entry, and never beyond what is mounted on it.
//! See [`crate::overmount::Survey`].

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxAttributes, StatxFlags};

use crate::overmount::{Survey, SurveyEntry};

/// tmpfs takes memory by these.
const PAGE: u64 = 4096;

/// Looks at everything below a folder but what is called `without` in it.
pub fn survey(folder: &Path, without: &str) -> io::Result<Survey> {
    let top = stat(folder)?;
    let mut survey = Survey {
        device: device(&top),
        inode: top.stx_ino,
        inodes: [top.stx_ino].into(),
        ..Survey::default()
    };
    if is_frozen(&top) {
        survey.frozen.push(folder.to_owned());
    }
    let (mut links, mut folders) = (BTreeMap::new(), vec![PathBuf::new()]);
    while let Some(next) = folders.pop() {
        let path = folder.join(&next);
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                survey.unread.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        for entry in entries {
            let name = entry?.file_name();
            if next.as_os_str().is_empty() && name == without {
                continue;
            }
            let below = next.join(name);
            match stat(&folder.join(&below)) {
                Ok(is) => enter(&mut survey, &mut links, &mut folders, (folder, below), &is, &top),
                // It was taken away meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => survey.unread.push(format!("{}: {error}", below.display())),
            }
        }
    }
    let outside = links.into_values().filter(|(found, all, _)| found < all);
    survey.linked_outside = outside.map(|(_, _, path)| path).collect();
    Ok(survey)
}

/// Names found of an inode, names that it has, one of them.
type Links = BTreeMap<u64, (u32, u32, PathBuf)>;

fn enter(
    survey: &mut Survey,
    links: &mut Links,
    folders: &mut Vec<PathBuf>,
    (folder, below): (&Path, PathBuf),
    is: &Statx,
    top: &Statx,
) {
    let path = folder.join(&below);
    let kind = FileType::from_raw_mode(is.stx_mode.into());
    let is_mount = is.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    if is_mount || is.stx_mnt_id != top.stx_mnt_id || device(is) != survey.device {
        return survey.mounts.push(path);
    }
    if kind != FileType::Directory && is.stx_nlink > 1 {
        let link = links.entry(is.stx_ino).or_insert((0, is.stx_nlink, path.clone()));
        link.0 += 1;
    }
    if is_frozen(is) {
        survey.frozen.push(path.clone());
    }
    let is_new = survey.inodes.insert(is.stx_ino);
    if kind == FileType::RegularFile {
        survey.content.0 += 1;
        survey.content.1 = survey.content.1.wrapping_add(is.stx_size);
    }
    match kind {
        FileType::Directory => folders.push(below.clone()),
        FileType::RegularFile if is_new => {
            survey.bytes += memory(is);
            // Set-user-ID, or set-group-ID of what can be run.
            if is.stx_mode & 0o4000 != 0 || is.stx_mode & 0o2010 == 0o2010 {
                survey.setuid.push(path);
            }
        }
        FileType::CharacterDevice | FileType::BlockDevice => survey.devices.push(path),
        FileType::Socket => survey.sockets.push(path),
        _ => {}
    }
    let changed = &is.stx_ctime;
    let changed = i128::from(changed.tv_sec) * 1_000_000_000 + i128::from(changed.tv_nsec);
    survey.looks.insert(below, SurveyEntry { inode: is.stx_ino, size: is.stx_size, changed });
}

/// Returns the bytes that a file takes in memory. Fewer blocks than bytes are holes, unless
/// they are compressed, or the content is kept in the inode.
fn memory(is: &Statx) -> u64 {
    let is_packed = is.stx_attributes.contains(StatxAttributes::COMPRESSED);
    let is_inline = is.stx_size <= PAGE;
    let blocks = if is_packed || is_inline { u64::MAX } else { is.stx_blocks.saturating_mul(512) };
    is.stx_size.min(blocks).next_multiple_of(PAGE)
}

fn is_frozen(is: &Statx) -> bool {
    is.stx_attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND)
}

fn device(is: &Statx) -> u64 {
    rustix::fs::makedev(is.stx_dev_major, is.stx_dev_minor)
}

fn stat(path: &Path) -> io::Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let mask = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    Ok(rustix::fs::statx(CWD, path, flags, mask)?)
}
