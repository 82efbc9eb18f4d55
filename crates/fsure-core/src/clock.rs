//! The clock of a run. Records are kept for decades and tested over years, which
//! no test can wait for: so the clock is a parameter.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The source of the time: the system, unless the caller sets another one.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<NowNs>>);

type NowNs = dyn Fn() -> i64 + Send + Sync;

impl Clock {
    /// Creates a clock that returns the nanoseconds since 1970 that `now_ns` returns.
    pub fn from_fn(now_ns: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now_ns)))
    }

    /// The time, nanoseconds since 1970.
    pub fn now_ns(&self) -> i64 {
        if let Some(now_ns) = &self.0 {
            return now_ns();
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    /// The time in whole seconds since 1970.
    pub fn now_s(&self) -> i64 {
        self.now_ns().div_euclid(1_000_000_000)
    }

    /// Starts a measurement. It is not affected if the system's clock is set
    /// meanwhile.
    pub fn watch(&self) -> ElapsedTimer {
        ElapsedTimer { clock: self.clone(), began: Instant::now(), began_ns: self.now_ns() }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.0.is_some()).finish()
    }
}

/// Measures how long something lasts.
#[derive(Clone, Debug)]
pub struct ElapsedTimer {
    clock: Clock,
    began: Instant,
    began_ns: i64,
}

impl ElapsedTimer {
    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        if self.clock.0.is_none() {
            return self.began.elapsed();
        }
        Duration::from_nanos(
            self.clock.now_ns().saturating_sub(self.began_ns).max(0).unsigned_abs(),
        )
    }
}
