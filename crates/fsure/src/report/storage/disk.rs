//! RAM disks in words and as JSON.

use fsure_os::ramdisk::Disk;
use serde::Serialize;

use super::json::line;
use super::number;
use fsure_core::json_path_and_bytes;
use fsure_core::{escape, units};
use fsure_ram::DestroyOutcome;

/// That one was made.
pub fn made(disk: &Disk) -> String {
    format!(
        "RAM disk {} of {} in {}. Its content exists only in memory.",
        disk.name,
        units::size(disk.bytes),
        place(disk)
    )
}

/// That one was taken away.
pub fn destroyed(done: &DestroyOutcome) -> String {
    format!("RAM disk {} is gone from {}.", done.disk.name, place(&done.disk))
}

/// Returns a sentence on the processes that keep the memory of the disk; `None` if there
/// are none.
pub fn kept(done: &DestroyOutcome) -> Option<String> {
    let by = done.kept_by.first()?;
    let more = number(done.kept_by.len() as u64, "process has", "processes have");
    Some(format!("{more} it mounted elsewhere, so its memory stays in use: {by}"))
}

/// All of them.
pub fn text(disks: &[Disk]) -> String {
    let row = |disk: &Disk| {
        let (used, bytes) = (units::size(disk.used), units::size(disk.bytes));
        format!("{:<16} {used:>10} of {bytes:<10} {}\n", disk.name, place(disk))
    };
    if disks.is_empty() {
        "There is no RAM disk that fsure made.\n".to_owned()
    } else {
        disks.iter().map(row).collect()
    }
}

fn place(disk: &Disk) -> String {
    escape(&fsure_os::path::bytes(&disk.place))
}

#[derive(Serialize)]
struct DiskLine<'a> {
    r#type: &'a str,
    name: &'a str,
    place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    place_bytes: Option<String>,
    bytes: u64,
    used: u64,
}

#[derive(Serialize)]
struct DiskSummary<'a> {
    r#type: &'a str,
    command: &'a str,
    disks: usize,
    exit_code: u8,
}

/// One for a program; `kind` is what became of it.
pub fn json_line(kind: &str, disk: &Disk) -> String {
    let (name, bytes, used) = (&*disk.name, disk.bytes, disk.used);
    let (place, place_bytes) = json_path_and_bytes(&fsure_os::path::bytes(&disk.place));
    line(&DiskLine { r#type: kind, name, place, place_bytes, bytes, used })
}

/// The last line.
pub fn summary_line(disks: usize) -> String {
    line(&DiskSummary { r#type: "summary", command: "ram disk list", disks, exit_code: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list() {
        let disk = Disk {
            name: "fast".to_owned(),
            place: "/srv/fast\n".into(),
            bytes: 2 << 30,
            used: 3 << 20,
            device: 7,
        };
        assert_eq!(
            text(std::slice::from_ref(&disk)),
            "fast                3.0 MiB of 2.0 GiB    /srv/fast\\n\n"
        );
        assert_eq!(text(&[]), "There is no RAM disk that fsure made.\n");
        assert_eq!(
            json_line("disk", &disk),
            "{\"type\":\"disk\",\"name\":\"fast\",\"place\":\"/srv/fast\\n\",\
             \"bytes\":2147483648,\"used\":3145728}"
        );
        let kept_by = vec!["process 7 (sh)".to_owned()];
        let words = kept(&DestroyOutcome { disk, kept_by }).unwrap();
        assert!(words.starts_with("1 process has it mounted elsewhere, so "), "{words}");
    }
}
