//! The store as its recorder has it: one at a time, appended to durably, and never larger than
//! agreed. When it is full, the older half of its intervals is merged two by two; what is older
//! than agreed is left out.

use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsure_core::{Error, IoContext as _, Result, shell_quoted};
use fsure_os::append_file::AppendFile;
use fsure_os::lock::{Attempt, Lock, try_lock};
use fsure_os::path as os_path;
use fsure_os::user_file::{self, AtomicFile};

use super::interval::RecordedInterval;
use super::store_lines::{INTERVALS_FILE, StoreLine, StoreLines, intervals_file, start_line};
use super::stored_interval::stored_line;

/// The lock, in the folder of the store.
pub(super) const LOCK_FILE: &str = "lock";

/// Time for which intervals that are too old are kept together, so that the file is not
/// rewritten for each of them.
const EXPIRY_DELAY: Duration = Duration::from_secs(24 * 3600);

/// Bounds of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Age at which an interval is dropped, some hours later at most.
    pub keep: Duration,
    /// Bytes of its file, at most.
    pub size_max: u64,
}

/// A store that is written to.
pub(super) struct Store {
    folder: PathBuf,
    file: PathBuf,
    limits: StoreLimits,
    growing: AppendFile,
    /// Bytes of its lines that are whole.
    length: u64,
    /// End of the oldest interval; `None` if there is none.
    oldest_ns: Option<i64>,
    lock: Lock,
}

impl Store {
    /// Opens a store, which is made if there is none, and cuts off a last line that a kill left
    /// without its end. Returns also the number of lines that are damaged.
    pub(super) fn open(folder: &Path, limits: StoreLimits, now_ns: i64) -> Result<(Self, u64)> {
        make_folders(folder).context("make", folder)?;
        let lock = lock(folder)?;
        // Drafts of a recorder that was killed while it made room.
        let draft = format!("{INTERVALS_FILE}.making-");
        let is_draft = |name: &[u8]| name.starts_with(draft.as_bytes());
        user_file::remove_files(folder, &is_draft).context("clean", folder)?;
        let file = intervals_file(folder);
        let growing = AppendFile::open_private(&file).context("open", &file)?;
        let (folder, length, oldest_ns) = (folder.to_owned(), 0, None);
        let mut store = Self { folder, file, limits, growing, length, oldest_ns, lock };
        let damaged = store.recover(now_ns).context("read", &store.file)?;
        Ok((store, damaged))
    }

    /// Reads what is there, cuts off what is not whole, and begins an empty file.
    fn recover(&mut self, now_ns: i64) -> io::Result<u64> {
        let (mut damaged, mut oldest_ns) = (0, None);
        let mut lines = StoreLines::new(user_file::open_own(&self.file)?);
        while let Some(line) = lines.next_line()? {
            match line {
                StoreLine::Interval(one, _) => {
                    oldest_ns = Some(oldest_ns.unwrap_or(i64::MAX).min(one.ended_ns));
                }
                StoreLine::Damaged => damaged += 1,
            }
        }
        (self.length, self.oldest_ns) = (lines.whole_bytes, oldest_ns);
        if self.growing.length()? > self.length {
            self.growing.shorten(self.length)?;
        }
        if self.length == 0 {
            // A full disk must not end the recording: the line comes with the first interval.
            let _ = self.write(start_line(now_ns).as_bytes());
        }
        Ok(damaged)
    }

    /// The file that has the intervals.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Returns false if the file was taken away.
    pub(super) fn is_there(&self) -> bool {
        os_path::exists(&self.file)
    }

    /// Appends an interval durably. After an error the store is as it was before.
    pub(super) fn append(&mut self, interval: &RecordedInterval, now_ns: i64) -> io::Result<()> {
        let mut line = stored_line(interval) + "\n";
        if self.length == 0 {
            line.insert_str(0, &start_line(now_ns));
        }
        if self.has_expired(now_ns) {
            // Where this fails, it is done the next time: the file is not too large for it.
            let _ = self.rewrite(false, now_ns);
        }
        let size_max = self.limits.size_max.saturating_sub(line.len() as u64);
        if self.length > size_max {
            self.make_room(size_max, now_ns)?;
        }
        self.write(line.as_bytes())?;
        self.oldest_ns = Some(self.oldest_ns.unwrap_or(i64::MAX).min(interval.ended_ns));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.growing.append(bytes).and_then(|()| self.growing.sync());
        match written {
            Ok(()) => self.length += bytes.len() as u64,
            // Half a line would take the next one with it.
            Err(_) => self.growing.shorten(self.length)?,
        }
        written
    }

