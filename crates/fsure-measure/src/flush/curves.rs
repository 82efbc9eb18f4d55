//! Curves of the cost of a flush: many commits that share one, many threads that wait
//! for one, and much that it has to carry.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use fsure_os::durable_write::{Method, Writer};

use super::FlushOptions;
use super::operations::{self, Data, Overwrite};
use super::time_slice::{Operation, SliceResult, SliceStats};
use super::workspace::{FlushWorkspace, MeasuredOperation};
use crate::results::{Curve, NotRun, Point, ResultLine};
use crate::stats::Spread;
use fsure_core::{Result, units};

/// Commits that one flush makes durable.
const BATCHES: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Bytes that lie in the drive's cache before a flush.
const DIRTY: [u64; 6] = [0, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20];
/// The largest of them may take one part in this many of the free space.
const DIRTY_SHARE: u64 = 4;
/// Time that may always be taken for a point.
const POINT_TIME_MIN: Duration = Duration::from_secs(1);
/// Bytes written at once where there are many.
const WRITE_CHUNK_BYTES: usize = 1 << 20;

/// Returns the number of points of all curves.
pub(super) fn count(options: &FlushOptions) -> usize {
    let rates = match options.rate {
        Some(_) => 0,
        None => BATCHES.len() + 2 * powers(options.threads).count(),
    };
    rates + DIRTY.len()
}

/// Bytes that the files of one curve take at most, but for the one that is
/// measured by what there is space for.
pub(super) fn needed_bytes(threads: usize, size: usize) -> u64 {
    let files = BATCHES.len().max(powers(threads).sum());
    operations::needed_bytes(files, size)
}

/// Measures all curves, each point for `span`. Returns the median time of a flush
/// over the bytes before it, in microseconds.
pub(super) fn measure(site: &FlushWorkspace<'_>, span: Duration) -> Result<Vec<(u64, f64)>> {
    match site.options.rate {
        Some(_) => leave_out_rates(site),
        None => {
            batches(site, span)?;
            threads(site, span)?;
        }
    }
    slope(site, span)
}

/// Reports the curves whose figure is a rate, of which a set rate would say nothing.
fn leave_out_rates(site: &FlushWorkspace<'_>) {
    for name in ["commits per flush", "threads", "group commit"] {
        site.report(&ResultLine::NotRun(NotRun {
            name: name.to_owned(),
            target: site.target.clone(),
            why: "its figure is a rate, which '--rate' sets".to_owned(),
        }));
    }
}

/// 1, 2, 4, ... up to `most`.
fn powers(most: usize) -> impl Iterator<Item = usize> {
    (0..usize::BITS).map(|power| 1 << power).take_while(move |threads| *threads <= most.max(1))
}

fn batches(site: &FlushWorkspace<'_>, span: Duration) -> Result<()> {
    let flush = Method::strongest();
    let name = "commits per flush";
    let shape = Shape {
        names: [name, name, "commits/s"],
        value: SliceStats::rates,
        measured: format!("so many writes of {} bytes, then {}", site.options.size, flush.name()),
    };
    let made = |batch| Ok(Overwrite::new(site, flush, site.options.size)?.in_batches(batch));
    shape.points(site, &BATCHES, |batch| format!("{batch} commits per flush"), made, span)?;
    Ok(())
}

fn threads(site: &FlushWorkspace<'_>, span: Duration) -> Result<()> {
    let counts: Vec<u64> = powers(site.options.threads).map(|count| count as u64).collect();
    let flush = Method::strongest().name();
    let label = |count: u64| format!("{count} threads");
    let own = Shape {
        names: ["threads", "threads", "commits/s"],
        value: SliceStats::rates,
        measured: format!("each thread writes to a file of its own, then {flush}"),
    };
    own.points(site, &counts, label, |count| Threads::apart(site, count), span)?;
    let shared = Shape {
        names: ["group commit", "threads", "commits/s"],
        value: SliceStats::rates,
        measured: format!(
            "all threads write to one file; a thread that writes during a {flush} waits for the \
             next one, which serves all waiting threads"
        ),
    };
    shared.points(site, &counts, label, |count| Threads::together(site, count), span)?;
    Ok(())
}

