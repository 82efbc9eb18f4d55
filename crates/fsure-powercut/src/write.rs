//! The writer: it writes until its power is cut, and never waits for the network
//! between a write and its flush.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fsure_os::root_dir::Root;
use fsure_os::shell_command::Running;
use fsure_os::storage_stack::{self, Medium, Stack};
use fsure_os::{filesystem_id, path as os_path, user_file};

use super::messages::{Message, PowercutMonitor, RunBegins};
use super::protocol_records::{self, LogRecord, RunDescription, RunId};
use super::run_files::{self, Files};
use super::test_plan::{Pattern, Way};
use super::witness_link::{Link, LinkState};
use super::{Secret, TestedDevice};
use fsure_core::Random;
use fsure_core::{Clock, Error, ExitCode, IoContext as _, Result};

/// Options of a writer.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// A folder on the drive in question.
    pub folder: PathBuf,
    /// The witness, `HOST:PORT`.
    pub witness: String,
    /// Secret that the witness requires.
    pub secret: Secret,
    /// The ways to try.
    pub ways: Vec<Way>,
    /// The patterns to try.
    pub patterns: Vec<Pattern>,
    /// Seed of all random choices; `None` for a random one.
    pub seed: Option<u64>,
    /// A command that cuts the power.
    pub cut: Option<String>,
    /// The shortest and the longest wait before it.
    pub wait: (Duration, Duration),
    /// Time for which to write if no power is cut; `None` for no limit.
    pub span: Option<Duration>,
    /// Source of the time.
    pub clock: Clock,
}

/// Maximum number of records ahead of the witness: two for each write.
const WINDOW: usize = 2 * 1024;
/// Timeout for the first connection to the witness.
const FIRST_WAIT: Duration = Duration::from_secs(10);
/// Timeout for the witness to record the end. After a signal, the command waits for 5 s.
const LAST_WAIT: Duration = Duration::from_secs(30);
const LAST_WAIT_ASKED: Duration = Duration::from_secs(4);
/// Interval between two checks of everything but the drive.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Rest before a cut, and after the start of a command that cuts. Then the milliseconds
/// of a turn and of a rest in between.
const REST_BEFORE_CUT: Duration = Duration::from_secs(5);
const TURN_MS: (u64, u64) = (100, 3_000);
const REST_MS: (u64, u64) = (1_000, 5_000);
/// One turn in so many is followed by a rest, one cut in so many comes in one.
const RESTS: u64 = 8;
const RESTING_CUTS: u64 = 4;

/// Writes until the power is cut, or something else ends it.
pub fn write(options: &WriteOptions, listener: &dyn PowercutMonitor) -> Result<ExitCode> {
    let folder = os_path::without_links(&options.folder).context("find", &options.folder)?;
    let stack = Stack::of(&folder).context("ask what is below", &folder)?;
    refuse_memory(&folder, &stack)?;
    let earlier = run_files::earlier(&folder).context("list", &folder)?;
    refuse_unchecked(&folder, &earlier)?;
    let options = &WriteOptions { ways: ways_on(options, &stack, listener), ..options.clone() };
    let run = random_run()?;
    let device = TestedDevice::below(&stack);
    let replaces = earlier.runs;
    let opened =
        RunDescription { replaces, ..opened(options, &folder, &run, device.as_ref().ok()) };
    let link = Link::new(&options.witness, &options.secret, &opened);
    std::thread::scope(|scope| {
        scope.spawn(|| link.serve());
        let written = begin(options, listener, &folder, run, &link, device);
        link.close();
        written
    })
}

fn refuse_memory(folder: &Path, stack: &Stack) -> Result<()> {
    if stack.medium != Medium::Memory {
        return Ok(());
    }
    Err(Error::FailedPrecondition {
        message: format!("{} is in memory: a power cut leaves nothing of it", folder.display()),
        hint: Some("name a folder on the drive in question".to_owned()),
    })
}

/// Fails if the folder holds a run that was not checked: it is evidence.
fn refuse_unchecked(folder: &Path, earlier: &run_files::Earlier) -> Result<()> {
    if let Some(other) = earlier.others.first() {
        return Err(Error::FailedPrecondition {
            message: format!(
                "{} looks like the folder of a run, but it is not yours or not a run",
                other.display()
            ),
            hint: Some("rename it, or name another folder".to_owned()),
        });
    }
    let mut folders = earlier.runs.iter().map(|run| run_files::folder_named(folder, run));
    let Some(unchecked) = folders.find(|run| !run_files::is_checked(run)) else { return Ok(()) };
    Err(Error::FailedPrecondition {
        message: format!("{} holds a run that was not checked", unchecked.display()),
        hint: Some("check it with 'fsure powercut check', or remove that folder".to_owned()),
    })
}