    fn kept_from_ns(&self, now_ns: i64) -> i64 {
        now_ns.saturating_sub(i64::try_from(self.limits.keep.as_nanos()).unwrap_or(i64::MAX))
    }

    fn has_expired(&self, now_ns: i64) -> bool {
        let delay = EXPIRY_DELAY.min(self.limits.keep / 10);
        let delay_ns = i64::try_from(delay.as_nanos()).unwrap_or(i64::MAX);
        let limit = self.kept_from_ns(now_ns).saturating_sub(delay_ns);
        self.oldest_ns.is_some_and(|oldest| oldest < limit)
    }

    /// Merges older intervals until the file has no more than three quarters of `size_max` bytes,
    /// so that this is seldom done.
    fn make_room(&mut self, size_max: u64, now_ns: i64) -> io::Result<()> {
        while self.rewrite(true, now_ns)? > 0 && self.length > size_max / 4 * 3 {}
        Ok(())
    }

    /// Writes the file anew without what is too old, the older half merged two by two if
    /// `is_to_merge`. Returns the number of intervals that were merged into others.
    fn rewrite(&mut self, is_to_merge: bool, now_ns: i64) -> io::Result<u64> {
        let kept_from_ns = self.kept_from_ns(now_ns);
        let mut count = 0;
        self.each_kept(kept_from_ns, &mut |_, _| {
            count += 1;
            Ok(())
        })?;
        let to_merge = if is_to_merge { count / 2 } else { 0 };
        let mut writer = BufWriter::new(AtomicFile::create(&self.file)?);
        writer.write_all(start_line(now_ns).as_bytes())?;
        let (mut place, mut merged, mut oldest_ns) = (0_u64, 0, None::<i64>);
        let mut first: Option<RecordedInterval> = None;
        self.each_kept(kept_from_ns, &mut |interval, bytes| {
            oldest_ns = Some(oldest_ns.unwrap_or(i64::MAX).min(interval.ended_ns));
            place += 1;
            match first.take() {
                None if place < to_merge => first = Some(interval),
                None => writer.write_all(bytes)?,
                Some(mut both) => {
                    both.merge(interval);
                    merged += 1;
                    writeln!(writer, "{}", stored_line(&both))?;
                }
            }
            Ok(())
        })?;
        writer.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
        self.growing = AppendFile::open_private(&self.file)?;
        self.length = self.growing.length()?;
        self.oldest_ns = oldest_ns;
        Ok(merged)
    }

