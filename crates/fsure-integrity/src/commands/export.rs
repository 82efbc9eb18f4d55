//! `export`: the record as a list that other programs read. What the list
//! needs and the record lacks is computed first, in one pass over the files
//! that lack it, and recorded only where their content is the recorded one.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use fsure_os::Kind;
use fsure_os::output::Output;
use fsure_os::path as os_path;
use fsure_os::root_dir::{Root, is_gone};
use fsure_os::user_file::{self, AtomicFile};
use jiff::Timestamp;
use sha2::{Digest as _, Sha512};

use super::open_root::require_record;
use super::snapshot::warn_of_known_damage;
use super::{Options, UpdateOptions, update};
use crate::catalog::{Audit, Catalog, OWN_FOLDER, PageStart, RootLocation, StoredRow, untrusted};
use crate::manifest::{
    ListedMtime, ManifestEntry, ManifestFormat, ManifestHeader, ManifestItem, ManifestSource,
    ProblemKind, bag_files, mhl_chain, writer,
};
use crate::model::{
    CurrentFile, Finding, Outcome, Progress, Record, ScanMonitor, Scopes, StopReason, Verdict,
    VerdictCounts,
};
use fsure_core::{Error, ExitCode, IoContext as _, Monitor, RelPath, Result};
use fsure_core::{
    count, is_reader_gone, may_replace, open_output, unless_reader_left, unless_stopped,
};

/// The destination of a list.
pub enum ExportTarget<'a> {
    /// A stream. A form of several files writes only its manifest to it.
    Stream(&'a mut dyn Write),
    /// A file, which is replaced as a whole, or a stream; a folder for a form that is
    /// several files.
    Path(&'a Path),
}

/// The result of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Files in the list.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files whose name the form cannot express.
    pub not_expressed: u64,
    /// Files without the digest that the form needs.
    pub without_digest: u64,
    /// Tombstones, which are left out.
    pub gone: u64,
    /// Listed paths of which nothing is recorded.
    pub not_recorded: u64,
    /// Recorded files that have another size or date by now: a list has what was recorded.
    pub changed: u64,
    /// Recorded files that are not there.
    pub absent: u64,
    /// Rows that fail their own seal.
    pub bad: u64,
    /// True if the list was written into the recorded folder, where it is a file as any other.
    pub is_in_root: bool,
    /// Files in the list that are known to be damaged, by the verdict of the run that
    /// last read them: the list has what was recorded of them.
    pub known_damage: VerdictCounts,
    /// The exit code of the pass that computed digests.
    pub completing: ExitCode,
}

impl Exported {
    /// The exit code this deserves.
    pub fn exit_code(&self) -> ExitCode {
        let own = match self {
            Self { bad: 1.., .. } => ExitCode::RecordUntrusted,
            Self { not_expressed, without_digest, not_recorded, .. }
                if not_expressed + without_digest + not_recorded > 0 =>
            {
                ExitCode::Incomplete
            }
            _ => ExitCode::Clean,
        };
        self.completing.worse(own).worse(self.known_damage.known_damage_code())
    }
}

/// Writes the record of a place as a list, with names relative to the requested
/// path.
pub fn export(
    place: &RootLocation,
    format: ManifestFormat,
    options: &Options,
    target: ExportTarget<'_>,
    monitor: &dyn ScanMonitor,
) -> Result<Exported> {
    require_record(place)?;
    refuse_partial_bag(place, format)?;
    if let ExportTarget::Path(path) = target
        && !format.is_folder()
    {
        may_replace(path, "a list", &mut |file| is_list(file, monitor))?;
    }
    let completing = complete(place, format, options, monitor)?;
    if let Some(code) = monitor.stop_requested() {
        return Err(Error::Interrupted(code));
    }
    let catalog = &mut Catalog::open(&place.catalog, None)?;
    let root = Root::open(&place.root).ok();
    let Completion { code, reasons } = completing;
    let mut export = Export { place, root, format, monitor, reasons, exported: nothing(code) };
    let about = about();
    let is_in_root = matches!(target, ExportTarget::Path(path) if is_in_root(place, path));
    match target {
        ExportTarget::Stream(out) => {
            let written = export.list(catalog, &about, out, Path::new("standard output"));
            unless_reader_left(written, monitor)?;
        }
        ExportTarget::Path(path) if format.is_folder() => {
            export.folder(catalog, &about, &place.root, path)?;
        }
        ExportTarget::Path(path) => {
            let output = open_output(path, monitor)?;
            let written = export.output(catalog, &about, output, path);
            match unless_stopped(written, monitor) {
                Err(error) if is_reader_gone(&error) => {
                    return Err(cut_short(&export, catalog, path));
                }
                written => written?,
            }
        }
    }
    let mut exported = export.exported;
    exported.is_in_root = is_in_root;
    warn_of_changes(place, &exported, monitor);
    warn_of_known_damage(place, &exported.known_damage, monitor);
    let faults = Audit::unless_shown(catalog)?.faults();
    if faults > exported.bad {
        monitor.warn("the list is incomplete: rows of the record are damaged or lost");
        exported.bad = faults;
    }
    Ok(exported)
}