/// Returns the requested ways, except those whose promise this file system itself does
/// not keep.
fn ways_on(options: &WriteOptions, stack: &Stack, listener: &dyn PowercutMonitor) -> Vec<Way> {
    let (kept, lost): (Vec<Way>, Vec<_>) =
        options.ways.iter().partition(|way| way.is_kept_on(stack));
    for way in lost {
        let name = way.name;
        listener.warn(&format!("{name} is left out: on XFS it loses writes on any drive"));
    }
    kept
}

fn random_run() -> Result<RunId> {
    let mut run = RunId::default();
    getrandom::fill(&mut run).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(run)
}

fn opened(
    options: &WriteOptions,
    folder: &Path,
    run: &RunId,
    device: Option<&TestedDevice>,
) -> RunDescription {
    RunDescription {
        run: protocol_records::run_name(run),
        program: concat!("fsure ", env!("CARGO_PKG_VERSION")).to_owned(),
        host: user_file::host(),
        folder: folder.to_string_lossy().into_owned(),
        device: device.cloned(),
        volume: volume_of(folder),
        life: storage_stack::life(folder),
        boot: storage_stack::boot(),
        started: super::messages::timestamp(&options.clock),
        replaces: Vec::new(),
    }
}

/// Returns the identifier of the file system that a folder is in.
pub(super) fn volume_of(folder: &Path) -> Option<String> {
    filesystem_id::of(&Root::open(folder).ok()?, b"").ok()?.uuid
}

/// Makes the files of the run, and writes.
fn begin(
    options: &WriteOptions,
    listener: &dyn PowercutMonitor,
    folder: &Path,
    run: RunId,
    link: &Link<'_>,
    device: std::result::Result<TestedDevice, String>,
) -> Result<ExitCode> {
    wait_for_witness(options, listener, link)?;
    // The witness knows by now that nothing is owed of these.
    for run in &link.opened.replaces {
        let earlier = run_files::folder_named(folder, run);
        run_files::remove(&earlier).context("remove", &earlier)?;
    }
    let seed = options.seed.unwrap_or_else(|| u64::from_le_bytes(*run.first_chunk().expect("16")));
    let mut files =
        Files::create(folder, run, link).context("make the files of the run in", folder)?;
    let mut ways = Vec::new();
    for way in &options.ways {
        if files.prepare(*way).context("make the files of the run in", folder)? {
            ways.push(way.name.to_owned());
        } else {
            listener.warn(&format!("{} is not available here, and is left out", way.name));
        }
    }
    let mut patterns = options.patterns.clone();
    if !files.has_names() {
        patterns.retain(|pattern| !pattern.needs_names());
        listener.warn("this system cannot flush folders: create and rename are left out");
    }
    if files.ways() == 0 || patterns.is_empty() {
        run_files::remove(files.folder()).context("remove", files.folder())?;
        return Err(Error::FailedPrecondition {
            message: "none of the requested methods and patterns is available here".to_owned(),
            hint: Some("choose others with '--methods' and '--patterns'".to_owned()),
        });
    }
    listener.report(&Message::Run(RunBegins {
        run: protocol_records::run_name(&run),
        folder: files.folder().to_string_lossy().into_owned(),
        unknown: device.as_ref().err().cloned(),
        device: device.ok(),
        methods: ways,
        patterns: patterns.iter().map(|pattern| pattern.name().to_owned()).collect(),
        seed,
    }));
    let mut random = Random::new(seed);
    let cutter = CutScheduler::new(options, &mut random);
    let began = Instant::now();
    let mut writer = BlockWriter {
        options,
        listener,
        link,
        files,
        patterns,
        random,
        cutter,
        began,
        looked: began,
    };
    let ended = writer.write();
    writer.end(&protocol_records::run_name(&run), ended)
}

