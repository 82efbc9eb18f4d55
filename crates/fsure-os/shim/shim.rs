//! The library that `fsure defer` has loaded into the programs that it runs:
//! `fsync` and its kin, answered from the memory that is shared with it
//! ([`shared_page`]). Without that memory, for files elsewhere, and when in doubt, the
//! real call is made.
//!
//! No standard library, no allocation, no thread: it runs in other people's
//! programs, in signal handlers and between `fork` and `exec`, where `fsync` may
//! be called and little else. What it needs of the C library is the same in glibc
//! and musl, and whichever the program has is taken. Built by `build.rs`.
#![no_std]

#[path = "../src/host/linux/defer/shared_page.rs"]
#[allow(dead_code)]
mod shared_page;

use core::ffi::{c_char, c_int, c_long, c_void};
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::SeqCst;

use shared_page::{FlushAnswer, DIGITS, FAILED, MAGIC, OWNER_DIED, DeferPage, SEALS};

#[cfg(target_arch = "x86_64")]
mod number {
    use core::ffi::c_long;
    pub(crate) const OPEN_AT: c_long = 257;
    pub(crate) const CLOSE: c_long = 3;
    pub(crate) const MMAP: c_long = 9;
    pub(crate) const MUNMAP: c_long = 11;
    pub(crate) const FSYNC: c_long = 74;
    pub(crate) const FDATASYNC: c_long = 75;
    pub(crate) const SYNCFS: c_long = 306;
    pub(crate) const FUTEX: c_long = 202;
    pub(crate) const FCNTL: c_long = 72;
    pub(crate) const STATX: c_long = 332;
    pub(crate) const PWRITEV2: c_long = 328;
}
#[cfg(not(target_arch = "x86_64"))]
mod number {
    use core::ffi::c_long;
    pub(crate) const OPEN_AT: c_long = 56;
    pub(crate) const CLOSE: c_long = 57;
    pub(crate) const MMAP: c_long = 222;
    pub(crate) const MUNMAP: c_long = 215;
    pub(crate) const FSYNC: c_long = 82;
    pub(crate) const FDATASYNC: c_long = 83;
    pub(crate) const SYNCFS: c_long = 267;
    pub(crate) const FUTEX: c_long = 98;
    pub(crate) const FCNTL: c_long = 25;
    pub(crate) const STATX: c_long = 291;
    pub(crate) const PWRITEV2: c_long = 287;
}

unsafe extern "C" {
    /// Sets `errno`, as the functions that it stands for do.
    fn syscall(number: c_long, ...) -> c_long;
    fn getenv(name: *const c_char) -> *const c_char;
    fn geteuid() -> u32;
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn __errno_location() -> *mut c_int;
}

const AT_FDCWD: c_int = -100;
const AT_EMPTY_PATH: c_int = 0x1000;
const O_RDWR_CLOEXEC: c_int = 0o2 | 0o2000000;
const S_IFMT: u16 = 0o170_000;
const S_IFREG: u16 = 0o100_000;
const READ_WRITE: c_int = 1 | 2;
const MAP_SHARED: c_int = 1;
const FUTEX_WAKE: c_int = 1;
const CLOCK_MONOTONIC: c_int = 1;
const EIO: c_int = 5;
const F_GETFL: c_int = 3;
const F_GET_SEALS: c_int = 1034;
const O_PATH: c_long = 0o10000000;
const RWF_DSYNC: c_int = 2;
const RWF_SYNC: c_int = 4;
/// The type of a file is always returned; nothing else is requested.
const STATX_TYPE: c_int = 1;
const STATX_BASIC_STATS: c_int = 0x7ff;

static PAGE: AtomicPtr<DeferPage> = AtomicPtr::new(null_mut());

/// Runs when the library is loaded; children of `fork` inherit what it has mapped.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    // SAFETY: a string of the environment's, and `errno` of this thread.
    unsafe {
        let place = getenv(c"FSURE_DEFER".as_ptr());
        if place.is_null() {
            return;
        }
        let errno = *__errno_location();
        if let Some(number) = number_before(place) {
            PAGE.store(page_at(place.add(DIGITS), number), SeqCst);
        }
        *__errno_location() = errno;
    }
}

