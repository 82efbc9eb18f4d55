//! Stub for systems other than Linux, which have no suitable device counters. macOS and
//! Windows count bytes of whole disks but no flushes, and flushes are what this is for.

use std::io;
use std::path::Path;

use crate::block_stats::Counters;

/// The counters of a device: none are ever made.
#[derive(Debug)]
pub(crate) struct DeviceCounters(std::convert::Infallible);

impl DeviceCounters {
    pub(crate) fn of(_: &Path) -> io::Result<Option<Self>> {
        Ok(None)
    }

    pub(crate) fn of_device(_: &Path) -> io::Result<Option<Self>> {
        Ok(None)
    }

    pub(crate) fn takes_forced(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn read(&self) -> io::Result<Counters> {
        match self.0 {}
    }
}