/// Returns true if a list is a file of the root, and not one of fsure's own folder.
fn is_in_root(place: &RootLocation, list: &Path) -> bool {
    let Ok(list) = os_path::without_links(list) else { return false };
    list.strip_prefix(&place.root).is_ok_and(|below| !below.starts_with(OWN_FOLDER))
}

/// Warns of files that are no longer as recorded: a list is of what was recorded.
fn warn_of_changes(place: &RootLocation, exported: &Exported, monitor: &dyn ScanMonitor) {
    let Exported { files, without_digest, changed, absent, .. } = *exported;
    if absent > 0 && absent == files + without_digest {
        monitor.warn(&format!(
            "not one of the recorded files is in {}: if it is on a disk that is not mounted, mount \
             it. The list has what was recorded",
            place.root.display()
        ));
        return;
    }
    if changed + absent > 0 {
        let files = |number: u64| match number {
            1 => "1 file".to_owned(),
            many => format!("{} files", count(many)),
        };
        let parts = [
            (
                changed,
                "has another size or date than recorded",
                "have another size or date than recorded",
            ),
            (absent, "is not there", "are not there"),
        ];
        let parts = parts.iter().filter(|(number, ..)| *number > 0).map(|(number, one, many)| {
            format!("{} {}", files(*number), if *number == 1 { one } else { many })
        });
        monitor.warn(&format!(
            "{}: the list has what was recorded; to see which, and how to record them as they are: {}",
            parts.collect::<Vec<_>>().join(", and "),
            place.command("status"),
        ));
    } else if without_digest > 0 {
        monitor.warn(&format!(
            "a digest that the record lacks is computed only for a file that is as recorded; to see \
             what is wrong with those left out: {}",
            place.command("verify")
        ));
    }
}

/// Returns true if the first line that says anything names a file, or if there is none in a form
/// that begins with a line of its own.
fn is_list(file: &Path, monitor: &dyn ScanMonitor) -> Result<bool> {
    let mut first = None;
    let read = ManifestSource::open(file, None, monitor).and_then(|source| {
        source.read(&mut |_, item| match item {
            ManifestItem::Problem(problem) if problem.trouble != ProblemKind::Malformed => Ok(()),
            item => {
                first = Some(matches!(item, ManifestItem::Listed(_)));
                Err(Error::Interrupted(ExitCode::Clean))
            }
        })?;
        Ok(source.format)
    });
    match (first, read) {
        (Some(is_entry), _) => Ok(is_entry),
        (None, Ok(format)) => Ok(matches!(
            format,
            ManifestFormat::Hashdeep
                | ManifestFormat::Mtree
                | ManifestFormat::Json
                | ManifestFormat::AscMhl
        )),
        (None, Err(error @ Error::Interrupted(_))) => Err(error),
        (None, Err(_)) => Ok(false),
    }
}

/// Refuses a bag of single files: its manifest lists all that is in it.
fn refuse_partial_bag(place: &RootLocation, format: ManifestFormat) -> Result<()> {
    if place.parts.is_none() || format != ManifestFormat::Bagit {
        return Ok(());
    }
    Err(Error::Usage {
        message: "a bag lists all of its files, and not those of '--files-from' only".to_owned(),
        hint: Some("leave '--files-from' out, or choose another format".to_owned()),
    })
}

