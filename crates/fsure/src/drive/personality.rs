//! When what a drive has acknowledged is durable.

use std::time::Duration;

/// A kind of drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Personality {
    /// A flush is acknowledged when all before it is on the medium.
    Honest,
    /// The cache survives a cut: every acknowledged write is durable (power-loss
    /// protection, a battery).
    Protected,
    /// Flushes are acknowledged and do nothing.
    Lying {
        /// After which time a write reaches the medium by itself, in order;
        /// `None`: never while anybody looks.
        lag: Option<Duration>,
    },
    /// A flush within this time of the last real one is acknowledged at once and
    /// done when the time is over, as Apple's driver can be told to
    /// (`drivers/nvme/host/apple.c`, `flush_interval`). Nothing keeps the order of
    /// what waits meanwhile.
    Defer {
        /// The time.
        longest: Duration,
    },
}
