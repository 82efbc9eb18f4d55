//! `flush`: measures what it costs to have a write on the medium, by each method that
//! this system has, and what of it the device was really sent.

mod curves;
mod methods;
mod operations;
mod profiles;
mod time_slice;
mod verdict_facts;
mod workspace;

use std::path::PathBuf;
use std::time::Duration;

use fsure_os::durable_write::Method;
use fsure_os::storage_stack::Stack;

use super::environment::{self, NoiseMeter};
use crate::flush_verdict;
use crate::flush_verdict::{FlushFacts, PowerCutHistory};
use crate::results::{
    Claim, Machine, Measurement, MeasurementMonitor, ResultHeader, ResultLine, ResultSummary,
    ResultTarget, VERSION,
};
use fsure_core::{Clock, Error, ExitCode, IoContext as _, Result, units};
use fsure_powercut as powercut;
use fsure_powercut::TestedDevice;
pub use profiles::Pattern;
use workspace::FlushWorkspace;

/// Options of `flush`.
#[derive(Clone, Debug)]
pub struct FlushOptions {
    /// The folders.
    pub paths: Vec<PathBuf>,
    /// Time for each method; each point of a curve gets half of it, each profile
    /// twice as much. A method that is too slow for a hundred samples gets up to four
    /// times as much.
    pub span: Duration,
    /// Bytes of a write.
    pub size: usize,
    /// Threads that commit at the same time, at most.
    pub threads: usize,
    /// Writes a second of each method and profile, so that what they cost at the same rate can
    /// be compared; `None` for as many as there can be.
    pub rate: Option<u32>,
    /// Databases' own patterns.
    pub profiles: Vec<Pattern>,
    /// A program that removes the files of the measurement if this process is killed,
    /// see [`fsure_os::scratch_dir`].
    pub guard: Option<PathBuf>,
    /// File in which `powercut check` keeps what cuts have shown of each drive.
    pub cuts: Option<PathBuf>,
    /// The clock for the times of the result.
    pub clock: Clock,
}

impl Default for FlushOptions {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            span: Duration::from_secs(1),
            size: 4096,
            threads: 8,
            rate: None,
            profiles: Vec::new(),
            guard: None,
            cuts: None,
            clock: Clock::default(),
        }
    }
}

/// The outcome of a run; its lines were reported to the listener.
#[derive(Debug)]
pub struct Measured {
    /// Exit code of the run.
    pub exit_code: ExitCode,
    /// Facts about each folder that was measured to its end, in the order given.
    pub facts: Vec<FlushFacts>,
    /// The error that ended the run before its end.
    pub ended_by: Option<Error>,
}

/// Measures each folder, and reports every line of the result as soon as it is known.
/// If something ends the run early, what was measured until then is reported. Nothing
/// is left behind, and nothing that is there is written to. Fails if the options make
/// no sense.
pub fn flush(options: &FlushOptions, listener: &dyn MeasurementMonitor) -> Result<Measured> {
    check(options)?;
    let (began, company) = (options.clock.watch(), NoiseMeter::begin());
    let machine = environment::machine();
    let (cores, backup_power) = (machine.cores, machine.backup_power.clone());
    listener.measured(&ResultLine::Result(header(options, machine)));
    let mut rows = Rows::default();
    let mut measured = Measured { exit_code: ExitCode::Clean, facts: Vec::new(), ended_by: None };
    let so_far = (&mut measured, &mut rows);
    if let Err(error) = each(options, listener, backup_power.as_deref(), so_far) {
        // A verdict on a folder before counts for more than what came behind it.
        measured.exit_code = measured.exit_code.worse(error.exit_code());
        // The summary comes last, whatever ends the run.
        listener.measured(&ResultLine::Warning { words: format!("{ENDED_EARLY}: {error}") });
        measured.ended_by = Some(error);
    }
    let noise = company.end();
    let advice = (rows.measured > 0).then(|| environment::advice(&noise, cores));
    for words in advice.into_iter().flatten() {
        listener.warn(&words);
        listener.measured(&ResultLine::Warning { words });
    }
    listener.measured(&ResultLine::Summary(ResultSummary {
        seconds: began.elapsed().as_secs_f64(),
        noise,
        measured: rows.measured,
        not_run: rows.not_run,
        exit_code: measured.exit_code.number(),
    }));
    Ok(measured)
}

/// Number of lines reported so far, whatever ends the run.
#[derive(Default)]
struct Rows {
    measured: u64,
    not_run: u64,
}

/// Measures one folder after the other. What is wrong with any of them is found
/// before the first is measured.
fn each(
    options: &FlushOptions,
    listener: &dyn MeasurementMonitor,
    backup_power: Option<&str>,
    (measured, rows): (&mut Measured, &mut Rows),
) -> Result<()> {
    let each = planned(options);
    let whole = each * u32::try_from(options.paths.len()).unwrap_or(u32::MAX);
    let used = (0..).map(|place| each * place);
    let sites = options.paths.iter().zip(used);
    let sites = sites.map(|(path, used)| FlushWorkspace::new(path, options, listener, used, whole));
    let sites: Vec<_> = sites.collect::<Result<_>>()?;
    for site in sites {
        let facts = measure(&site, backup_power);
        rows.measured += site.rows();
        rows.not_run += site.not_run_rows();
        let facts = facts?;
        measured.exit_code = measured.exit_code.worse(judge(&site, &facts));
        measured.facts.push(facts);
    }
    Ok(())
}

