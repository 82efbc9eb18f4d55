//! fanotify, as it is spoken: a group, its marks, the events that wait in it, and the
//! handles in them. What an event means its reader knows.
//!
//! An event says by a handle what it is of: a number that stays when the file is renamed.
//! Here alone bytes of the kernel are taken apart, and none of them are believed.

use std::ffi::{CString, c_int, c_uint};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::poll;

/// Read at once: some 500 events.
const EVENT_BUFFER_BYTES: usize = 64 << 10;

/// `fanotify_event_metadata`: with what each event begins.
const EVENT: usize = 24;

/// Before the bytes of a handle stand how many they are, and of which kind.
const HEAD: usize = 8;

/// Longer ones the kernel does not make.
const HANDLE_MAX: usize = 128;

/// A group of marks, and the queue of what they tell.
#[derive(Debug)]
pub(super) struct FanotifyGroup(OwnedFd);

/// An event: the operation, the process that did it, and the records of its objects.
pub(super) struct FanotifyEvent<'a> {
    pub(super) mask: u64,
    #[cfg(any(feature = "io-trace", test))]
    pub(super) process: u32,
    records: &'a [u8],
}

/// One of the things that an event is of.
pub(super) struct InfoRecord<'a> {
    /// `FAN_EVENT_INFO_TYPE_…`
    pub(super) kind: u8,
    body: &'a [u8],
}

/// A `file_handle` as the kernel writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Handle(Box<[u8]>);

/// Room for any handle, aligned for the numbers at its head.
#[repr(C, align(8))]
struct HandleBuffer([u8; HEAD + HANDLE_MAX]);

impl FanotifyGroup {
    /// One whose events have handles and no open files.
    pub(super) fn new(flags: c_uint) -> io::Result<Self> {
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | flags;
        let files = (libc::O_RDONLY | libc::O_CLOEXEC).cast_unsigned();
        // SAFETY: two numbers; what is opened has no other owner.
        unsafe { owned(libc::fanotify_init(flags, files)) }.map(Self)
    }

    /// Marks a name in a folder, or without one what is open itself.
    pub(super) fn mark(
        &self,
        flags: c_uint,
        events: u64,
        at: impl AsFd,
        name: Option<&Path>,
    ) -> io::Result<()> {
        let name = terminated(name)?;
        // SAFETY: open files, and a name that ends in a zero and outlives the call, or none.
        let done = unsafe {
            libc::fanotify_mark(
                self.0.as_raw_fd(),
                libc::FAN_MARK_ADD | flags,
                events,
                at.as_fd().as_raw_fd(),
                name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()),
            )
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits until there are events; whether there are.
    pub(super) fn wait(&self, at_most: Duration) -> io::Result<bool> {
        poll::is_readable(&self.0, at_most)
    }

    /// Returns whether nothing waits now.
    pub(super) fn is_empty(&self) -> io::Result<bool> {
        Ok(rustix::io::ioctl_fionread(&self.0)? == 0)
    }

    /// Takes what waits now. A reader that goes on until nothing is left never ends while
    /// others are busy all the time. `None` stands for an event that cannot be read, and for
    /// those read together with it that come after it.
    pub(super) fn take(
        &self,
        mut handle_event: impl FnMut(Option<FanotifyEvent<'_>>),
    ) -> io::Result<()> {
        // The kernel counts the heads of the events that wait, and none of what follows
        // them: bytes that were read say nothing of what is left.
        let mut left = rustix::io::ioctl_fionread(&self.0)?.div_ceil(EVENT as u64);
        let mut batch = vec![0; EVENT_BUFFER_BYTES];
        while left > 0 {
            match rustix::io::read(&self.0, &mut batch) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(length) => each(&batch[..length], FanotifyEvent::first).for_each(|event| {
                    left = left.saturating_sub(1);
                    handle_event(event);
                }),
            }
        }
        Ok(())
    }
}

impl<'a> FanotifyEvent<'a> {
    /// Returns the records of the event's objects. `None` stands for a record that cannot be
    /// read, and is the last.
    pub(super) fn records(&self) -> impl Iterator<Item = Option<InfoRecord<'a>>> {
        each(self.records, InfoRecord::first)
    }

    /// The first of several, and those behind it.
    fn first(events: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let length = u32::from_ne_bytes(at(events, 0)?) as usize;
        let (event, rest) = events.split_at_checked(length)?;
        let start = usize::from(u16::from_ne_bytes(at(event, 6)?));
        let mask = u64::from_ne_bytes(at(event, 8)?);
        let records = event.get(start..).filter(|_| start >= EVENT)?;
        let event = Self {
            mask,
            #[cfg(any(feature = "io-trace", test))]
            process: u32::from_ne_bytes(at(event, 20)?),
            records,
        };
        Some((event, rest))
    }
}

