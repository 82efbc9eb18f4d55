//! The patterns of writes of some databases, and the mark that some of them give for
//! a disk.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fsure_os::durable_write::{self, Method, Writer};

use super::operations::{Append, Data, Overwrite};
use super::time_slice::{Operation, SliceResult, SliceStats};
use super::workspace::{FlushWorkspace, MeasuredOperation};
use crate::flush_verdict::thresholds::ETCD_P99_US;
use crate::results::{Profile, ResultLine};
use fsure_core::Result;

/// A database's way of committing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// etcd's log: small appends. It gives a mark.
    Etcd,
    /// PostgreSQL's log: pages written over.
    Postgres,
    /// SQLite, with a write-ahead log and with a rollback journal.
    Sqlite,
}

/// The mean size of an etcd log entry, after IBM's recipe for fio that etcd's
/// documentation points to: `--rw=write --ioengine=sync --fdatasync=1 --bs=2300`.
const ETCD_ENTRY: usize = 2_300;
/// A page and a segment of PostgreSQL's log (`XLOG_BLCKSZ`, `wal_segment_size`).
const POSTGRES_PAGE: usize = 8 << 10;
const POSTGRES_SEGMENT: u64 = 16 << 20;
/// A page of SQLite's, and the header of a frame of its log (its file format, 4.1).
const SQLITE_PAGE: usize = 4 << 10;
const SQLITE_FRAMES: [usize; 4] = [24, SQLITE_PAGE, 24, SQLITE_PAGE];

/// Returns the number of operations of the patterns.
pub(super) fn count(patterns: &[Pattern]) -> usize {
    patterns.iter().map(|pattern| if *pattern == Pattern::Sqlite { 2 } else { 1 }).sum()
}

/// Measures the patterns that were requested.
pub(super) fn measure(site: &FlushWorkspace<'_>, span: Duration) -> Result<()> {
    for pattern in &site.options.profiles {
        match pattern {
            Pattern::Etcd => etcd(site, span)?,
            Pattern::Postgres => postgres(site, span)?,
            Pattern::Sqlite => sqlite(site, span)?,
        }
    }
    Ok(())
}

fn etcd(site: &FlushWorkspace<'_>, span: Duration) -> Result<()> {
    let flush = Method::strongest();
    let made = Append::new(site, flush, &[ETCD_ENTRY]).map(Append::timing_flushes);
    let Some(tally) = alone(site, "etcd", made, span)? else { return Ok(()) };
    let p99_us = tally.latency.quantile_us(0.99);
    let words = format!(
        "appends of {ETCD_ENTRY} bytes, each with {}: 99 % of the flushes took at most {:.1} ms; \
         etcd asks for less than 10 ms (etcd.io, FAQ)",
        flush.name(),
        p99_us / 1e3
    );
    let figures = figures("", &tally);
    report(site, "etcd", Some(p99_us < ETCD_P99_US), words, figures);
    Ok(())
}

fn postgres(site: &FlushWorkspace<'_>, span: Duration) -> Result<()> {
    let flush = Method::strongest();
    site.need(POSTGRES_SEGMENT)?;
    let made = Overwrite::of_region(site, flush, POSTGRES_PAGE, POSTGRES_SEGMENT);
    let Some(tally) = alone(site, "postgres", made, span)? else { return Ok(()) };
    let words = format!(
        "pages of 8 KiB of a log segment of 16 MiB written over, each with {}, as pg_test_fsync \
         does: {:.0} commits/s of one session that waits for each{}",
        flush.name(),
        tally.per_second(),
        held(site)
    );
    let figures = figures("", &tally);
    report(site, "postgres", None, words, figures);
    Ok(())
}

