//! Counts the pages of a file in the page cache with `fincore` (util-linux), which
//! counts by other means (`mincore`) than fsure does; and brings a file into a wanted
//! cache state.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Advice, fadvise};

/// Pages of each file that are in the page cache.
///
/// # Panics
/// If `fincore` is not there: it belongs to util-linux, as `mount` does.
pub fn pages(files: &[PathBuf]) -> BTreeMap<PathBuf, u64> {
    let mut pages = BTreeMap::new();
    // Empty files cannot be asked about.
    let files: Vec<_> = files.iter().filter(|file| size(file) > 0).collect();
    for files in files.chunks(500) {
        let mut fincore = Command::new("fincore");
        let output = fincore.args(["--bytes", "--noheadings", "--raw", "--output", "PAGES"]);
        let output = output.args(files).output().expect("start fincore");
        assert!(output.status.success(), "fincore: {output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        let counts: Vec<u64> = text.lines().map(|n| n.trim().parse().expect("a count")).collect();
        assert_eq!(counts.len(), files.len(), "one line for each file: {text}");
        pages.extend(files.iter().map(|file| file.to_path_buf()).zip(counts));
    }
    pages
}

/// Writes a file to its medium and takes it out of the page cache, but not
/// what the system knows about it: names, inode and addresses.
pub fn cool(file: &Path) {
    let open = File::open(file).expect("open");
    open.sync_all().expect("write to the medium");
    fadvise(&open, 0, None, Advice::DontNeed).expect("take out of the page cache");
}

/// Reads a file through the page cache.
pub fn warm(file: &Path) {
    std::io::copy(&mut File::open(file).expect("open"), &mut std::io::sink()).expect("read");
}

/// Leaves the first half of a file in the page cache and nothing else of it.
pub fn half_warm(file: &Path) {
    cool(file);
    let open = File::open(file).expect("open");
    let half = std::num::NonZero::new(size(file) / 2);
    fadvise(&open, 0, half, Advice::WillNeed).expect("bring into the page cache");
    // That was asked for and not waited for; a read of the same waits.
    let half = half.map_or(0, std::num::NonZero::get);
    fadvise(&open, 0, None, Advice::Random).expect("no reading ahead");
    std::io::copy(&mut std::io::Read::take(&open, half), &mut std::io::sink()).expect("read");
}

/// Asserts what holds of files in memory, unless the system is short of it and
/// takes pages back meanwhile, from which no test can keep it: once in five
/// times is enough.
///
/// # Panics
/// If it never holds, with what was found the last time.
pub fn assert_undisturbed(mut check: impl FnMut() -> Result<(), String>) {
    let found = (0..5).try_fold(String::new(), |_, _| check().err().ok_or(()));
    if let Ok(found) = found {
        panic!("{found}");
    }
}

fn size(file: &Path) -> u64 {
    std::fs::metadata(file).expect("stat").len()
}
