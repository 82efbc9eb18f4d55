//! Replies of the FUSE servers to the kernel. A server computes a result; here it becomes an
//! answer of the protocol, in the same way for all of them.

use std::ffi::OsStr;
use std::time::Duration;

use fuser::{
    Errno, FileAttr, FileType, Generation, INodeNo, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyWrite,
};

/// Time for which the kernel can cache an answer about what changes only through the kernel.
pub(super) const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// A name in a folder, as a listing has it.
pub(super) type ListedName<'a> = (INodeNo, FileType, &'a OsStr);

/// Answers a request that has no result.
pub(super) fn empty(result: Result<(), impl Into<Errno>>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

/// Answers with an entry that the kernel can cache for that time.
pub(super) fn entry(
    result: Result<FileAttr, impl Into<Errno>>,
    cached: Duration,
    reply: ReplyEntry,
) {
    match result {
        Ok(found) => reply.entry(&cached, &found, Generation(0)),
        Err(error) => reply.error(error.into()),
    }
}

/// Answers with attributes that the kernel can cache for that time.
pub(super) fn attributes(
    result: Result<FileAttr, impl Into<Errno>>,
    cached: Duration,
    reply: ReplyAttr,
) {
    match result {
        Ok(found) => reply.attr(&cached, &found),
        Err(error) => reply.error(error.into()),
    }
}

/// Answers with the bytes of a file or of a link.
pub(super) fn data(result: Result<impl AsRef<[u8]>, impl Into<Errno>>, reply: ReplyData) {
    match result {
        Ok(bytes) => reply.data(bytes.as_ref()),
        Err(error) => reply.error(error.into()),
    }
}

/// Answers that all of so many bytes were written.
pub(super) fn written(result: Result<(), impl Into<Errno>>, bytes: usize, reply: ReplyWrite) {
    match result {
        Ok(()) => reply.written(u32::try_from(bytes).unwrap_or(u32::MAX)),
        Err(error) => reply.error(error.into()),
    }
}

/// Answers with the names of a folder from the place on that the kernel asks for, as many
/// as fit.
pub(super) fn listing<'a>(
    names: impl Iterator<Item = ListedName<'a>>,
    from: u64,
    mut reply: ReplyDirectory,
) {
    let skipped = usize::try_from(from).unwrap_or(usize::MAX);
    for (next, (inode, kind, name)) in (1..).zip(names).skip(skipped) {
        if reply.add(inode, next, kind, name) {
            break;
        }
    }
    reply.ok();
}
