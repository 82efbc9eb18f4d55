//! The count of files that are gone, which tells a clean-up from a disk that is not there.

/// Recorded files that are gone, of all that were recorded when the run began.
pub(super) struct MissingFiles {
    at_start: u64,
    missing: u64,
    /// Files that are gone and not under another name by their inode, once all
    /// names are known.
    gone: Option<u64>,
    /// Files that are gone and were seen under another name before the run.
    elsewhere: u64,
}

impl MissingFiles {
    pub(super) fn new(at_start: u64) -> Self {
        Self { at_start, missing: 0, gone: None, elsewhere: 0 }
    }

    /// Returns the number of files recorded when the run began.
    pub(super) fn at_start(&self) -> u64 {
        self.at_start
    }

    pub(super) fn missing(&self) -> u64 {
        self.missing
    }

    pub(super) fn gone(&self) -> Option<u64> {
        self.gone
    }

    pub(super) fn set_gone(&mut self, gone: u64) {
        self.gone = Some(gone);
    }

    pub(super) fn set_elsewhere(&mut self, elsewhere: u64) {
        self.elsewhere = elsewhere;
    }

    /// Counts a file that is missing. Returns true if more than half of the files are now.
    /// `is_scrub` is true in a run that reports as missing what another reports as moved.
    pub(super) fn add(&mut self, is_scrub: bool) -> bool {
        self.missing += 1;
        let elsewhere = if is_scrub { self.elsewhere } else { 0 };
        let rest = self.at_start.saturating_sub(elsewhere);
        self.missing.saturating_sub(elsewhere).saturating_mul(2) > rest
    }

    /// Returns true if so many missing files are more than half of all.
    pub(super) fn is_most(&self, missing: u64) -> bool {
        missing.saturating_mul(2) > self.at_start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_files_are_not_most_and_one_more_is() {
        let mut files = MissingFiles::new(4);
        assert_eq!([1, 2].map(|_| files.add(false)), [false, false]);
        assert!(files.add(false));
        assert_eq!((files.missing(), files.is_most(2), files.is_most(3)), (3, false, true));
    }

    #[test]
    fn a_scrub_takes_off_what_is_elsewhere() {
        let mut files = MissingFiles::new(4);
        files.set_elsewhere(2);
        assert_eq!([1, 2, 3].map(|_| files.add(true)), [false, false, false]);
        assert!(files.add(true), "both of the two that are not elsewhere");
    }
}
