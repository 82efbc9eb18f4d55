//! Where RAM folders are not to be had, which is where no Linux is.

use crate::kernel::Features;

/// Nothing can be tried.
pub(crate) fn features() -> Features {
    Features::default()
}
