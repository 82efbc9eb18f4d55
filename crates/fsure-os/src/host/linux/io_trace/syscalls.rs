//! The system calls that are counted, and the operation of each. Their numbers differ from
//! one architecture to the other, so the programs in the kernel get this table.

use libc::c_long;

/// Numbers from here on are not looked at; they end below 480 on all
/// architectures that fsure runs on.
const CALLS: usize = 512;

/// The operation as which a call is counted: `enum operation` of `hot.bpf.c`.
#[derive(Clone, Copy)]
enum Operation {
    Reads = 1,
    Writes = 2,
    Syncs = 3,
    SendFile = 4,
    Copies = 5,
    Ring = 6,
    Aio = 7,
    /// Changes of metadata in which pages become dirty that are not stores through a mapping.
    Changes = 8,
    /// A write with flags of its own.
    WritesFlagged = 9,
    /// A flush of no file in particular.
    Flushes = 10,
    /// A flush of a mapping, if its flags ask for one.
    MSyncs = 11,
    /// Makes, renames or removes a file.
    Metadata = 12,
    /// An `open`, with its flags as the second argument.
    #[cfg(target_arch = "x86_64")]
    Opens = 13,
    /// An `openat`, with its flags as the third argument.
    OpensAt = 14,
    /// An `openat2`, of which the third argument points to the flags.
    OpensHow = 15,
}

const COUNTED: [(c_long, Operation); 22] = [
    (libc::SYS_read, Operation::Reads),
    (libc::SYS_pread64, Operation::Reads),
    (libc::SYS_readv, Operation::Reads),
    (libc::SYS_preadv, Operation::Reads),
    (libc::SYS_preadv2, Operation::Reads),
    (libc::SYS_write, Operation::Writes),
    (libc::SYS_pwrite64, Operation::Writes),
    (libc::SYS_writev, Operation::Writes),
    (libc::SYS_pwritev, Operation::Writes),
    (libc::SYS_pwritev2, Operation::WritesFlagged),
    (libc::SYS_fsync, Operation::Syncs),
    (libc::SYS_fdatasync, Operation::Syncs),
    (libc::SYS_sync_file_range, Operation::Syncs),
    (libc::SYS_syncfs, Operation::Syncs),
    (libc::SYS_sendfile, Operation::SendFile),
    (libc::SYS_copy_file_range, Operation::Copies),
    (libc::SYS_splice, Operation::Copies),
    (libc::SYS_io_uring_enter, Operation::Ring),
    (libc::SYS_io_submit, Operation::Aio),
    (libc::SYS_fallocate, Operation::Changes),
    (libc::SYS_ftruncate, Operation::Changes),
    (libc::SYS_truncate, Operation::Changes),
];

/// Flushes that cannot be counted of a folder.
const FLUSHES_OF_NO_FOLDER: [(c_long, Operation); 2] =
    [(libc::SYS_sync, Operation::Flushes), (libc::SYS_msync, Operation::MSyncs)];

/// Those that make, rename or remove files, or can make and truncate one.
const CHANGING_METADATA: [(c_long, Operation); 8] = [
    (libc::SYS_openat, Operation::OpensAt),
    (libc::SYS_openat2, Operation::OpensHow),
    (libc::SYS_mkdirat, Operation::Metadata),
    (libc::SYS_unlinkat, Operation::Metadata),
    (libc::SYS_linkat, Operation::Metadata),
    (libc::SYS_symlinkat, Operation::Metadata),
    (libc::SYS_renameat2, Operation::Metadata),
    (libc::SYS_mknodat, Operation::Metadata),
];

/// Those of them that later architectures do not have.
#[cfg(target_arch = "x86_64")]
const CHANGING_METADATA_BEFORE_AT: [(c_long, Operation); 10] = [
    (libc::SYS_open, Operation::Opens),
    (libc::SYS_creat, Operation::Metadata),
    (libc::SYS_mkdir, Operation::Metadata),
    (libc::SYS_rmdir, Operation::Metadata),
    (libc::SYS_unlink, Operation::Metadata),
    (libc::SYS_link, Operation::Metadata),
    (libc::SYS_symlink, Operation::Metadata),
    (libc::SYS_rename, Operation::Metadata),
    (libc::SYS_renameat, Operation::Metadata),
    (libc::SYS_mknod, Operation::Metadata),
];
#[cfg(not(target_arch = "x86_64"))]
const CHANGING_METADATA_BEFORE_AT: [(c_long, Operation); 1] =
    [(libc::SYS_renameat, Operation::Metadata)];