/// The error of a list whose reader went away before it had all of it.
fn cut_short(export: &Export<'_>, catalog: &mut Catalog, to: &Path) -> Error {
    let mut all = 0;
    let counted = each_row(catalog, &export.place.scopes(), &mut |stored| {
        all += u64::from(matches!(stored, StoredRow::Sound(row) if row.is_live_file()));
        Ok(())
    });
    let of = if counted.is_ok() { format!(" of {all}") } else { String::new() };
    let files = export.exported.files;
    let why = format!("the program that reads the list ended after at most {files}{of} files");
    let source = io::Error::new(io::ErrorKind::BrokenPipe, why);
    Error::Io { doing: "write", path: to.to_owned(), source }
}

fn nothing(completing: ExitCode) -> Exported {
    Exported {
        files: 0,
        bytes: 0,
        not_expressed: 0,
        without_digest: 0,
        gone: 0,
        not_recorded: 0,
        changed: 0,
        absent: 0,
        bad: 0,
        is_in_root: false,
        known_damage: VerdictCounts::default(),
        completing,
    }
}

fn about() -> ManifestHeader {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    ManifestHeader {
        made_s: since.map_or(0, |since| since.as_secs()).cast_signed(),
        host: user_file::host(),
    }
}

/// The end of a pass that computes digests.
struct Completion {
    code: ExitCode,
    /// Verdicts on the files that keep the digests of their record.
    reasons: BTreeMap<RelPath, Verdict>,
}

/// Computes missing digests, if there are any.
fn complete(
    place: &RootLocation,
    format: ManifestFormat,
    options: &Options,
    monitor: &dyn ScanMonitor,
) -> Result<Completion> {
    if format.needs().is_none() || !is_lacking(place, format)? {
        return Ok(Completion { code: ExitCode::Clean, reasons: BTreeMap::new() });
    }
    let options = UpdateOptions {
        common: options.clone(),
        digests: Some(format.digests()),
        only_completes: true,
        ..UpdateOptions::default()
    };
    let left_out = CompletionMonitor { monitor, reasons: Mutex::default() };
    let unwritten = "the list needs digests that the record lacks, and they cannot be recorded";
    let outcome: Outcome = update(place, &options, &left_out).map_err(|error| match error {
        Error::RecordNotWritten { ref why, ref hint, .. } => Error::Reported {
            message: format!("{unwritten}: {why}"),
            hint: Some(format!("'--format json' writes the digests that are recorded; {hint}")),
            code: error.exit_code(),
        },
        other => other,
    })?;
    match (&outcome.record_untrusted, &outcome.stopped) {
        (Some(why), _) => return Err(untrusted(&place.catalog, why.clone())),
        (None, Some(StopReason::RecordFailed(why))) => {
            return Err(Error::Reported {
                message: format!("{unwritten}: {why}"),
                hint: Some("'--format json' writes the digests that are recorded".to_owned()),
                code: outcome.exit_code(),
            });
        }
        _ => {}
    }
    if outcome.offline.is_some() {
        monitor.warn("the root is offline: digests that the record lacks were not computed");
    }
    let reasons = left_out.reasons.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Completion { code: outcome.exit_code(), reasons })
}

fn is_lacking(place: &RootLocation, format: ManifestFormat) -> Result<bool> {
    let mut catalog = Catalog::open(&place.catalog, None)?;
    let mut is_lacking = false;
    each_row(&mut catalog, &place.scopes(), &mut |stored| {
        if let StoredRow::Sound(row) = stored {
            let has = row.record.digests.algorithms();
            is_lacking |= row.is_live_file() && !has.covers(format.digests());
        }
        Ok(())
    })?;
    Ok(is_lacking)
}

/// A listener to the pass that computes digests: its findings are not part of
/// the list, and those that keep a file out of it are kept as the reason.
struct CompletionMonitor<'a> {
    monitor: &'a dyn ScanMonitor,
    reasons: Mutex<BTreeMap<RelPath, Verdict>>,
}

impl Monitor for CompletionMonitor<'_> {
    fn warn(&self, message: &str) {
        self.monitor.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.monitor.stop_requested()
    }
}

impl ScanMonitor for CompletionMonitor<'_> {
    fn progress(&self, progress: &Progress, current: Option<CurrentFile<'_>>) {
        self.monitor.progress(progress, current);
    }

    fn finding(&self, finding: &Finding) {
        let verdict = finding.verdict;
        let is_grave = verdict.is_suspicious() || verdict.is_unread() || verdict == Verdict::Flaky;
        if is_grave {
            let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
            reasons.insert(finding.path.clone(), verdict);
        }
    }
}

