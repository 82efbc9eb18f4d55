//! The machine, by `sysctl`. Nothing tells what memory could be had, and the
//! processors' time is not asked for.

use std::ffi::CStr;

pub(crate) use crate::host::unix::machine::{
    children_time, free_bytes, is_full, own_processor_time,
};
use crate::machine::{Machine, Processors};

/// See [`crate::machine::machine`].
pub(crate) fn machine() -> Machine {
    let version = text(c"kern.osproductversion");
    let memory = value(c"hw.memsize").and_then(|bytes| bytes.try_into().ok());
    let is_virtual = value(c"kern.hv_vmm_present").and_then(|bytes| bytes.try_into().ok());
    Machine {
        system: version.map(|version| format!("macOS {version}")),
        processor: text(c"machdep.cpu.brand_string"),
        memory_bytes: memory.map(u64::from_ne_bytes),
        virtualization: (is_virtual.map(i32::from_ne_bytes) == Some(1))
            .then(|| "virtual".to_owned()),
        cores: None,
    }
}

/// See [`crate::machine::backup_power`]: not asked here.
pub(crate) fn backup_power() -> Option<String> {
    None
}

pub(super) fn text(name: &CStr) -> Option<String> {
    let bytes = value(name)?;
    let text = CStr::from_bytes_until_nul(&bytes).ok()?.to_str().ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// `sysctlbyname(3)`.
fn value(name: &CStr) -> Option<Vec<u8>> {
    let mut value = vec![0_u8; 256];
    let mut length = value.len();
    // SAFETY: a name that ends with NUL, and space of the length given.
    let asked = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            value.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    value.truncate(length);
    (asked == 0).then_some(value)
}

/// See [`crate::machine::available_memory`].
pub(crate) fn available_memory() -> Option<u64> {
    None
}

/// The first of the three averages.
pub(crate) fn load() -> Option<f64> {
    let mut average = 0.0;
    // SAFETY: space for the one number asked for.
    (unsafe { libc::getloadavg(&raw mut average, 1) } == 1).then_some(average)
}

/// See [`Processors`].
pub(crate) fn processors() -> Option<Processors> {
    None
}
