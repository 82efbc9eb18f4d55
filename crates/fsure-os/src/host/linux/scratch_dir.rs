//! Resources that Linux keeps beyond the process that made them.

use std::io;
use std::path::Path;

use crate::scratch_registry::Resource;

/// Returns the id of this boot, which differs from that of every other boot.
pub(crate) fn boot() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Releases what a dead process had. What is not there is not an error; what is in
/// use is one.
pub(crate) fn release(resource: &Resource) -> io::Result<()> {
    let released = match resource {
        Resource::Zram(number) => {
            if !Path::new(&format!("/sys/block/zram{number}")).exists() {
                return Ok(());
            }
            std::fs::write("/sys/class/zram-control/hot_remove", number.to_string())
        }
        Resource::Group(folder) => {
            let name = folder.file_name().and_then(|name| name.to_str());
            if !name.is_some_and(|name| name.starts_with("fsure-")) {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "not a control group that fsure made",
                ));
            }
            std::fs::remove_dir(folder)
        }
    };
    match released {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