fn slope(site: &FlushWorkspace<'_>, span: Duration) -> Result<Vec<(u64, f64)>> {
    let name = "flush after dirty bytes";
    let Some(method) = Method::past_cache() else {
        let why = "this system cannot write past the page cache without a flush";
        let why = io::Error::new(io::ErrorKind::Unsupported, why);
        site.report(&site.not_run(name, &why));
        return Ok(Vec::new());
    };
    let most = site.free_bytes()? / DIRTY_SHARE;
    let sizes: Vec<_> = DIRTY.into_iter().filter(|bytes| *bytes <= most).collect();
    let shape = Shape {
        names: [name, "bytes", "us"],
        value: SliceStats::medians_us,
        measured: "so many bytes written past the page cache, then the time of fdatasync alone"
            .to_owned(),
    };
    let made = |bytes| Flushing::new(site, method, bytes, span);
    let points = shape.points(site, &sizes, |bytes| format!("{name}: {bytes}"), made, span)?;
    Ok(points.into_iter().map(|point| (point.x as u64, point.y)).collect())
}

/// A curve that is to be measured.
struct Shape {
    /// Its own, and those of x and y.
    names: [&'static str; 3],
    value: fn(&SliceStats) -> Option<Spread>,
    measured: String,
}

impl Shape {
    /// Measures all points in turns, and reports those that there are.
    fn points<O: Operation>(
        &self,
        site: &FlushWorkspace<'_>,
        at: &[u64],
        label: impl Fn(u64) -> String,
        make: impl Fn(u64) -> io::Result<O>,
        span: Duration,
    ) -> Result<Vec<Point>> {
        let mut contenders = Vec::new();
        for x in at {
            // A point that is refused is refused for larger ones, too.
            let Some(made) = site.or_not_run(&label(*x), make(*x))? else { break };
            contenders.push(MeasuredOperation::new(label(*x), made));
        }
        let ended = site.measure(&mut contenders, span);
        let x_of = |name: &str| at.iter().find(|x| label(**x) == name);
        let points = contenders.into_iter().filter_map(|one| {
            let (x, tally) = (*x_of(&one.name)? as f64, one.tally);
            let Spread { median, low, high, .. } = (self.value)(&tally)?;
            Some(Point { x, y: median, low, high, flushes_per_op: tally.flushes() })
        });
        let points: Vec<_> = points.collect();
        if !points.is_empty() {
            self.report(site, points.clone());
        }
        ended?;
        site.clear()?;
        Ok(points)
    }

    fn report(&self, site: &FlushWorkspace<'_>, points: Vec<Point>) {
        let [name, x, y] = self.names.map(str::to_owned);
        let (target, measured) = (site.target.clone(), self.measured.clone());
        site.report(&ResultLine::Curve(Curve { name, target, x, y, points, measured }));
    }
}

/// A flush after so many bytes that the drive already has.
struct Flushing {
    writer: Writer,
    data: Data,
    bytes: u64,
}

impl Flushing {
    /// Refused if so much takes longer to write than there is time for all.
    fn new(
        site: &FlushWorkspace<'_>,
        method: Method,
        bytes: u64,
        span: Duration,
    ) -> io::Result<Self> {
        let (mut data, begun) = (Data::new()?, Instant::now());
        let writer = site.filled(method, data.next(WRITE_CHUNK_BYTES), bytes)?;
        if begun.elapsed() > span.max(POINT_TIME_MIN) {
            let took = begun.elapsed().as_secs_f64();
            let why = format!("{} take {took:.1} s to write", units::size(bytes));
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(Self { writer, data, bytes })
    }
}

impl Operation for Flushing {
    fn operate(&mut self) -> io::Result<Option<SliceResult>> {
        let mut at = 0;
        while at < self.bytes {
            let piece = (self.bytes - at).min(WRITE_CHUNK_BYTES as u64);
            self.writer.write(self.data.next(piece as usize), at)?;
            at += piece;
        }
        let begun = Instant::now();
        self.writer.flush()?;
        Ok(Some(SliceResult::since(begun)))
    }

