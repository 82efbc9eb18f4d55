//! Stub for systems other than Linux, on which RAM folders are not available.

use crate::kernel_features::{Features, ReadFeatures};

/// Nothing can be tried.
pub(crate) fn features() -> Features {
    Features::default()
}

/// See [`features`].
pub(crate) fn read_features() -> Option<ReadFeatures> {
    None
}
