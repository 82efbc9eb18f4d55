//! Tests that take turns: what they look at is one of the whole machine.

use std::fs::File;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::new(());

/// A test's turn, until this is dropped.
pub struct Turn(File);

/// Waits until no other test of this program that asked for it has the machine, and has
/// it until the answer is dropped. Cargo runs no two test programs at a time.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The same for a test that waits most of its time or whose times mean nothing: it shares the
/// machine with others of its kind.
pub fn shared() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for all tests before that have zram devices, in other processes, too: the
/// number of one that is gone is the next one's.
pub fn zram() -> Turn {
    let path = std::env::temp_dir().join("fsure-test-zram");
    let file = File::options().create(true).append(true).open(path).expect("open a lock");
    file.lock().expect("lock it");
    Turn(file)
}

impl Drop for Turn {
    /// Said aloud, for what is being started has a copy.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}