/// Those that flush, or write to a file that may be flushed with each write.
const FLUSHING: [(c_long, Operation); 15] = [
    (libc::SYS_fsync, Operation::Syncs),
    (libc::SYS_fdatasync, Operation::Syncs),
    (libc::SYS_sync_file_range, Operation::Syncs),
    (libc::SYS_syncfs, Operation::Syncs),
    (libc::SYS_sync, Operation::Flushes),
    (libc::SYS_msync, Operation::MSyncs),
    (libc::SYS_write, Operation::Writes),
    (libc::SYS_pwrite64, Operation::Writes),
    (libc::SYS_writev, Operation::Writes),
    (libc::SYS_pwritev, Operation::Writes),
    (libc::SYS_pwritev2, Operation::WritesFlagged),
    (libc::SYS_sendfile, Operation::SendFile),
    (libc::SYS_copy_file_range, Operation::Copies),
    (libc::SYS_splice, Operation::Copies),
    (libc::SYS_io_submit, Operation::Aio),
];

/// Returns the operation of each call, by the call's number; 0 if it is not counted.
pub(super) fn counted() -> [u8; CALLS] {
    table(&COUNTED)
}

/// Returns the operation of each call, as [`counted`] does, with the flushes of no folder.
pub(super) fn logged() -> [u8; CALLS] {
    let mut table = table(&COUNTED);
    for (number, operation) in FLUSHES_OF_NO_FOLDER {
        set(&mut table, number, operation);
    }
    table
}

/// Adds the calls that change metadata to a table.
pub(super) fn add_metadata(table: &mut [u8; CALLS]) {
    for (number, operation) in CHANGING_METADATA.into_iter().chain(CHANGING_METADATA_BEFORE_AT) {
        set(table, number, operation);
    }
}

/// Returns the flags of an open that makes or truncates a file.
pub(super) fn flags_that_change() -> u64 {
    // O_TMPFILE has O_DIRECTORY in it, which opens no file.
    (libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u64
}

/// Returns the name of a call that is counted or logged.
pub(super) fn name(number: u32) -> &'static str {
    match c_long::from(number) {
        libc::SYS_read => "read",
        libc::SYS_pread64 => "pread64",
        libc::SYS_readv => "readv",
        libc::SYS_preadv => "preadv",
        libc::SYS_preadv2 => "preadv2",
        libc::SYS_write => "write",
        libc::SYS_pwrite64 => "pwrite64",
        libc::SYS_writev => "writev",
        libc::SYS_pwritev => "pwritev",
        libc::SYS_pwritev2 => "pwritev2",
        libc::SYS_fsync => "fsync",
        libc::SYS_fdatasync => "fdatasync",
        libc::SYS_sync_file_range => "sync_file_range",
        libc::SYS_syncfs => "syncfs",
        libc::SYS_sendfile => "sendfile",
        libc::SYS_copy_file_range => "copy_file_range",
        libc::SYS_splice => "splice",
        libc::SYS_sync => "sync",
        libc::SYS_msync => "msync",
        _ => "unknown",
    }
}

/// Returns the operation of each call, as [`counted`] does, for a trace of flushes.
pub(super) fn flushing() -> [u8; CALLS] {
    table(&FLUSHING)
}

fn table(calls: &[(c_long, Operation)]) -> [u8; CALLS] {
    let mut table = [0; CALLS];
    for &(number, operation) in calls {
        set(&mut table, number, operation);
    }
    table
}

fn set(table: &mut [u8; CALLS], number: c_long, operation: Operation) {
    if let Some(entry) = usize::try_from(number).ok().and_then(|at| table.get_mut(at)) {
        *entry = operation as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_a_place_of_its_own() {
        let known = |table: [u8; CALLS]| table.iter().filter(|entry| **entry > 0).count();
        assert_eq!(known(counted()), COUNTED.len());
        assert_eq!(known(flushing()), FLUSHING.len());
        assert_eq!(known(logged()), COUNTED.len() + FLUSHES_OF_NO_FOLDER.len());
        let mut with_metadata = counted();
        add_metadata(&mut with_metadata);
        let added = CHANGING_METADATA.len() + CHANGING_METADATA_BEFORE_AT.len();
        assert_eq!(known(with_metadata), COUNTED.len() + added);
    }

    #[test]
    fn each_call_that_is_logged_has_a_name() {
        let not_logged = [Operation::Ring, Operation::Aio, Operation::Changes];
        let not_logged = not_logged.map(|operation| operation as u8);
        let numbers = (0..).zip(logged()).filter(|(_, operation)| *operation > 0);
        for (number, operation) in numbers {
            let is_named = name(number) != "unknown";
            assert_eq!(is_named, !not_logged.contains(&operation), "{number}");
        }
    }
}
