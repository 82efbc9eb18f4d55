//! Limits that the system sets for one process.

use crate::host;

/// Returns the number of files that this process may have open at once. Requests
/// as many as its user may have: the usual 1,024 are less than 16 readers open at
/// a time.
pub fn open_files() -> usize {
    host::open_files()
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_some() {
        assert!(super::open_files() >= 64);
    }
}
