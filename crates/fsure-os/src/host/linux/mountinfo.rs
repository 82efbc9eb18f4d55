//! The mount table (proc(5), `mountinfo`): its only parser, and the mount that a folder is in.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, StatxFlags};

/// One mount, with the table's escapes undone. Bytes that are not text are
/// replaced: this is shown, and nothing is opened by it but what overlays name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MountInfo {
    /// Its number, which no other mount has meanwhile.
    pub(super) id: u64,
    /// The device of the file system, as the kernel knows it: major, minor.
    pub(super) device: (u32, u32),
    /// The folder of the file system that is mounted, `/` where it is all.
    pub(super) root: String,
    /// The mount point.
    pub(super) point: String,
    /// Options of this mount.
    pub(super) options: String,
    /// The file system's type.
    pub(super) kind: String,
    /// The source of the mount: a device, a server.
    pub(super) source: String,
    /// Options of the file system.
    pub(super) own_options: String,
}

/// One line of the table, with its escapes undone. Names are bytes: something may be opened
/// by them.
pub(super) struct MountLine {
    pub(super) id: u64,
    pub(super) parent: u64,
    pub(super) device: (u32, u32),
    pub(super) root: Vec<u8>,
    pub(super) point: Vec<u8>,
    pub(super) options: String,
    /// Optional fields, such as `shared:1`.
    pub(super) tags: Vec<String>,
    pub(super) kind: String,
    pub(super) source: String,
    pub(super) own_options: String,
}

/// Reads the mount table of a process; `None` means that of this thread.
pub(super) fn read(process: Option<u32>) -> io::Result<Vec<u8>> {
    let name = process.map_or("thread-self".to_owned(), |process| process.to_string());
    std::fs::read(format!("/proc/{name}/mountinfo"))
}

/// Parses a table, in the order in which the mounts were made. A line that was cut off is
/// left out.
pub(super) fn lines(table: &[u8]) -> impl Iterator<Item = MountLine> {
    table.split(|byte| *byte == b'\n').filter_map(parse)
}

/// The mount that an open folder is in. Fails where the kernel is too old to say
/// which (before Linux 5.8).
pub(super) fn at(folder: BorrowedFd<'_>) -> io::Result<MountInfo> {
    let answer = rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    if answer.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel is too old to report the mount",
        ));
    }
    find(&read(None)?, answer.stx_mnt_id)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "not in the mount table"))
}

/// All mounts that this thread sees, in the order in which they were made.
pub(super) fn all() -> io::Result<Vec<MountInfo>> {
    Ok(lines(&read(None)?).map(MountInfo::from).collect())
}

/// The paths of all mounts that this thread sees, as bytes.
pub(super) fn points() -> io::Result<Vec<Vec<u8>>> {
    Ok(lines(&read(None)?).map(|line| line.point).collect())
}

fn find(table: &[u8], id: u64) -> Option<MountInfo> {
    lines(table).find(|line| line.id == id).map(MountInfo::from)
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse(line: &[u8]) -> Option<MountLine> {
    let fields: Vec<_> = line.split(|byte| *byte == b' ').map(unescape_bytes).collect();
    // Between the options and the dash stand as many fields as there are.
    let dash = fields.iter().skip(6).position(|field| field == b"-")? + 6;
    let text = |place: usize| Some(String::from_utf8_lossy(fields.get(place)?).into_owned());
    let device = text(2)?;
    let (major, minor) = device.split_once(':')?;
    Some(MountLine {
        id: text(0)?.parse().ok()?,
        parent: text(1)?.parse().ok()?,
        device: (major.parse().ok()?, minor.parse().ok()?),
        root: fields.get(3)?.clone(),
        point: fields.get(4)?.clone(),
        options: text(5)?,
        tags: (6..dash).filter_map(text).collect(),
        kind: text(dash + 1)?,
        source: text(dash + 2)?,
        own_options: text(dash + 3)?,
    })
}

impl From<MountLine> for MountInfo {
    fn from(line: MountLine) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            id: line.id,
            device: line.device,
            root: text(&line.root),
            point: text(&line.point),
            options: line.options,
            kind: line.kind,
            source: line.source,
            own_options: line.own_options,
        }
    }
}

/// Undoes `\040` and its like, which other tables of the kernel have, too.
pub(super) fn unescape_bytes(field: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), field);
    while let Some((first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    bytes
}

impl MountInfo {
    /// The value of an option, empty where it has none.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        let all = self.options.split(',').chain(self.own_options.split(','));
        let mut pairs = all.map(|option| option.split_once('=').unwrap_or((option, "")));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Both kinds of options, each once.
    pub(super) fn all_options(&self) -> String {
        let mut all: Vec<&str> = Vec::new();
        for option in self.options.split(',').chain(self.own_options.split(',')) {
            if !option.is_empty() && !all.contains(&option) {
                all.push(option);
            }
        }
        all.join(",")
    }

    /// The option that keeps flushes from the disk, where there is one.
    pub(super) fn no_barrier(&self) -> Option<&'static str> {
        if self.option("nobarrier").is_some() {
            Some("nobarrier")
        } else if self.option("barrier") == Some("0") {
            Some("barrier=0")
        } else if self.kind == "overlay"
            && (self.option("volatile").is_some() || self.option("fsync") == Some("volatile"))
        {
            Some("volatile")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,barrier=0\n\
        271 27 0:40 /@home /mnt/a\\040b\\134n\\012\xff rw,noatime shared:1 master:2 - btrfs \
        /dev/sd\\040a rw,nobarrier,subvol=/@home\n\
        30 27 0:41 / /m rw - tmpfs none\n";

    #[test]
    fn a_line_is_found_by_its_number_and_unescaped() {
        let mount = find(TABLE, 271).unwrap();
        assert_eq!(mount.point, "/mnt/a b\\n\n\u{fffd}");
        assert_eq!((&*mount.root, &*mount.kind, &*mount.source), ("/@home", "btrfs", "/dev/sd a"));
        assert_eq!(mount.all_options(), "rw,noatime,nobarrier,subvol=/@home");
        assert_eq!((mount.id, mount.device), (271, (0, 40)));
        assert_eq!(mount.option("subvol"), Some("/@home"));
        assert_eq!(mount.no_barrier(), Some("nobarrier"));
        let root = find(TABLE, 27).unwrap();
        assert_eq!((&*root.kind, root.no_barrier()), ("ext4", Some("barrier=0")));
        for option in ["volatile", "fsync=volatile"] {
            let own_options = format!("rw,upperdir=/u,{option}");
            let overlay = MountInfo { kind: "overlay".to_owned(), own_options, ..root.clone() };
            assert_eq!(overlay.no_barrier(), Some("volatile"), "{option}");
        }
        assert_eq!(find(TABLE, 2), None, "a number that begins others");
        assert_eq!(find(TABLE, 30), None, "a line that was cut off");
    }

    #[test]
    fn what_looks_like_an_escape_and_is_none_stays() {
        for (field, text) in [
            (&b"a\\04"[..], "a\\04"),
            (b"\\999", "\\999"),
            (b"\\", "\\"),
            (b"\\777", "\\777"),
            (b"\\0401", " 1"),
        ] {
            assert_eq!(unescape_bytes(field), text.as_bytes());
        }
    }
}