/// The number that a string begins with.
///
/// # Safety
/// It is a string.
unsafe fn number_before(text: *const c_char) -> Option<u64> {
    let mut number = 0;
    for place in 0..DIGITS {
        // SAFETY: what is before is not the end.
        let digit = match unsafe { *text.add(place) } as u8 {
            digit @ b'0'..=b'9' => digit - b'0',
            digit @ b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        number = number << 4 | digit as u64;
    }
    Some(number)
}

/// The page of the run with this number, or null. The path is of a process that
/// may have ended, and been followed by another of that number, of another user:
/// nothing there is opened before it was looked at, nor believed if it is not of
/// this run.
///
/// # Safety
/// The path is a string.
unsafe fn page_at(path: *const c_char, number: u64) -> *mut DeferPage {
    // SAFETY: plain system calls; what is mapped stays so until the process ends, and
    // cannot become shorter.
    unsafe {
        if !can_be_the_page(AT_FDCWD, path, 0) {
            return null_mut();
        }
        let file = syscall(number::OPEN_AT, AT_FDCWD, path, O_RDWR_CLOEXEC, 0);
        if file < 0 {
            return null_mut();
        }
        let mut page = null_mut();
        let seals = syscall(number::FCNTL, file, F_GET_SEALS);
        if can_be_the_page(file as c_int, c"".as_ptr(), AT_EMPTY_PATH)
            && seals >= 0
            && seals as u32 & SEALS == SEALS
        {
            page = map(file);
        }
        syscall(number::CLOSE, file);
        if !page.is_null() && !is_of(&*page, number) {
            syscall(number::MUNMAP, page, size_of::<DeferPage>());
            page = null_mut();
        }
        page
    }
}

/// Returns true if the page belongs to the run with this number, and either its
/// flusher is alive or it has ended because a flush failed.
fn is_of(page: &DeferPage, number: u64) -> bool {
    let owner = page.owner.load(SeqCst);
    page.magic.load(SeqCst) == MAGIC
        && page.number.load(SeqCst) == number
        && owner != 0
        && (owner & OWNER_DIED == 0 || page.state.load(SeqCst) == FAILED)
}

/// # Safety
/// The file has the length of a page.
unsafe fn map(file: c_long) -> *mut DeferPage {
    let size = size_of::<DeferPage>();
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let at = unsafe {
        let anywhere = null_mut::<c_void>();
        syscall(number::MMAP, anywhere, size, READ_WRITE, MAP_SHARED, file, 0_usize)
    };
    if at == -1 { null_mut() } else { at as *mut DeferPage }
}

/// Returns true if a file has the page's type and size, and is owned by root or
/// by the current user.
///
/// # Safety
/// The path is a string.
unsafe fn can_be_the_page(folder: c_int, path: *const c_char, flags: c_int) -> bool {
    let mut stat = Statx::EMPTY;
    // SAFETY: the structure has the kernel's size.
    let result = unsafe {
        syscall(number::STATX, folder, path, flags, STATX_BASIC_STATS, &raw mut stat)
    };
    result == 0
        && stat.mode & S_IFMT == S_IFREG
        && stat.size == size_of::<DeferPage>() as u64
        // SAFETY: it asks for nothing.
        && (stat.owner == 0 || stat.owner == unsafe { geteuid() })
}

/// `struct statx`, of which only these are read.
#[repr(C, align(8))]
struct Statx {
    before: [u32; 5],
    owner: u32,
    group: u32,
    mode: u16,
    spare: u16,
    inode: u64,
    size: u64,
    between: [u64; 11],
    major: u32,
    minor: u32,
    after: [u64; 14],
}

impl Statx {
    const EMPTY: Self = Self {
        before: [0; 5],
        owner: 0,
        group: 0,
        mode: 0,
        spare: 0,
        inode: 0,
        size: 0,
        between: [0; 11],
        major: 0,
        minor: 0,
        after: [0; 14],
    };
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

fn now() -> u64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the structure is the kernel's on every 64-bit system.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

/// Returns the treatment of a call on this file. If the device of the file is not
/// known, that is the real call, which also reports what is wrong.
fn answer(file: c_int) -> FlushAnswer {
    // SAFETY: null, or mapped until the process ends.
    let Some(page) = (unsafe { PAGE.load(SeqCst).as_ref() }) else { return FlushAnswer::Real };
    let mut stat = Statx::EMPTY;
    // What is only a path can be looked at and not synced.
    // SAFETY: the call takes a descriptor and a number, whatever they are.
    let flags = unsafe { syscall(number::FCNTL, file, F_GETFL) };
    if flags < 0 || flags & O_PATH != 0 {
        return FlushAnswer::Real;
    }
    // SAFETY: the path is an empty string, and the structure has the kernel's size.
    let result = unsafe {
        syscall(number::STATX, file, c"".as_ptr(), AT_EMPTY_PATH, STATX_TYPE, &raw mut stat)
    };
    if result != 0 {
        return FlushAnswer::Real;
    }
    let answer = page.call(shared_page::device(stat.mode, stat.major, stat.minor), now());
    if answer == (FlushAnswer::Acknowledged { first: true }) {
        page.wake.fetch_add(1, SeqCst);
        // SAFETY: the futex lies in memory that stays mapped.
        unsafe { syscall(number::FUTEX, &raw const page.wake, FUTEX_WAKE, 1) };
    }
    answer
}

fn fail() -> c_int {
    // SAFETY: the C library's own place for it, of this thread.
    unsafe { *__errno_location() = EIO };
    -1
}

fn sync(file: c_int, number: c_long) -> c_int {
    match answer(file) {
        FlushAnswer::Acknowledged { .. } => 0,
        // SAFETY: the call takes one descriptor, whatever that is.
        FlushAnswer::Real => unsafe { syscall(number, file) as c_int },
        FlushAnswer::Failed => fail(),
    }
}

/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(file: c_int) -> c_int {
    sync(file, number::FSYNC)
}

/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(file: c_int) -> c_int {
    sync(file, number::FDATASYNC)
}

/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syncfs(file: c_int) -> c_int {
    sync(file, number::SYNCFS)
}

/// Written first, and then acknowledged as a call of `fdatasync` would be.
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev2(
    file: c_int,
    vector: *const c_void,
    count: c_int,
    offset: i64,
    flags: c_int,
) -> isize {
    let write = |flags: c_int| {
        // SAFETY: the caller's own arguments. The kernel takes the offset in two
        // halves, of which the second is empty on 64-bit systems.
        unsafe { syscall(number::PWRITEV2, file, vector, count, offset, 0_usize, flags) as isize }
    };
    if flags & (RWF_DSYNC | RWF_SYNC) == 0 {
        return write(flags);
    }
    let written = write(flags & !(RWF_DSYNC | RWF_SYNC));
    let number = if flags & RWF_SYNC == 0 { number::FDATASYNC } else { number::FSYNC };
    if written > 0 && sync(file, number) != 0 {
        return -1;
    }
    written
}

/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64v2(
    file: c_int,
    vector: *const c_void,
    count: c_int,
    offset: i64,
    flags: c_int,
) -> isize {
    // SAFETY: the same function by another name.
    unsafe { pwritev2(file, vector, count, offset, flags) }
}

/// Nothing here panics.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