    fn flush_to_medium(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Threads that commit at the same time, for a burst. None leaves anything
/// behind that is not on the medium.
struct Threads<'a>(Vec<Box<dyn FnMut() -> io::Result<()> + Send + 'a>>);

impl<'a> Threads<'a> {
    fn apart(site: &FlushWorkspace<'_>, count: u64) -> io::Result<Self> {
        let hand = |_| {
            let mut file = Overwrite::new(site, Method::strongest(), site.options.size)?;
            let commit: Box<dyn FnMut() -> _ + Send> = Box::new(move || file.operate().map(|_| ()));
            Ok(commit)
        };
        (0..count).map(hand).collect::<io::Result<_>>().map(Self)
    }

    fn together(site: &FlushWorkspace<'_>, count: u64) -> io::Result<Self> {
        let size = site.options.size;
        let mut data = Data::new()?;
        let file =
            site.filled(Method::strongest(), data.next(WRITE_CHUNK_BYTES), size as u64 * count)?;
        let group = Arc::new(CommitGroup::new(file));
        let hand = |place: u64| {
            let (group, mut data) = (Arc::clone(&group), Data::new()?);
            let commit: Box<dyn FnMut() -> _ + Send> =
                Box::new(move || group.commit(data.next(size), place * size as u64));
            Ok(commit)
        };
        (0..count).map(hand).collect::<io::Result<_>>().map(Self)
    }
}

impl Operation for Threads<'_> {
    fn operate(&mut self) -> io::Result<Option<SliceResult>> {
        /// Long enough that starting the threads does not show.
        const BURST: Duration = Duration::from_millis(20);
        let begun = Instant::now();
        let commits = std::thread::scope(|scope| {
            let spawned = self.0.iter_mut().map(|commit| {
                scope.spawn(move || {
                    for commits in 1.. {
                        commit()?;
                        if begun.elapsed() >= BURST {
                            return Ok(commits);
                        }
                    }
                    Ok(0)
                })
            });
            let threads: Vec<_> = spawned.collect();
            let join = |thread: ScopedJoinHandle<'_, io::Result<u64>>| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
            };
            threads.into_iter().map(join).sum::<io::Result<u64>>()
        })?;
        Ok(Some(SliceResult { took: begun.elapsed(), commits }))
    }

    fn flush_to_medium(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One file, and one flush at a time for all threads that have written meanwhile.
struct CommitGroup {
    writer: Writer,
    state: Mutex<GroupCommitState>,
    is_over: Condvar,
}

#[derive(Default)]
struct GroupCommitState {
    /// Writes made.
    written: u64,
    /// Number of them that a flush is known to have carried.
    durable: u64,
    is_flushing: bool,
}

impl CommitGroup {
    fn new(writer: Writer) -> Self {
        Self { writer, state: Mutex::default(), is_over: Condvar::new() }
    }

    /// Writes, and waits for a flush that began afterwards.
    fn commit(&self, data: &[u8], at: u64) -> io::Result<()> {
        self.writer.write(data, at)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.written += 1;
        let mine = state.written;
        while state.durable < mine {
            if state.is_flushing {
                state = self.is_over.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_flushing = true;
            let carried = state.written;
            drop(state);
            let flushed = self.writer.flush();
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_flushing = false;
            self.is_over.notify_all();
            flushed?;
            state.durable = state.durable.max(carried);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_up_in_powers_of_two_and_no_further() {
        for (most, counts) in [(0, &[1][..]), (1, &[1]), (3, &[1, 2]), (8, &[1, 2, 4, 8])] {
            assert_eq!(powers(most).collect::<Vec<_>>(), counts);
        }
    }

    #[test]
    fn a_group_commit_returns_only_after_a_flush_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let writer = Writer::create(&folder.path().join("file"), Method::strongest()).unwrap();
        let group = &CommitGroup::new(writer);
        std::thread::scope(|scope| {
            for place in 0..4 {
                scope.spawn(move || {
                    for _ in 0..50 {
                        group.commit(&[1; 512], place * 512).unwrap();
                        let state = group.state.lock().unwrap();
                        assert!(state.durable <= state.written);
                    }
                });
            }
        });
        let state = group.state.lock().unwrap();
        assert_eq!((state.written, state.durable, state.is_flushing), (200, 200, false));
    }
}
