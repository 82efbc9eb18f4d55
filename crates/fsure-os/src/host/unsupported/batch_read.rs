//! The answer of systems without a queue of reads that is worth the trouble:
//! there is none, and files are read one by one.

use std::io;

use crate::buffer::Buffer;
use crate::read::{OpenFile, ReadResult};

/// Reads one call could carry.
pub const RING_READS_MAX: usize = 128;

/// A queue of reads, which no caller can have here.
pub enum Ring {}

impl Ring {
    /// `None`: there is none.
    pub fn new() -> Option<Self> {
        None
    }
}

impl OpenFile {
    /// Cannot be called, for want of a ring.
    pub fn read_whole(
        ring: &mut Ring,
        _buffer: &mut Buffer,
        _wanted: &[(&Self, usize, usize)],
    ) -> Vec<Option<io::Result<ReadResult>>> {
        match *ring {}
    }
}