fn measure(site: &FlushWorkspace<'_>, backup_power: Option<&str>) -> Result<FlushFacts> {
    let (options, span) = (site.options, site.options.span);
    let stack = Stack::of(site.folder()).context("find the devices below", site.folder())?;
    for layer in environment::layers(&site.target, &stack) {
        site.emit(&ResultLine::Layer(layer));
    }
    let methods = operations::needed_bytes(Method::all().len(), options.size);
    site.need(methods.max(curves::needed_bytes(options.threads, options.size)))?;
    let table = methods::measure(site)?;
    let after = Stack::of(site.folder()).context("find the devices below", site.folder())?;
    site.clear()?;
    let slope = curves::measure(site, span / 2)?;
    profiles::measure(site, span * 2)?;
    let cuts = cuts(site, &stack);
    Ok(FlushFacts {
        backup_power: backup_power.map(str::to_owned),
        cuts,
        ..verdict_facts::of((&stack, &after), &site.file_system, &table, options.size, slope)
    })
}

/// Returns what power cuts have shown of the drive below; `None` if the drive or its
/// cuts are not known.
fn cuts(site: &FlushWorkspace<'_>, stack: &Stack) -> Option<PowerCutHistory> {
    let (file, device) = (site.options.cuts.as_ref()?, TestedDevice::below(stack).ok()?);
    let powercut::DriveHistory { made, acknowledged, lost } = powercut::kept(file, &device)
        .inspect_err(|error| {
            let words = format!(
                "the results of earlier power cuts cannot be read: {}: {error}",
                file.display()
            );
            site.warn(words);
        })
        .ok()?;
    Some(PowerCutHistory { made, acknowledged, lost })
}

/// Reports what is to be believed, and returns the exit code for it.
fn judge(site: &FlushWorkspace<'_>, facts: &FlushFacts) -> ExitCode {
    let judgements = flush_verdict::judge(facts);
    for judgement in &judgements {
        site.emit(&ResultLine::Verdict(Claim {
            target: site.target.clone(),
            id: judgement.id.name().to_owned(),
            grade: judgement.grade.name().to_owned(),
            words: judgement.words.clone(),
        }));
    }
    flush_verdict::exit_code(&judgements)
}

/// Refuses options that make no sense.
fn check(options: &FlushOptions) -> Result<()> {
    let refuse = |message: &str, hint: &str| {
        Err(Error::Usage { message: message.to_owned(), hint: Some(hint.to_owned()) })
    };
    if options.size == 0 || options.size > SIZE_MAX {
        return refuse(
            "the size of a write must be from 1 byte to 1 MiB",
            "4K is the default, and what databases write",
        );
    }
    if options.rate == Some(0) {
        return refuse("'--rate' must be at least 1/s", "30/s is a rate that most drives keep");
    }
    if options.span.is_zero() {
        return refuse("'--time' must be more than 0", "1s for each method is the default");
    }
    // The lines of a result tell folders apart by these.
    let mut names: Vec<_> = options.paths.iter().map(|path| ResultTarget::of(path).path).collect();
    names.sort();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("two folders have the name {} in the result", twice[0]);
        return refuse(&message, "measure them in two runs");
    }
    Ok(())
}

/// The beginning of the warning of a run that something has ended before its end.
pub(crate) const ENDED_EARLY: &str = "the run ended early";

/// The flushes that databases use, those first that they prefer.
pub const DATABASE_FLUSHES: [&str; 4] = ["fdatasync", "fsync", "F_FULLFSYNC", "FlushFileBuffers"];

/// The name of the setting in the header of a result.
pub(crate) const RATE: &str = "rate";

/// Largest write, in bytes: a larger one shows more of throughput than of flushes.
const SIZE_MAX: usize = 1 << 20;

/// The time that one folder may take if nothing is slow.
fn planned(options: &FlushOptions) -> Duration {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let with_tail = |span| workspace::time_with_tail(span, options.rate);
    let methods = with_tail(options.span) * count(methods::count());
    let curves = workspace::time(options.span / 2) * count(curves::count(options));
    let profiles = with_tail(options.span * 2) * count(profiles::count(&options.profiles));
    methods + curves + profiles
}

fn header(options: &FlushOptions, machine: Machine) -> ResultHeader {
    let mut setup = vec![
        ("time for each method".to_owned(), format!("{} s", options.span.as_secs_f64())),
        ("size of a write".to_owned(), units::size(options.size as u64)),
        ("threads".to_owned(), options.threads.to_string()),
    ];
    let rate = options.rate.map_or("as many as possible".to_owned(), |rate| format!("{rate}/s"));
    setup.push((RATE.to_owned(), rate));
    ResultHeader {
        kind: Measurement::Flush,
        version: VERSION,
        program: concat!("fsure ", env!("CARGO_PKG_VERSION")).to_owned(),
        started: environment::timestamp(&options.clock),
        machine,
        targets: options.paths.iter().map(|path| ResultTarget::of(path)).collect(),
        setup,
    }
}
