//! The machine, as far as Windows tells it in few calls: there is no load
//! average, and no time that a hypervisor took.

use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;
use windows_sys::Win32::System::SystemInformation::{
    GetVersionExW, GlobalMemoryStatusEx, MEMORYSTATUSEX, OSVERSIONINFOW,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes, GetSystemTimes};

use crate::machine::{Machine, ProcessorTime, Processors};

/// Units of 100 ns in a second, in which all times are counted.
const PER_SECOND: u64 = 10_000_000;

/// See [`crate::machine::machine`].
pub(crate) fn machine() -> Machine {
    Machine {
        system: Some(version().map_or_else(|| "Windows".to_owned(), |v| format!("Windows {v}"))),
        processor: std::env::var("PROCESSOR_IDENTIFIER").ok(),
        memory_bytes: memory().map(|memory| memory.ullTotalPhys),
        virtualization: None,
        cores: None,
    }
}

/// See [`crate::machine::backup_power`]: not asked here.
pub(crate) fn backup_power() -> Option<String> {
    None
}

fn version() -> Option<String> {
    let mut version = OSVERSIONINFOW {
        dwOSVersionInfoSize: size_of::<OSVERSIONINFOW>() as u32,
        ..Default::default()
    };
    // SAFETY: a structure that says its own size and outlives the call.
    let is_known = unsafe { GetVersionExW(&raw mut version) } != 0;
    is_known.then(|| {
        format!("{}.{}.{}", version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber)
    })
}

fn memory() -> Option<MEMORYSTATUSEX> {
    let mut memory =
        MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..Default::default() };
    // SAFETY: a structure that says its own size and outlives the call.
    (unsafe { GlobalMemoryStatusEx(&raw mut memory) } != 0).then_some(memory)
}

/// See [`crate::machine::available_memory`].
pub(crate) fn available_memory() -> Option<u64> {
    Some(memory()?.ullAvailPhys)
}

/// There is none.
pub(crate) fn load() -> Option<f64> {
    None
}

/// See [`Processors`]. The time in the kernel includes that of doing nothing.
pub(crate) fn processors() -> Option<Processors> {
    let [mut idle, mut kernel, mut user] = [FILETIME::default(); 3];
    // SAFETY: three structures of the caller's, which outlive the call.
    if unsafe { GetSystemTimes(&raw mut idle, &raw mut kernel, &raw mut user) } == 0 {
        return None;
    }
    let all = number(kernel) + number(user);
    let busy = all.saturating_sub(number(idle));
    Some(Processors { busy, steal: None, all, per_second: PER_SECOND })
}

/// Nothing adds up what ended processes had.
pub(crate) fn children_time() -> Option<Duration> {
    None
}

/// See [`crate::machine::own_processor_time`].
pub(crate) fn own_processor_time() -> Option<ProcessorTime> {
    let [mut begun, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the pseudo handle of this process, and four structures of the
    // caller's, which outlive the call.
    let is_known = unsafe {
        GetProcessTimes(
            GetCurrentProcess(),
            &raw mut begun,
            &raw mut ended,
            &raw mut kernel,
            &raw mut user,
        )
    } != 0;
    let time = |time| Duration::from_nanos(number(time) * 100);
    is_known.then(|| ProcessorTime { user: time(user), system: time(kernel) })
}

fn number(time: FILETIME) -> u64 {
    u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)
}

/// See [`crate::machine::is_full`].
pub(crate) fn is_full(folder: &Path) -> io::Result<bool> {
    Ok(free_bytes(folder)? == 0)
}

/// See [`crate::machine::free_bytes`].
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let folder: Vec<u16> = folder.as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0;
    let unused = std::ptr::null_mut();
    // SAFETY: a path that ends with NUL, and a number of the caller's.
    let asked = unsafe { GetDiskFreeSpaceExW(folder.as_ptr(), &raw mut free, unused, unused) };
    if asked == 0 { Err(io::Error::last_os_error()) } else { Ok(free) }
}