/// Every row of these parts of a root, in order, with its part.
fn each_row(
    catalog: &mut Catalog,
    parts: &Scopes,
    each: &mut dyn FnMut(&StoredRow) -> Result<()>,
) -> Result<()> {
    parts.iter().try_for_each(|part| each_row_of(catalog, part, each))
}

/// Every row at or below a path, in order.
fn each_row_of(
    catalog: &mut Catalog,
    scope: &RelPath,
    each: &mut dyn FnMut(&StoredRow) -> Result<()>,
) -> Result<()> {
    if !scope.is_root()
        && let Some(stored) = catalog.get(scope)?
    {
        each(&stored)?;
    }
    let (mut from, end) = scope.below();
    let mut is_first = true;
    loop {
        let bound = if is_first { PageStart::From(&from) } else { PageStart::After(&from) };
        let page = catalog.page(&bound, end.as_deref())?;
        let Some(last) = page.last() else { return Ok(()) };
        for stored in &page {
            each(stored)?;
        }
        from = last.path().as_bytes().to_vec();
        is_first = false;
    }
}

struct Export<'a> {
    place: &'a RootLocation,
    /// The root folder; `None` if it cannot be opened.
    root: Option<Root>,
    format: ManifestFormat,
    monitor: &'a dyn ScanMonitor,
    /// Verdicts on the files whose digests could not be computed.
    reasons: BTreeMap<RelPath, Verdict>,
    exported: Exported,
}

