//! Windows has no RAM disk of its own. See [`crate::ramdisk`].

use std::io;
use std::path::Path;

use crate::overmount::{Elsewhere, Holder};
use crate::ramdisk::Disk;

/// Names in a RAM disk that belong to fsure.
pub const OWN: [&str; 0] = [];

/// Fails, with what to do.
pub fn create(_: &str, place: &Path, bytes: u64) -> io::Result<()> {
    let why = format!(
        "Windows has no RAM disk of its own: with the driver of Arsenal Image Mounter, 'aim_ll -a \
         -t vm -s {bytes} -m {}' makes one",
        place.display()
    );
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// Returns none: fsure has none here.
pub fn disks() -> io::Result<Vec<Disk>> {
    Ok(Vec::new())
}

/// Never called: there are none.
pub fn destroy(_: &Disk) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Never called: there are none.
pub fn set_read_only(_: &Disk, _: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Not known.
pub fn holders(_: &Disk) -> io::Result<Vec<Holder>> {
    Ok(Vec::new())
}

/// There are no mount namespaces.
pub fn elsewhere(_: &Disk) -> io::Result<Vec<Elsewhere>> {
    Ok(Vec::new())
}
