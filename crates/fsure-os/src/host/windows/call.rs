//! The calls that more than one module makes, with their unsafe parts.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};

use windows_sys::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows_sys::Wdk::Storage::FileSystem::{FILE_OPEN, FILE_OPEN_REPARSE_POINT, NtCreateFile};
use windows_sys::Win32::Foundation::{
    ERROR_DELETE_PENDING, ERROR_HANDLE_EOF, ERROR_IO_PENDING, HANDLE, OBJ_DONT_REPARSE,
    RtlNtStatusToDosError, STATUS_DELETE_PENDING, UNICODE_STRING,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_INFO_BY_HANDLE_CLASS, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE,
    GetFileInformationByHandleEx, ReadFile,
};
use windows_sys::Win32::System::IO::{
    DeviceIoControl, GetOverlappedResult, IO_STATUS_BLOCK, OVERLAPPED,
};
use windows_sys::Win32::System::Threading::CreateEventW;

/// Others may do with the file what they like.
pub(super) const SHARE_ALL: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

pub(super) fn last_error() -> io::Error {
    io::Error::last_os_error()
}

/// The number of an error, where it is the system's.
pub(super) fn code(error: &io::Error) -> Option<u32> {
    error.raw_os_error().map(i32::cast_unsigned)
}

pub(super) fn error_of(code: u32) -> io::Error {
    io::Error::from_raw_os_error(code.cast_signed())
}

/// Opens a name below a folder, `\` between its components, or the folder
/// itself where it is empty. No link on the way is followed, nor the last name
/// if it is one. Names are taken as they are: none is a device, and no dot or
/// space at the end is lost.
pub(super) fn open_below(
    folder: BorrowedHandle<'_>,
    path: &[u16],
    access: u32,
    options: u32,
) -> io::Result<OwnedHandle> {
    let Ok(length) = u16::try_from(size_of_val(path)) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    let name =
        UNICODE_STRING { Length: length, MaximumLength: length, Buffer: path.as_ptr().cast_mut() };
    let attributes = OBJECT_ATTRIBUTES {
        Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
        RootDirectory: folder.as_raw_handle(),
        ObjectName: &raw const name,
        Attributes: OBJ_DONT_REPARSE,
        ..OBJECT_ATTRIBUTES::default()
    };
    let mut handle: HANDLE = std::ptr::null_mut();
    let mut answer = IO_STATUS_BLOCK::default();
    // SAFETY: everything pointed to lives during the call; the name is only
    // read, whatever the type of its pointer.
    let status = unsafe {
        NtCreateFile(
            &raw mut handle,
            access,
            &raw const attributes,
            &raw mut answer,
            std::ptr::null(),
            0,
            SHARE_ALL,
            FILE_OPEN,
            options | FILE_OPEN_REPARSE_POINT,
            std::ptr::null(),
            0,
        )
    };
    if status == STATUS_DELETE_PENDING {
        // By itself it would be taken for a missing right.
        return Err(error_of(ERROR_DELETE_PENDING));
    }
    if status < 0 {
        // SAFETY: a function from numbers to numbers.
        return Err(error_of(unsafe { RtlNtStatusToDosError(status) }));
    }
    // SAFETY: just opened, with no other owner.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// One answer of `GetFileInformationByHandleEx`.
///
/// # Safety
///
/// `T` is the structure of that class, plain data without padding that matters,
/// of which all zeros are a value.
pub(super) unsafe fn ask<T: Default>(
    file: BorrowedHandle<'_>,
    class: FILE_INFO_BY_HANDLE_CLASS,
) -> io::Result<T> {
    let mut answer = T::default();
    // SAFETY: the call writes one structure of this class, which `answer` is.
    let done = unsafe {
        GetFileInformationByHandleEx(
            file.as_raw_handle(),
            class,
            (&raw mut answer).cast(),
            size_of::<T>() as u32,
        )
    };
    if done == 0 { Err(last_error()) } else { Ok(answer) }
}

/// Reads from a handle that was opened for overlapped reading, so that several
/// threads can at once. Nothing is read at the end of the file.
pub(super) fn read(
    file: BorrowedHandle<'_>,
    target: &mut [u8],
    position: u64,
) -> io::Result<usize> {
    let event = event()?;
    let mut overlapped = overlapped(position, &event);
    let wanted = u32::try_from(target.len()).unwrap_or(u32::MAX);
    // SAFETY: `target` and `overlapped` live, and are not touched, until the
    // read is complete, for which `finish` waits.
    let done = unsafe {
        let target = target.as_mut_ptr();
        let file = file.as_raw_handle();
        ReadFile(file, target, wanted, std::ptr::null_mut(), &raw mut overlapped)
    };
    match finish(file, done, &overlapped) {
        Err(error) if code(&error) == Some(ERROR_HANDLE_EOF) => Ok(0),
        other => other,
    }
}

/// Asks the file system. The answer is how many bytes of `answer` are filled,
/// and whether there was more to tell.
pub(super) fn control(
    file: BorrowedHandle<'_>,
    request: u32,
    question: &[u64],
    answer: &mut [u64],
) -> io::Result<(usize, bool)> {
    const ERROR_MORE_DATA: u32 = 234;
    let event = event()?;
    let mut overlapped = overlapped(0, &event);
    // SAFETY: as in `read`; the sizes are those of the slices.
    let done = unsafe {
        DeviceIoControl(
            file.as_raw_handle(),
            request,
            question.as_ptr().cast::<c_void>(),
            size_of_val(question) as u32,
            answer.as_mut_ptr().cast(),
            size_of_val(answer) as u32,
            std::ptr::null_mut(),
            &raw mut overlapped,
        )
    };
    match finish(file, done, &overlapped) {
        Ok(bytes) => Ok((bytes, false)),
        Err(error) if code(&error) == Some(ERROR_MORE_DATA) => Ok((overlapped.InternalHigh, true)),
        Err(error) => Err(error),
    }
}

/// Waits for a request that is under way, and says what came of it.
fn finish(file: BorrowedHandle<'_>, done: i32, overlapped: &OVERLAPPED) -> io::Result<usize> {
    if done == 0 {
        let error = last_error();
        if code(&error) != Some(ERROR_IO_PENDING) {
            return Err(error);
        }
    }
    let mut bytes = 0;
    // SAFETY: the request was made with this handle and this structure, whose
    // event is its own, so that no other request's end is taken for this one's.
    let done = unsafe { GetOverlappedResult(file.as_raw_handle(), overlapped, &raw mut bytes, 1) };
    if done == 0 { Err(last_error()) } else { Ok(bytes as usize) }
}

/// An event of this request alone.
fn event() -> io::Result<OwnedHandle> {
    // SAFETY: no attributes, no name.
    let event = unsafe { CreateEventW(std::ptr::null(), 1, 0, std::ptr::null()) };
    if event.is_null() {
        return Err(last_error());
    }
    // SAFETY: just made, with no other owner.
    Ok(unsafe { OwnedHandle::from_raw_handle(event) })
}

fn overlapped(position: u64, event: &OwnedHandle) -> OVERLAPPED {
    let mut overlapped = OVERLAPPED { hEvent: event.as_raw_handle(), ..OVERLAPPED::default() };
    overlapped.Anonymous.Anonymous.Offset = position as u32;
    overlapped.Anonymous.Anonymous.OffsetHigh = (position >> 32) as u32;
    overlapped
}