fn wait_for_witness(
    options: &WriteOptions,
    listener: &dyn PowercutMonitor,
    link: &Link<'_>,
) -> Result<()> {
    let began = Instant::now();
    loop {
        let why = match link.state().0 {
            LinkState::Connected => return Ok(()),
            LinkState::Away(why) if began.elapsed() < FIRST_WAIT => why,
            LinkState::Away(why) | LinkState::Refused(why) => {
                return Err(no_witness(&options.witness, &why));
            }
        };
        if let Some(code) = listener.stop_requested() {
            return Err(Error::Interrupted(code));
        }
        listener.under_way(&format!("waiting for the witness: {why}"));
        std::thread::sleep(CHECK_INTERVAL / 5);
    }
}

/// Returns the error that the witness cannot be used, with the reason.
pub(super) fn no_witness(address: &str, why: &str) -> Error {
    Error::FailedPrecondition {
        message: format!("the witness at {address} cannot be reached: {why}"),
        hint: Some(
            "start 'fsure powercut witness' there with the same token, and check that no firewall \
             between the machines blocks its port"
                .to_owned(),
        ),
    }
}

/// Reason why writing came to an end.
enum WriteEnd {
    Asked(ExitCode),
    OnTime,
    Failed(Error),
}

struct BlockWriter<'a> {
    options: &'a WriteOptions,
    listener: &'a dyn PowercutMonitor,
    link: &'a Link<'a>,
    files: Files<'a>,
    patterns: Vec<Pattern>,
    random: Random,
    cutter: Option<CutScheduler>,
    began: Instant,
    looked: Instant,
}