impl Export<'_> {
    /// Writes the list to `out`, which errors name as `to`.
    fn list(
        &mut self,
        catalog: &mut Catalog,
        about: &ManifestHeader,
        out: &mut dyn Write,
        to: &Path,
    ) -> Result<()> {
        let mut list = writer(self.format, about, out).context("write", to)?;
        let parts = self.place.scopes();
        for part in parts.iter() {
            let mut is_recorded = false;
            each_row_of(catalog, part, &mut |stored| {
                is_recorded = true;
                let Some(listed) = self.entry(stored) else { return Ok(()) };
                self.exported.files += 1;
                self.exported.bytes += listed.size.unwrap_or(0);
                list.put(&listed).context("write", to)
            })?;
            if self.place.parts.is_some() && !is_recorded {
                self.exported.not_recorded += 1;
                self.monitor
                    .warn(&format!("{} is not recorded, and not in the list", part.display()));
            }
        }
        list.finish().context("write", to)
    }

    /// Writes the list to the output that the user has named.
    fn output(
        &mut self,
        catalog: &mut Catalog,
        about: &ManifestHeader,
        output: Output,
        to: &Path,
    ) -> Result<()> {
        let mut out = BufWriter::new(output);
        self.list(catalog, about, &mut out, to)?;
        let output = out.into_inner().map_err(io::IntoInnerError::into_error);
        output.and_then(Output::finish).context("write", to)
    }

    /// Writes the list atomically as a file of a form that is several files, and returns
    /// its SHA-512.
    fn file(
        &mut self,
        catalog: &mut Catalog,
        about: &ManifestHeader,
        to: &Path,
    ) -> Result<Vec<u8>> {
        let file = AtomicFile::create(to).context("write", to)?;
        let mut out = Hashing { out: BufWriter::new(file), hasher: Sha512::new() };
        self.list(catalog, about, &mut out, to)?;
        let file = out.out.into_inner().map_err(io::IntoInnerError::into_error);
        file.and_then(AtomicFile::finish).context("write", to)?;
        Ok(out.hasher.finalize().to_vec())
    }

    /// Writes a form that is several files into a folder, what vouches for the
    /// others last.
    fn folder(
        &mut self,
        catalog: &mut Catalog,
        about: &ManifestHeader,
        root: &Path,
        folder: &Path,
    ) -> Result<()> {
        let chain = folder.join("ascmhl_chain.xml");
        if self.format == ManifestFormat::AscMhl && os_path::exists(&chain) {
            return Err(Error::FailedPrecondition {
                message: format!("{} already holds an ASC MHL history", folder.display()),
                hint: Some(
                    "fsure writes the first generation only: add the next one with an ASC MHL tool"
                        .to_owned(),
                ),
            });
        }
        os_path::make_folder(folder).context("make", folder)?;
        let time = Timestamp::from_second(about.made_s).unwrap_or_default();
        if self.format == ManifestFormat::AscMhl {
            let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
            let date = time.strftime("%Y-%m-%d_%H%M%SZ");
            let name = format!("0001_{}_{date}.mhl", name.unwrap_or_default());
            let sha512 = self.file(catalog, about, &folder.join(&name))?;
            return small(&chain, &mhl_chain(&name, &sha512));
        }
        let sha512 = self.file(catalog, about, &folder.join("manifest-sha512.txt"))?;
        let date = time.strftime("%Y-%m-%d").to_string();
        let Exported { bytes, files, .. } = self.exported;
        for (name, text) in bag_files(&date, bytes, files, &sha512) {
            small(&folder.join(name), &text)?;
        }
        Ok(())
    }

    /// Returns the entry of the list for a row; `None` if the row is left out. Tombstones
    /// are counted; bad rows and files that cannot be listed are counted and reported.
    fn entry(&mut self, stored: &StoredRow) -> Option<ManifestEntry> {
        let shown = stored.path().display();
        let row = match stored {
            StoredRow::Sound(row) => row,
            StoredRow::Bad(_) => {
                self.exported.bad += 1;
                self.monitor.warn(&format!("{shown}: left out, its record fails its own seal"));
                return None;
            }
        };
        if row.is_gone() {
            self.exported.gone += 1;
        }
        if !row.is_live_file() {
            return None;
        }
        let Record { entry, digests, .. } = &row.record;
        let change = self.change(&row.record);
        let path = self.relative(&row.record.path);
        if let Some(why) = self.format.cannot_express(&path) {
            self.exported.not_expressed += 1;
            self.monitor.warn(&format!("{shown}: left out, {why}"));
            return None;
        }
        if !digests.algorithms().covers(self.format.digests()) {
            self.exported.without_digest += 1;
            let digests = self.format.digests();
            let verdict = self.reasons.get(&row.record.path);
            let why = match (verdict, change) {
                (Some(verdict), _) => format!("the file is {}", verdict.name()),
                (None, Some(change)) => format!("the file {change}"),
                (None, None) => "the file was not read".to_owned(),
            };
            self.monitor
                .warn(&format!("{shown}: left out, its record has no {digests}, and {why}"));
            return None;
        }
        let modified = entry.exact_mtime_ns().map(|time_ns| ListedMtime { time_ns, unit_ns: 1 });
        if let Some(known) = row.known_damage() {
            self.exported.known_damage.add(known.verdict);
        }
        let (digests, size) = (digests.clone(), Some(entry.size));
        Some(ManifestEntry { path, digests, size, modified, ..ManifestEntry::default() })
    }

    /// Returns the difference of a file from its record, as far as its stat shows it, and counts
    /// it.
    fn change(&mut self, record: &Record) -> Option<&'static str> {
        let stat = self.root.as_ref()?.stat(record.path.as_bytes());
        let entry = &record.entry;
        match stat {
            Err(error) if is_gone(&error) => {
                self.exported.absent += 1;
                Some("is not there")
            }
            Ok(stat)
                if stat.kind != Kind::File
                    || stat.size != entry.size
                    || entry.exact_mtime_ns().is_some_and(|mtime_ns| mtime_ns != stat.mtime_ns) =>
            {
                self.exported.changed += 1;
                Some("has another size or date")
            }
            _ => None,
        }
    }

    /// Returns the path relative to the requested one; the name if a file was requested.
    fn relative(&self, path: &RelPath) -> RelPath {
        let bytes = path.as_bytes();
        let scope = &self.place.scope;
        if scope.is_root() {
            return path.clone();
        }
        let rest = bytes.strip_prefix(scope.as_bytes()).and_then(|r| r.strip_prefix(b"/"));
        RelPath::from_bytes(rest.unwrap_or(path.name()))
    }
}

/// Writes a small file atomically.
fn small(to: &Path, text: &str) -> Result<()> {
    let write = || {
        let mut file = AtomicFile::create(to)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    };
    write().context("write", to)
}

/// Hashes what it passes on.
struct Hashing<W> {
    out: W,
    hasher: Sha512,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
