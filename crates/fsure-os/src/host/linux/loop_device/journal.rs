//! The flushes that a mounted file system must have sent, by its own count of what it
//! committed: where fewer arrived, they were lost on the way.

use std::fs;
use std::path::Path;

/// Writes of the log with which XFS may send a single flush: a checkpoint flushes once
/// however long it is, and is cut off at 8 MiB, which is 256 records of 32 KiB. Twice
/// that, as the one before may have begun earlier.
const XFS_WRITES_PER_FLUSH: u64 = 512;

/// Returns the least number of flushes that the file system on a loop device has sent since it
/// was mounted with barriers; 0 where it does not count.
pub(super) fn flushes_at_least(number: u32) -> u64 {
    let device = format!("loop{number}");
    ext4(&device).or_else(|| xfs(&device)).or_else(|| btrfs(&device)).unwrap_or(0)
}

/// Each transaction of the journal ends with a flush.
fn ext4(device: &str) -> Option<u64> {
    let journals = fs::read_dir("/proc/fs/jbd2").ok()?.flatten();
    let is_own = |name: &str| name.strip_prefix(device).is_some_and(|rest| rest.starts_with('-'));
    let mut own = journals.filter(|journal| is_own(&journal.file_name().to_string_lossy()));
    transactions(&fs::read_to_string(own.next()?.path().join("info")).ok()?)
}

/// `35 transactions (33 requested), each up to 8192 blocks`
fn transactions(text: &str) -> Option<u64> {
    let (number, rest) = text.lines().next()?.split_once(' ')?;
    rest.starts_with("transactions").then(|| number.parse().ok())?
}

fn xfs(device: &str) -> Option<u64> {
    let text = fs::read_to_string(Path::new("/sys/fs/xfs").join(device).join("stats/stats"));
    Some(log_writes(&text.ok()?)? / XFS_WRITES_PER_FLUSH)
}

/// `log 3 12 0 3 3`: the first number.
fn log_writes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("log "))?;
    line.split(' ').next()?.parse().ok()
}

/// Each commit flushes before it writes its superblock.
fn btrfs(device: &str) -> Option<u64> {
    let systems = fs::read_dir("/sys/fs/btrfs").ok()?.flatten();
    let mut own = systems.filter(|system| system.path().join("devices").join(device).exists());
    commits(&fs::read_to_string(own.next()?.path().join("commit_stats")).ok()?)
}

/// `commits 12`
fn commits(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("commits "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_kernels_write_them() {
        let jbd2 = "35 transactions (33 requested), each up to 2730 blocks\naverage: \n";
        assert_eq!(transactions(jbd2), Some(35));
        assert_eq!(transactions("35 others"), None);
        assert_eq!(log_writes("ig 2 0 0 2 0 0 2\nlog 3000 12 0 3 3\nxpc 12288 6 0\n"), Some(3000));
        assert_eq!(commits("commits 12\ncur_commit_ms 0\n"), Some(12));
        for nothing in ["", "\n", "log \n", "commits x"] {
            assert_eq!(
                (transactions(nothing), log_writes(nothing), commits(nothing)),
                (None, None, None)
            );
        }
    }
}