impl BlockWriter<'_> {
    fn write(&mut self) -> WriteEnd {
        loop {
            let way = self.random.below(self.files.ways() as u64) as usize;
            let turn = between(&mut self.random, TURN_MS);
            let rest = between(&mut self.random, REST_MS);
            let rests = self.random.below(RESTS) == 0;
            if let Err(ended) = self.turn(way, turn) {
                return ended;
            }
            if rests && let Err(ended) = self.rest(Instant::now() + rest) {
                return ended;
            }
        }
    }

    /// Writes by one way for a while, which has the drive for itself.
    fn turn(&mut self, way: usize, span: Duration) -> std::result::Result<(), WriteEnd> {
        let until = Instant::now() + span;
        while Instant::now() < until {
            if self.looked.elapsed() >= CHECK_INTERVAL {
                self.look()?;
            }
            while !self.link.wait(WINDOW, CHECK_INTERVAL) {
                self.look()?;
            }
            let pattern = self.random.below(self.patterns.len() as u64) as usize;
            let written = self.files.write(way, self.patterns[pattern], &mut self.random);
            written.map_err(|error| self.failed("write to", error))?;
            let forgotten = self.files.forget();
            if forgotten.is_empty() {
                continue;
            }
            while !self.link.wait(0, CHECK_INTERVAL) {
                self.look()?;
            }
            self.files.drop(&forgotten).map_err(|error| self.failed("remove a file of", error))?;
        }
        Ok(())
    }

    fn failed(&self, doing: &'static str, source: std::io::Error) -> WriteEnd {
        WriteEnd::Failed(Error::Io { doing, path: self.files.folder().to_owned(), source })
    }

    /// Rests for a while: everything is durable, and nothing is written.
    fn rest(&mut self, until: Instant) -> std::result::Result<(), WriteEnd> {
        while Instant::now() < until {
            self.look()?;
            std::thread::sleep(CHECK_INTERVAL.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Checks everything but the drive.
    fn look(&mut self) -> std::result::Result<(), WriteEnd> {
        self.looked = Instant::now();
        let (state, oldest) = self.link.state();
        if let LinkState::Refused(why) = &state {
            return Err(WriteEnd::Failed(no_witness(&self.options.witness, why)));
        }
        if let Some(code) = self.listener.stop_requested() {
            return Err(WriteEnd::Asked(code));
        }
        if self.options.span.is_some_and(|span| self.began.elapsed() >= span) {
            return Err(WriteEnd::OnTime);
        }
        self.report_progress(&state, oldest);
        self.cut()
    }

    fn report_progress(&self, state: &LinkState, oldest: Option<Duration>) {
        let (count, seconds) = (self.files.acknowledged, self.began.elapsed().as_secs_f64());
        let rate = count as f64 / seconds.max(0.001);
        let mut words = format!("{count} writes acknowledged, {rate:.0} per second; ");
        let _ = match (state, oldest) {
            (LinkState::Away(why), Some(oldest)) => {
                write!(words, "the witness has been unreachable for {} s: {why}", oldest.as_secs())
            }
            (LinkState::Away(why), None) => write!(words, "the witness is unreachable: {why}"),
            (_, Some(oldest)) => {
                write!(words, "the oldest not recorded: {} ms", oldest.as_millis())
            }
            (_, None) => write!(words, "all recorded"),
        };
        self.listener.under_way(&words);
    }

    /// Starts the command that cuts the power when its time has come, and checks its
    /// result.
    fn cut(&mut self) -> std::result::Result<(), WriteEnd> {
        let Some(cutter) = &mut self.cutter else { return Ok(()) };
        let (rests, at) = (cutter.rests, self.began + cutter.after);
        if let Some(running) = &mut cutter.running {
            return match running.ended() {
                Ok(None) => Ok(()),
                Ok(Some(true)) => {
                    self.cutter = None;
                    self.listener.warn("the command has ended, and the power is still on");
                    Ok(())
                }
                Ok(Some(false)) => Err(cut_failed("it has failed")),
                Err(error) => Err(cut_failed(&error.to_string())),
            };
        }
        let now = Instant::now();
        if rests && !cutter.is_resting && now + REST_BEFORE_CUT >= at {
            cutter.is_resting = true;
            // The command is started in there, and has time to work.
            return self.rest(at + REST_BEFORE_CUT);
        }
        if now >= at {
            let seconds = self.began.elapsed().as_secs_f64();
            self.listener.report(&Message::Cutting { seconds, is_resting: rests });
            let started = Running::start(&cutter.line);
            cutter.running = Some(started.map_err(|error| cut_failed(&error.to_string()))?);
        }
        Ok(())
    }

    /// Ends the run. Its files are removed if it is over, and all of them stay if this
    /// may be the cut.
    fn end(mut self, run: &str, ended: WriteEnd) -> Result<ExitCode> {
        self.cutter = None;
        let may_be_cut = may_be_cut(&ended);
        if !may_be_cut {
            self.link.append(LogRecord::End);
        }
        let is_asked = matches!(ended, WriteEnd::Asked(_));
        let timeout = if is_asked { LAST_WAIT_ASKED } else { LAST_WAIT };
        let is_recorded = self.link.wait(0, timeout);
        let is_ended = !may_be_cut && is_recorded;
        self.listener.report(&Message::Written {
            run: run.to_owned(),
            acked: self.files.acknowledged,
            seconds: self.began.elapsed().as_secs_f64(),
            is_ended,
        });
        if is_ended {
            run_files::remove(self.files.folder()).context("remove", self.files.folder())?;
        } else if !is_recorded {
            self.listener
                .warn("the witness has not recorded the end of the run, so the files stay");
            if !may_be_cut {
                run_files::mark_ended(self.files.folder());
            }
        }
        match ended {
            WriteEnd::Asked(code) => Ok(code),
            WriteEnd::OnTime => Ok(ExitCode::Clean),
            WriteEnd::Failed(error) => Err(error),
        }
    }
}

/// Returns true if the drive has gone; any other end of a run is not a cut.
fn may_be_cut(ended: &WriteEnd) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let WriteEnd::Failed(Error::Io { source, .. }) = ended else { return false };
    !matches!(source.kind(), StorageFull | QuotaExceeded)
}

fn cut_failed(why: &str) -> WriteEnd {
    WriteEnd::Failed(Error::FailedPrecondition {
        message: format!("the command of '--cut-cmd' did not cut the power: {why}"),
        hint: None,
    })
}

/// Time and command of the power cut.
struct CutScheduler {
    line: String,
    after: Duration,
    /// True if nothing is to be written before the cut.
    rests: bool,
    is_resting: bool,
    running: Option<Running>,
}

impl CutScheduler {
    fn new(options: &WriteOptions, random: &mut Random) -> Option<Self> {
        let (least, longest) = options.wait;
        let milliseconds = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let after = between(random, (milliseconds(least), milliseconds(longest)));
        let rests = random.below(RESTING_CUTS) == 0;
        let line = options.cut.clone()?;
        Some(Self { line, after, rests, is_resting: false, running: None })
    }
}

/// Returns a random span of at least and at most so many milliseconds.
fn between(random: &mut Random, (least, most): (u64, u64)) -> Duration {
    Duration::from_millis(least + random.below(most.saturating_sub(least) + 1))
}
