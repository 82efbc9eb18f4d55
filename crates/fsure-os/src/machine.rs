//! The machine, and what else it is doing: two figures of different machines,
//! or of a quiet and a busy one, are not to be compared unawares. What the
//! system does not tell is `None`.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::host::machine as host;

/// A description of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The operating system and its version: `Linux 6.12.0, Debian GNU/Linux 13`.
    pub system: Option<String>,
    /// The processor's own name.
    pub processor: Option<String>,
    /// Logical processors that this process may use.
    pub cores: Option<usize>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// The hypervisor of a virtual machine: `kvm`; `virtual` if the machine does
    /// not report which. `None` means that nothing reports one.
    pub virtualization: Option<String>,
}

/// The load of the machine at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadSample {
    /// Average number of running tasks in the last minute.
    pub load: Option<f64>,
    /// Time of all processors together since the machine was started.
    pub processors: Option<Processors>,
    /// Processor time of this process, user and system, and of those that it
    /// has started and waited for, if the system reports it: they measure for it.
    pub own: Option<Duration>,
}

/// Processor time, in the system's own ticks: only shares of it mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processors {
    /// Spent on anything.
    pub busy: u64,
    /// Given to others by the hypervisor, if the system reports it; not in `busy`.
    pub steal: Option<u64>,
    /// All of it: busy, stolen and idle.
    pub all: u64,
    /// Ticks of one processor per second.
    pub per_second: u64,
}

/// Processor time of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTime {
    /// Spent in the program itself.
    pub user: Duration,
    /// Spent in the kernel on its behalf.
    pub system: Duration,
}

impl ProcessorTime {
    /// Both together.
    pub fn total(&self) -> Duration {
        self.user + self.system
    }

    /// Returns the time since an earlier moment.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }
}

/// Processor time that others had between two moments, in percent of the processors' time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OthersLoad {
    /// The hypervisor gave it to others.
    pub steal_percent: Option<f64>,
    /// Other processes of this machine used it.
    pub others_percent: Option<f64>,
}

/// Reads the description of the machine.
pub fn machine() -> Machine {
    Machine { cores: std::thread::available_parallelism().ok().map(usize::from), ..host::machine() }
}

/// Batteries and UPSs that keep the machine running without the mains:
/// `battery BAT0 (87 %, Full)`. `None` if the system knows of none or cannot be asked.
pub fn backup_power() -> Option<String> {
    host::backup_power()
}

/// Reads the current load.
pub fn moment() -> LoadSample {
    let own = own_time().map(|own| own + host::children_time().unwrap_or_default());
    LoadSample { load: host::load(), processors: host::processors(), own }
}

/// Processor time of this process so far, user and system, all its threads.
pub fn own_time() -> Option<Duration> {
    own_processor_time().map(|time| time.total())
}

/// The same, of the program and of the kernel that works for it apart.
pub fn own_processor_time() -> Option<ProcessorTime> {
    host::own_processor_time()
}

/// Bytes of memory that are available without swapping.
pub fn available_memory() -> Option<u64> {
    host::available_memory()
}

/// Bytes that this user may still write to the file system of a folder.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    host::free_bytes(folder)
}

/// Returns true if the file system of a folder has no room for another file: neither a free block
/// for this user nor, where it counts them, a free inode. False if it does not tell.
pub fn is_full(folder: &Path) -> bool {
    host::is_full(folder).unwrap_or(false)
}

impl LoadSample {
    /// Returns the share of others since an earlier moment.
    pub fn since(&self, before: &Self) -> OthersLoad {
        let (Some(then), Some(now)) = (before.processors, self.processors) else {
            return OthersLoad::default();
        };
        let all = now.all.saturating_sub(then.all);
        if all == 0 {
            return OthersLoad::default();
        }
        let percent = |ticks: f64| (100.0 * ticks / all as f64).clamp(0.0, 100.0);
        let busy = now.busy.saturating_sub(then.busy) as f64;
        let own = self.own.zip(before.own).map(|(now, then)| now.saturating_sub(then));
        let others = own.map(|own| busy - own.as_secs_f64() * now.per_second as f64);
        OthersLoad {
            steal_percent: now
                .steal
                .zip(then.steal)
                .map(|(now, then)| percent(now.saturating_sub(then) as f64)),
            others_percent: others.map(percent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(busy: u64, steal: u64, all: u64, own_s: u64) -> LoadSample {
        let processors = Some(Processors { busy, steal: Some(steal), all, per_second: 100 });
        LoadSample { load: None, processors, own: Some(Duration::from_secs(own_s)) }
    }

    #[test]
    fn load_of_others_excludes_this_process() {
        let others = at(1600, 100, 3000, 4).since(&at(1000, 0, 1000, 1));
        assert_eq!(others.steal_percent, Some(5.0));
        assert_eq!(others.others_percent, Some(15.0));
        // Rounding of the two clocks makes no negative share.
        assert_eq!(at(100, 0, 1000, 2).since(&at(0, 0, 0, 0)).others_percent, Some(0.0));
        assert_eq!(at(1, 0, 1000, 2).since(&at(1, 0, 1000, 2)), OthersLoad::default());
        assert_eq!(at(1, 0, 1000, 2).since(&LoadSample::default()), OthersLoad::default());
    }

    #[test]
    fn this_machine_is_known() {
        let machine = machine();
        assert!(machine.system.is_some() && machine.cores.is_some(), "{machine:?}");
        let memory = machine.memory_bytes.unwrap();
        if let Some(available) = available_memory() {
            assert!(available <= memory, "{available} of {memory}");
        }
        assert!(free_bytes(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap() > 0);
        assert!(free_bytes(Path::new("/nonexistent/folder")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_helper_is_no_other() {
        let before = moment().own.unwrap();
        let own = own_time().unwrap();
        let works = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", works]).status().unwrap().success());
        let helper = (moment().own.unwrap() - before).saturating_sub(own_time().unwrap() - own);
        assert!(helper > Duration::from_millis(5), "{helper:?}");
    }

    #[test]
    fn work_takes_processor_time() {
        let (before, own) = (moment(), own_time().unwrap());
        let mut sum = 0_u64;
        while own_time().unwrap() - own < Duration::from_millis(50) {
            sum = (0..100_000).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
        }
        if let Some(others) = moment().since(&before).others_percent {
            assert!((0.0..=100.0).contains(&others), "{others}");
        }
    }
}
