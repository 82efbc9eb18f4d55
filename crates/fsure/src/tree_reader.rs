//! The product itself under `speed --tree`: the readers of `verify` over the files of a volume.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use fsure_core::{ExitCode, Monitor, Result};
use fsure_integrity::model::ScanMonitor;
use fsure_integrity::{HashRequest, HashableTree, TreeInMemory};
use fsure_measure::{ReadableTree, TreePart, TreeRead, TreeReader, TreeRequest};

/// The readers of this program.
#[derive(Clone, Copy, Debug)]
pub struct OwnTreeReader;

impl TreeReader for OwnTreeReader {
    fn open(&self, volume: &Path, monitor: &dyn Monitor) -> Result<Box<dyn ReadableTree>> {
        Ok(Box::new(OwnTree(HashableTree::open(volume, &WarnOnly(monitor))?)))
    }
}

struct OwnTree(HashableTree);

impl ReadableTree for OwnTree {
    fn is_recorded(&self) -> bool {
        self.0.is_recorded()
    }

    fn evict(&self, bytes: u64, monitor: &dyn Monitor) -> Result<TreePart> {
        self.0.evict(bytes, monitor).map(part)
    }

    fn look(&self, bytes: u64, monitor: &dyn Monitor) -> Result<TreePart> {
        self.0.look(bytes, monitor).map(part)
    }

    fn read(
        &self,
        request: &TreeRequest,
        hashed: &AtomicU64,
        monitor: &dyn Monitor,
    ) -> Result<TreeRead> {
        let TreeRequest { first_way, bytes, readers } = *request;
        let done = self.0.hash(&HashRequest { first_way, bytes, readers }, hashed, monitor)?;
        Ok(TreeRead {
            files: done.files,
            failed: done.failed,
            error: done.failure,
            bytes: done.bytes,
            cached_bytes: done.by_mode.cached,
            seconds: done.seconds,
            readers: done.readers,
        })
    }
}

fn part(found: TreeInMemory) -> TreePart {
    let TreeInMemory { files, bytes, in_memory } = found;
    TreePart { files, bytes, in_memory }
}

/// Passes on warnings and the request to stop.
struct WarnOnly<'a>(&'a dyn Monitor);

impl Monitor for WarnOnly<'_> {
    fn warn(&self, message: &str) {
        self.0.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.0.stop_requested()
    }
}

impl ScanMonitor for WarnOnly<'_> {}
