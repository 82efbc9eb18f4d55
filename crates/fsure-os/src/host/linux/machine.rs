//! The machine, from `/proc` and `/sys`.

use std::path::Path;

pub(crate) use crate::host::unix::machine::{
    children_time, free_bytes, is_full, own_processor_time,
};
use crate::machine::{Machine, Processors};

/// See [`crate::machine::machine`].
pub(crate) fn machine() -> Machine {
    Machine {
        system: Some(system()),
        processor: processor(&read("/proc/cpuinfo")),
        memory_bytes: memory("MemTotal:"),
        virtualization: virtualization(),
        cores: None,
    }
}

/// See [`crate::machine::backup_power`].
pub(crate) fn backup_power() -> Option<String> {
    super::power_supply::backup()
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn system() -> String {
    let name = rustix::system::uname();
    let kernel = [name.sysname(), name.release()].map(|text| text.to_string_lossy().into_owned());
    let release = read("/etc/os-release");
    let pretty = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    match pretty.map(|name| name.trim_matches(['"', '\''])) {
        Some(pretty) => format!("{}, {pretty}", kernel.join(" ")),
        None => kernel.join(" "),
    }
}

/// x86 says `model name`; ARM mostly says nothing but on boards, `Model`.
fn processor(cpuinfo: &str) -> Option<String> {
    let value = |key: &str| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    ["model name", "cpu model", "cpu", "Hardware", "Model"]
        .into_iter()
        .find_map(value)
        .filter(|name| !name.is_empty())
}

fn memory(key: &str) -> Option<u64> {
    super::memory_info::kib(&read("/proc/meminfo"), key)
}

/// See [`crate::machine::available_memory`].
pub(crate) fn available_memory() -> Option<u64> {
    memory("MemAvailable:")
}

/// The hypervisor by what it calls itself in the DMI tables; else that there is
/// one, by the flag that a processor sets under it.
fn virtualization() -> Option<String> {
    const MAKERS: [(&str, &str); 8] = [
        ("QEMU", "kvm"),
        ("KVM", "kvm"),
        ("Amazon EC2", "amazon"),
        ("Google", "google"),
        ("VMware", "vmware"),
        ("innotek", "virtualbox"),
        ("Xen", "xen"),
        ("Microsoft Corporation", "hyper-v"),
    ];
    let xen = read("/sys/hypervisor/type");
    if !xen.trim().is_empty() {
        return Some(xen.trim().to_owned());
    }
    let is_flagged = read("/proc/cpuinfo")
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    let dmi = ["sys_vendor", "product_name", "bios_vendor"]
        .map(|name| read(format!("/sys/class/dmi/id/{name}")))
        .concat();
    let maker = MAKERS.iter().find(|(sign, _)| dmi.contains(sign));
    match maker {
        // These make real machines, too.
        Some((_, "google" | "hyper-v" | "amazon")) if !is_flagged => None,
        Some((_, name)) => Some((*name).to_owned()),
        None => is_flagged.then(|| "virtual".to_owned()),
    }
}

/// The first of the three averages.
pub(crate) fn load() -> Option<f64> {
    read("/proc/loadavg").split_whitespace().next()?.parse().ok()
}

/// See [`Processors`].
pub(crate) fn processors() -> Option<Processors> {
    parse(&read("/proc/stat"), rustix::param::clock_ticks_per_second())
}

/// The line `cpu`: user, nice, system, idle, iowait, irq, softirq, steal; the
/// guests behind them are in `user` already (proc_stat(5)).
fn parse(stat: &str, per_second: u64) -> Option<Processors> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let all: u64 = ticks.iter().take(8).sum();
    let (idle, steal) = (ticks.get(3)? + ticks.get(4)?, *ticks.get(7)?);
    Some(Processors { busy: all - idle - steal, steal: Some(steal), all, per_second })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_processor_time() {
        let stat = "cpu  100 10 50 800 30 1 2 7 99 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let parsed = parse(stat, 100).unwrap();
        assert_eq!(parsed, Processors { busy: 163, steal: Some(7), all: 1000, per_second: 100 });
        assert_eq!(parse("cpu  100 10 50 800\n", 100), None);
    }

    #[test]
    fn names_of_processors() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: Some CPU\n").unwrap(), "Some CPU");
        assert_eq!(processor("Hardware\t: BCM2835\n").unwrap(), "BCM2835");
        assert_eq!(processor("model name\t:\n"), None);
    }
}