fn sqlite(site: &FlushWorkspace<'_>, span: Duration) -> Result<()> {
    let flush = Method::strongest();
    let log = Append::new(site, flush, &SQLITE_FRAMES);
    let Some(log) = alone(site, "sqlite, write-ahead log", log, span)? else { return Ok(()) };
    let journal = Rollback::new(site, flush);
    let journal = alone(site, "sqlite, rollback journal", journal, span)?;
    let in_journal = journal.as_ref().map_or_else(
        || "no rollback journal, because this system cannot flush folders".to_owned(),
        |tally| format!("{:.0} commits/s with a rollback journal", tally.per_second()),
    );
    let words = format!(
        "transactions over two pages with synchronous=FULL, as they are seen with strace: {:.0} \
         commits/s with a write-ahead log (two frames and one {}), {in_journal} (four \
         flushes){}",
        log.per_second(),
        flush.name(),
        held(site)
    );
    let mut all = figures("wal ", &log);
    all.extend(journal.iter().flat_map(|tally| figures("rollback ", tally)));
    report(site, "sqlite", None, words, all);
    Ok(())
}

/// Says that a rate is not what the storage gives, but what it was held at.
fn held(site: &FlushWorkspace<'_>) -> String {
    site.options.rate.map_or(String::new(), |rate| format!(", held at {rate}/s by '--rate'"))
}

/// Measures one operation by itself.
fn alone<O: Operation>(
    site: &FlushWorkspace<'_>,
    name: &str,
    made: io::Result<O>,
    span: Duration,
) -> Result<Option<SliceStats>> {
    let Some(made) = site.or_not_run(name, made)? else { return Ok(None) };
    let mut contenders = vec![MeasuredOperation::with_tail(site, name, made)];
    site.measure(&mut contenders, span)?;
    Ok(contenders.pop().map(|contender| contender.tally))
}

fn figures(prefix: &str, tally: &SliceStats) -> Vec<(String, f64)> {
    let latency = &tally.latency;
    let mut figures = vec![
        ("commits/s", tally.per_second()),
        ("p50 us", latency.quantile_us(0.5)),
        ("p99 us", latency.quantile_us(0.99)),
    ];
    figures.extend(tally.flushes().map(|flushes| ("flushes per commit", flushes)));
    figures.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)).collect()
}

fn report(
    site: &FlushWorkspace<'_>,
    name: &str,
    passed: Option<bool>,
    words: String,
    figures: Vec<(String, f64)>,
) {
    let (name, target) = (name.to_owned(), site.target.clone());
    site.report(&ResultLine::Profile(Profile { name, target, passed, words, figures }));
}

/// SQLite's commit with a rollback journal, for two pages: the old ones into a
/// new file, flushed with its name; its header, flushed; the new pages, flushed;
/// and the journal's end, which is the commit.
struct Rollback<'a> {
    site: &'a FlushWorkspace<'a>,
    database: Writer,
    data: Data,
    flush: Method,
    journal: PathBuf,
}

impl<'a> Rollback<'a> {
    fn new(site: &'a FlushWorkspace<'a>, flush: Method) -> io::Result<Self> {
        let mut data = Data::new()?;
        site.flush_names()?;
        let database = site.filled(flush, data.next(SQLITE_PAGE), 16 * SQLITE_PAGE as u64)?;
        Ok(Self { site, database, data, flush, journal: site.path() })
    }
}

impl Operation for Rollback<'_> {
    fn operate(&mut self) -> io::Result<Option<SliceResult>> {
        const HEADER: usize = 512;
        // Its number in the file, and its sum behind it.
        const RECORD: usize = SQLITE_PAGE + 8;
        let begun = Instant::now();
        let journal = Writer::create(&self.journal, self.flush)?;
        journal.write(self.data.next(HEADER), 0)?;
        journal.write(self.data.next(RECORD), HEADER as u64)?;
        journal.commit(self.data.next(RECORD), (HEADER + RECORD) as u64)?;
        self.site.flush_names()?;
        journal.commit(self.data.next(12), 0)?;
        self.database.write(self.data.next(SQLITE_PAGE), 0)?;
        self.database.commit(self.data.next(SQLITE_PAGE), SQLITE_PAGE as u64)?;
        durable_write::remove(&self.journal)?;
        Ok(Some(SliceResult::since(begun)))
    }

    fn flush_to_medium(&mut self) -> io::Result<()> {
        self.journal = self.site.path();
        self.site.flush_names()
    }
}