impl<'a> InfoRecord<'a> {
    /// Returns the location of a file: the number of its file system, its handle, and the name
    /// that might follow; `None` if the record cannot be read.
    pub(super) fn file(&self) -> Option<(u64, Handle, &'a [u8])> {
        let halves = [at(self.body, 0)?, at(self.body, 4)?];
        let [low, high] = halves.map(|half| u64::from(u32::from_ne_bytes(half)));
        let (handle, name) = Handle::first(&self.body[8..])?;
        Some((low | high << 32, handle, name))
    }

    /// The first of several, and those behind it.
    fn first(records: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let length = usize::from(u16::from_ne_bytes(at(records, 2)?));
        let (record, rest) = records.split_at_checked(length)?;
        Some((Self { kind: *record.first()?, body: record.get(4..)? }, rest))
    }
}

impl Handle {
    /// That of a name in a folder, or without one of what is open itself.
    pub(super) fn of(at: impl AsFd, name: Option<&Path>) -> io::Result<Self> {
        let flags = if name.is_none() { libc::AT_EMPTY_PATH } else { 0 };
        let name = terminated(name)?.unwrap_or_default();
        let (mut buffer, mut mount) = (HandleBuffer([0; _]), 0);
        buffer.0[..4].copy_from_slice(&(HANDLE_MAX as u32).to_ne_bytes());
        // SAFETY: an open file, and a name that ends in a zero; the buffer is aligned and as
        // large as it says, and any bytes are good in it.
        let done = unsafe {
            libc::name_to_handle_at(
                at.as_fd().as_raw_fd(),
                name.as_ptr(),
                (&raw mut buffer).cast(),
                &raw mut mount,
                flags,
            )
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        let handle = Self::first(&buffer.0).map(|(handle, _)| handle);
        handle.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Opens what it leads to, in the file system of `root`.
    pub(super) fn open(&self, root: impl AsFd, flags: OFlags) -> io::Result<OwnedFd> {
        let mut buffer = HandleBuffer([0; _]);
        let used = buffer.0.get_mut(..self.0.len()).ok_or(io::ErrorKind::InvalidInput)?;
        used.copy_from_slice(&self.0);
        let flags = (flags | OFlags::CLOEXEC).bits().cast_signed();
        let root = root.as_fd().as_raw_fd();
        // SAFETY: an open file, and an aligned handle in a buffer of no less bytes than it says,
        // which the kernel checks; what is opened has no other owner.
        unsafe { owned(libc::open_by_handle_at(root, (&raw mut buffer).cast(), flags)) }
    }

    /// Returns true if the handle leads nowhere, because the kernel could not make it.
    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == HEAD
    }

    /// Splits bytes that begin with a handle into the handle and the rest; `None` if they are
    /// too short.
    fn first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let length = u32::from_ne_bytes(at(bytes, 0)?) as usize;
        let (handle, rest) = bytes.split_at_checked(HEAD.saturating_add(length))?;
        Some((Self(handle.into()), rest))
    }
}

/// Goes through what stands one after the other, and ends behind what cannot be read:
/// the program cannot know then where the next begins.
fn each<'a, T>(
    mut bytes: &'a [u8],
    first: impl Fn(&'a [u8]) -> Option<(T, &'a [u8])>,
) -> impl Iterator<Item = Option<T>> {
    std::iter::from_fn(move || {
        let left = Some(mem::take(&mut bytes)).filter(|left| !left.is_empty())?;
        Some(first(left).map(|(one, rest)| {
            bytes = rest;
            one
        }))
    })
}

fn at<const LENGTH: usize>(bytes: &[u8], place: usize) -> Option<[u8; LENGTH]> {
    bytes.get(place..)?.first_chunk().copied()
}

fn terminated(name: Option<&Path>) -> io::Result<Option<CString>> {
    Ok(name.map(|name| CString::new(name.as_os_str().as_bytes())).transpose()?)
}

