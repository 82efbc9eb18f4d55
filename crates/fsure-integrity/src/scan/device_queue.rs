//! State that the readers of one device share: their queue, and the heads of a
//! disk that has some.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::file_read::FileRead;
use super::io_options::DeviceLimits;
use super::read_request::ReadRequest;
use super::seek_limiter::SeekLimiter;

/// One device, as its readers see it.
pub(super) struct DeviceQueue {
    pub(super) orders: Receiver<Vec<ReadRequest>>,
    /// Calls for help with a large file.
    pub(super) call: Sender<Arc<FileRead>>,
    pub(super) calls: Receiver<Arc<FileRead>>,
    pub(super) heads: SeekLimiter,
    pub(super) share: DeviceLimits,
    /// True if what is read past the local page cache might come from the cache
    /// of another machine.
    pub(super) is_remote: bool,
}

impl DeviceQueue {
    pub(super) fn new(
        orders: Receiver<Vec<ReadRequest>>,
        share: DeviceLimits,
        is_remote: bool,
    ) -> Self {
        let (call, calls) = bounded(share.threads * share.threads);
        Self { orders, call, calls, heads: SeekLimiter::new(share.heads), share, is_remote }
    }
}