    fn each_kept(
        &self,
        kept_from_ns: i64,
        take: &mut dyn FnMut(RecordedInterval, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut lines = StoreLines::new(user_file::open_own(&self.file)?);
        while let Some(line) = lines.next_line()? {
            match line {
                StoreLine::Interval(one, bytes) if one.ended_ns >= kept_from_ns => {
                    take(*one, &bytes)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the store anew where it was taken away.
    pub(super) fn restore(&mut self, now_ns: i64) -> Result<()> {
        make_folders(&self.folder).context("make", &self.folder)?;
        if !os_path::exists(&self.folder.join(LOCK_FILE)) {
            self.lock = lock(&self.folder)?;
        }
        self.growing = AppendFile::open_private(&self.file).context("open", &self.file)?;
        self.recover(now_ns).context("read", &self.file).map(drop)
    }
}

/// Makes the folder of a store, which only its owner can read, and all above it.
fn make_folders(folder: &Path) -> io::Result<()> {
    let above = folder.ancestors().skip(1);
    let missing: Vec<_> = above
        .take_while(|above| !above.as_os_str().is_empty() && !os_path::exists(above))
        .collect();
    for above in missing.into_iter().rev() {
        os_path::make_folder(above)?;
    }
    os_path::make_private_folder(folder)
}

fn lock(folder: &Path) -> Result<Lock> {
    let path = folder.join(LOCK_FILE);
    match try_lock(&path).context("lock", &path)? {
        Attempt::Locked(lock) => Ok(lock),
        Attempt::HeldBy(holder) => Err(Error::FailedPrecondition {
            message: format!("another fsure ({holder}) records into {} already", folder.display()),
            hint: Some(format!(
                "'fsure hot --history --store {}' shows what it has recorded; a second recorder \
                 needs a store of its own: 'sudo fsure hot record --store DIR'",
                shell_quoted(folder)
            )),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_os::io_trace::IoCounts;

    const MINUTE_NS: i64 = 60_000_000_000;

    const LIMITS: StoreLimits =
        StoreLimits { keep: Duration::from_secs(30 * 86_400), size_max: 16 << 10 };

    fn interval(minute: i64) -> RecordedInterval {
        let counts = IoCounts { writes: 1, bytes_written: 4096, ..IoCounts::default() };
        RecordedInterval {
            began_ns: minute * MINUTE_NS,
            ended_ns: (minute + 1) * MINUTE_NS,
            seconds: 60.0,
            intervals: 1,
            programs: [("program".to_owned(), counts)].into(),
            ..RecordedInterval::default()
        }
    }

    fn stored(folder: &Path) -> Vec<RecordedInterval> {
        let mut lines = StoreLines::new(user_file::open_own(&intervals_file(folder)).unwrap());
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            match line {
                StoreLine::Interval(one, _) => all.push(*one),
                StoreLine::Damaged => panic!("a damaged line"),
            }
        }
        all
    }

    #[test]
    fn a_full_store_merges_what_is_old_and_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(folder.path(), LIMITS, 0).unwrap();
        for minute in 0..600 {
            store.append(&interval(minute), minute * MINUTE_NS).unwrap();
            assert!(os_path::length(store.file()).unwrap() <= LIMITS.size_max, "{minute}");
        }
        let all = stored(folder.path());
        assert!(all.len() < 200, "{}", all.len());
        assert!(all.windows(2).all(|two| two[0].ended_ns == two[1].began_ns), "in their order");
        assert!(all.windows(2).all(|two| two[0].intervals >= two[1].intervals), "old is coarse");
        assert_eq!(all.iter().map(|one| one.intervals).sum::<u64>(), 600);
        let writes = |one: &RecordedInterval| one.programs["program"].writes;
        assert_eq!(all.iter().map(writes).sum::<u64>(), 600);
        assert_eq!(user_file::names(folder.path()).unwrap(), [INTERVALS_FILE.as_bytes(), b"lock"]);
    }

    #[test]
    fn what_is_too_old_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let limits = StoreLimits { keep: Duration::from_secs(3600), ..LIMITS };
        let (mut store, _) = Store::open(folder.path(), limits, 0).unwrap();
        for minute in 0..200 {
            store.append(&interval(minute), (minute + 1) * MINUTE_NS).unwrap();
        }
        let all = stored(folder.path());
        assert!((60..=67).contains(&all.len()), "{}", all.len());
        assert_eq!(all.last().unwrap().began_ns, 199 * MINUTE_NS);
    }

    #[test]
    fn what_a_kill_left_is_cut_off_and_the_rest_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(folder.path(), LIMITS, 0).unwrap();
        store.append(&interval(0), 0).unwrap();
        drop(store);
        let file = intervals_file(folder.path());
        let mut text = std::fs::read_to_string(&file).unwrap();
        text += "damage in the middle\n";
        text += &stored_line(&interval(1))[..50];
        std::fs::write(&file, text).unwrap();
        std::fs::write(folder.path().join("intervals.jsonl.making-01234567"), "draft").unwrap();
        let (mut store, damaged) = Store::open(folder.path(), LIMITS, 0).unwrap();
        assert_eq!(damaged, 1);
        store.append(&interval(2), 0).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.lines().last().unwrap().starts_with("{\"type\":\"interval\""), "{text}");
        assert_eq!(user_file::names(folder.path()).unwrap().len(), 2, "the draft is gone");
    }

    #[test]
    fn one_recorder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(folder.path(), LIMITS, 0).unwrap();
        let error = Store::open(folder.path(), LIMITS, 0).err().expect("it is in use");
        assert!(error.to_string().contains("already"), "{error}");
        drop(store);
        assert!(Store::open(folder.path(), LIMITS, 0).is_ok());
    }

    #[test]
    fn a_store_that_is_taken_away_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/store");
        let (mut store, _) = Store::open(&path, LIMITS, 0).unwrap();
        assert!(store.is_there());
        std::fs::remove_dir_all(&path).unwrap();
        assert!(!store.is_there());
        store.restore(0).unwrap();
        store.append(&interval(0), 0).unwrap();
        assert_eq!(stored(&path).len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_reads_it_until_that_is_changed() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let (mut store, _) = Store::open(&path, LIMITS, 0).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(store.file())), (0o700, 0o600));
        let shared = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(store.file(), shared).unwrap();
        store.append(&interval(0), 0).unwrap();
        store.rewrite(false, 0).unwrap();
        assert_eq!(mode(store.file()), 0o640);
    }
}
