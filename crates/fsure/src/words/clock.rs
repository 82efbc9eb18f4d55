//! The time, as a run is told it. What is recorded for decades is tested over
//! years, which no test can wait for: so the clock is handed in.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the time comes from: the system, unless somebody knows better.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<Tell>>);

type Tell = dyn Fn() -> i64 + Send + Sync;

impl Clock {
    /// A clock that tells these nanoseconds since 1970.
    pub fn telling(tell: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    /// The time, nanoseconds since 1970.
    pub fn now_ns(&self) -> i64 {
        if let Some(tell) = &self.0 {
            return tell();
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    /// The time in whole seconds since 1970.
    pub fn now_s(&self) -> i64 {
        self.now_ns().div_euclid(1_000_000_000)
    }

    /// Begins to measure. The system's clock may be set meanwhile; this is not
    /// moved by it.
    pub(crate) fn watch(&self) -> Watch {
        Watch { clock: self.clone(), began: Instant::now(), began_ns: self.now_ns() }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.0.is_some()).finish()
    }
}

/// Measures how long something lasts.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    clock: Clock,
    began: Instant,
    began_ns: i64,
}

impl Watch {
    /// How long it has lasted.
    pub(crate) fn elapsed(&self) -> Duration {
        if self.clock.0.is_none() {
            return self.began.elapsed();
        }
        Duration::from_nanos(
            self.clock.now_ns().saturating_sub(self.began_ns).max(0).unsigned_abs(),
        )
    }
}
