//! macOS keeps nothing of fsure beyond the process that made it.

use std::io;

use crate::scratch_registry::Resource;

/// Returns the id of this boot, which differs from that of every other boot.
pub(crate) fn boot() -> io::Result<String> {
    super::machine::text(c"kern.bootsessionuuid").ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Nothing of the kind exists here.
pub(crate) fn release(_: &Resource) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