/// Takes ownership of the descriptor that a call has returned.
///
/// # Safety
///
/// It is negative and the call's error is the last one, or it has no other owner.
unsafe fn owned(descriptor: c_int) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open and has no other owner, as the caller says.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::did_not_run;

    /// As the kernel writes it, where it is true to itself.
    fn event(mask: u64, records: &[u8]) -> Vec<u8> {
        let length = (EVENT + records.len()) as u32;
        let start = (EVENT as u16).to_ne_bytes();
        let (mask, file, process) = (mask.to_ne_bytes(), [0xff; 4], 7_u32.to_ne_bytes());
        [&length.to_ne_bytes()[..], &[3, 0], &start, &mask, &file, &process, records].concat()
    }

    fn record(kind: u8, handle: &[u8], name: &[u8]) -> Vec<u8> {
        let length = (20 + handle.len() + name.len()) as u16;
        let (system, bytes) = ([5_u32, 6].map(u32::to_ne_bytes), handle.len() as u32);
        let head = [&[kind, 0][..], &length.to_ne_bytes(), &system[0], &system[1]].concat();
        [&head[..], &bytes.to_ne_bytes(), &1_u32.to_ne_bytes(), handle, name].concat()
    }

    /// Of each event its mask, and of its records the kind, the length of the handle and
    /// the name; a question mark for what cannot be read.
    fn described(batch: &[u8]) -> String {
        let record = |record: Option<InfoRecord<'_>>| match record.map(|one| (one.kind, one.file()))
        {
            None => "?".to_owned(),
            Some((kind, None)) => format!("{kind}?"),
            Some((kind, Some((system, handle, name)))) => {
                assert_eq!(system, 6 << 32 | 5);
                assert_eq!(handle.is_empty(), handle.0.len() == 8);
                format!("{kind}/{}/{}", handle.0.len() - 8, name.escape_ascii())
            }
        };
        let event = |event: Option<FanotifyEvent<'_>>| match event {
            None => "?".to_owned(),
            Some(event) => {
                assert_eq!(event.process, 7);
                let records: Vec<_> = event.records().map(record).collect();
                format!("{}({})", event.mask, records.join(" "))
            }
        };
        each(batch, FanotifyEvent::first).map(event).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn events_and_their_records_are_distinguished() {
        let two = [record(2, b"handle", b"name\0\0"), record(1, b"", b"")].concat();
        let batch = [event(4, &two), event(0x4000, b""), event(1, &record(3, b"x", b""))].concat();
        assert_eq!(described(&batch), r"4(2/6/name\x00\x00 1/0/) 16384() 1(3/1/)");
        assert_eq!(described(b""), "");
    }

    #[test]
    fn a_truncated_event_is_reported_once_and_ends_the_list() {
        let whole = event(1, &record(2, b"handle", b"name\0"));
        let batch = [&whole[..], &whole].concat();
        let first = r"1(2/6/name\x00)";
        assert_eq!(described(&batch), format!("{first} {first}"));
        assert_eq!(described(&batch[..whole.len()]), first);
        for end in whole.len() + 1..batch.len() {
            assert_eq!(described(&batch[..end]), format!("{first} ?"), "{end}");
        }
    }

    #[test]
    fn a_length_that_cannot_be_ends_the_batch() {
        let whole = event(1, b"");
        let with = |place: usize, bytes: &[u8]| {
            let mut batch = [&whole[..], &whole].concat();
            batch[place..place + bytes.len()].copy_from_slice(bytes);
            described(&batch)
        };
        for length in [0_u32, 1, 23, 49, u32::MAX] {
            assert_eq!(with(0, &length.to_ne_bytes()), "?", "{length}");
        }
        // Where its records begin.
        for start in [0_u16, 23, 25, u16::MAX] {
            assert_eq!(with(6, &start.to_ne_bytes()), "?", "{start}");
            assert_eq!(with(EVENT + 6, &start.to_ne_bytes()), "1() ?", "{start}");
        }
    }

    #[test]
    fn a_record_that_cannot_be_leaves_the_next_event() {
        let whole = record(2, b"handle", b"");
        let with = |place: usize, bytes: &[u8]| {
            let mut broken = [&whole[..], &whole].concat();
            broken[place..place + bytes.len()].copy_from_slice(bytes);
            described(&[event(1, &broken), event(2, b"")].concat())
        };
        assert_eq!(with(0, &[2]), "1(2/6/ 2/6/) 2()");
        for length in [0_u16, 3, 53, u16::MAX] {
            assert_eq!(with(2, &length.to_ne_bytes()), "1(?) 2()", "{length}");
            assert_eq!(with(26 + 2, &length.to_ne_bytes()), "1(2/6/ ?) 2()", "{length}");
        }
        // A handle that is longer than its record.
        for length in [7_u32, u32::MAX] {
            assert_eq!(with(12, &length.to_ne_bytes()), "1(2? 2/6/) 2()", "{length}");
        }
        for end in 1..whole.len() {
            assert_eq!(described(&event(1, &whole[..end])), "1(?)", "{end}");
        }
        // One that is not of a file: its length, and four bytes.
        assert_eq!(described(&event(1, &[4, 0, 8, 0, 1, 1, 1, 1])), "1(4?)");
    }

    #[test]
    fn a_handle_is_that_of_its_file_and_never_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let open = std::fs::File::open(folder.path()).unwrap();
        let handle = match Handle::of(&open, None) {
            Ok(handle) => handle,
            Err(error) => return did_not_run("a_handle_is_that_of_its_file", &error.to_string()),
        };
        assert_eq!(Handle::of(rustix::fs::CWD, Some(folder.path())).unwrap(), handle);
        assert!(!handle.is_empty());
        assert_eq!(align_of::<HandleBuffer>(), 8);
        let long = Handle([&200_u32.to_ne_bytes()[..], &[0; 204]].concat().into());
        assert_eq!(long.open(&open, OFlags::PATH).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
