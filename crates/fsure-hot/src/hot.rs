//! `hot`: which folders programs wait for, and what memory would save them.
//! Nothing is written anywhere, and no program is held up.

use std::path::{Component, Path, PathBuf};

use fsure_os::io_trace::{
    FolderIo, IoCounts, MetadataTime, TraceOptions, TraceSource, TracedFolder, Tracer, is_in_memory,
};
use fsure_os::process_tree::CommandEnd;

use super::call_filter::CallFilter;
use super::command_refusal;
use super::folder_contents::{self, FolderContents};
use super::folder_tree::{self, FolderNode, durable_ns, written_bytes};
use super::history::History;
use super::monitor::HotMonitor;
use super::options::HotOptions;
use super::watch::{Watch, watch};

use crate::placement_advice;
use crate::placement_advice::{Advice, FolderUse, Scope};
use fsure_core::{Error, ExitCode, IoContext as _, Result};
use fsure_ram::write_back::OWN;

/// Result of [`hot`].
#[derive(Clone, Debug)]
pub struct Hot {
    /// Source of the events.
    pub source: TraceSource,
    /// The reason why the best source was not used; `None` if it was, or if a source was
    /// requested.
    pub fell_back: Option<String>,
    /// Duration of the watch, in seconds.
    pub seconds: f64,
    /// The folders, from the root of all on.
    pub tree: FolderNode,
    /// Folders that no path leads to.
    pub unseen: Vec<FolderIo>,
    /// Changes of metadata in all folders; `None` if no command was watched.
    pub metadata: Option<MetadataTime>,
    /// Folders with something to gain, those with most of it first. None where
    /// the source tells no times.
    pub advised: Vec<Advised>,
    /// Descriptions of what the source cannot see.
    pub blind: Vec<String>,
    /// Kinds of events that the source lost, with their number.
    pub lost: Vec<(String, u64)>,
    /// The end of the command, if one was watched.
    pub command: Option<CommandEnd>,
    /// Number of processes that the command has left behind.
    pub processes_left: usize,
    /// Number of calls that were logged; `None` without a log.
    pub logged: Option<u64>,
    /// The history that it was read from; `None` if it was watched now.
    pub history: Option<History>,
    /// Exit code of the request that ended it early; `None` also if only a request could.
    pub ended_by: Option<ExitCode>,
}

/// An advice on a folder and all below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Advised {
    /// Path of the folder.
    pub path: PathBuf,
    /// Figures that the advice is based on.
    pub seen: FolderUse,
    /// The advice and the reason.
    pub recommendation: placement_advice::Recommendation,
}

impl Hot {
    /// Returns the sum over all folders, those without a path included.
    pub fn totals(&self) -> IoCounts {
        let mut totals = self.tree.all;
        self.unseen.iter().for_each(|folder| totals.add(&folder.counts));
        if let Some(history) = &self.history {
            totals.add(&history.not_visible.counts);
        }
        totals
    }

    /// Seconds per hour, of so many nanoseconds in the time that was watched.
    pub fn per_hour(&self, ns: u64) -> f64 {
        if self.seconds > 0.0 { ns as f64 / 1e9 * 3600.0 / self.seconds } else { 0.0 }
    }

    /// Returns the programs that were watched.
    pub fn scope(&self) -> Scope {
        if self.command.is_some() { Scope::Command } else { Scope::Machine }
    }

    /// Returns the advice on a folder: that of the nearest advised folder around it.
    /// `None` if the source reports no times.
    pub fn advice_on(&self, path: &Path) -> Option<Advice> {
        if self.source != TraceSource::Ebpf {
            return None;
        }
        let around = self.advised.iter().filter(|one| path.starts_with(&one.path));
        let nearest = around.max_by_key(|one| one.path.components().count());
        Some(nearest.map_or(Advice::Leave, |one| one.recommendation.advice))
    }
}

/// Watches for as long as asked, or until the listener wants an end, or a command until it
/// ends; what was seen until then is the answer.
pub fn hot(options: &HotOptions, listener: &dyn HotMonitor) -> Result<Hot> {
    if let (Some(option), Some(TraceSource::Fanotify)) = (options.needs_ebpf(), options.source) {
        return Err(Error::Usage {
            message: format!("'{option}' needs eBPF: fanotify merges calls and reports no times"),
            hint: Some(format!("run it without '--source': 'sudo fsure hot {option}'")),
        });
    }
    let below = resolved(&options.below)?;
    let everything = PathBuf::from("/");
    let place = below.first().unwrap_or(&everything);
    let logged = options.log.as_ref().map_or_else(Vec::new, CallFilter::operations);
    let source = options.source.or(options.needs_ebpf().map(|_| TraceSource::Ebpf));
    let has_intervals = options.interval.is_some();
    let trace = TraceOptions { below: &below, source, logged: &logged, has_intervals };
    let mut tracer = if options.command.is_empty() {
        Tracer::begin(&trace).map_err(|error| cannot(options, place, error))?
    } else {
        Tracer::begin_command(&trace, &options.command)
            .map_err(|error| command_refusal::refused(&error))?
    };
    let Watch { seconds, command, ended_by, logged } =
        watch(&mut tracer, options, listener).context("watch", place)?;
    let (source, fell_back) = (tracer.source(), tracer.fell_back().map(str::to_owned));
    let seen = tracer.end().context("watch", place)?;
    let (seen_at, unseen): (Vec<_>, Vec<_>) =
        seen.folders.into_iter().partition(|folder| matches!(folder.place, TracedFolder::At(_)));
    let tree = folder_tree::tree(&only(seen_at, &below));
    let lost = seen.lost.into_iter().map(|(what, count)| (what.to_owned(), count)).collect();
    let (blind, processes_left) = (seen.blind, seen.processes_left);
    let advised = Vec::new();
    let mut hot = Hot {
        source,
        fell_back,
        seconds,
        tree,
        unseen,
        metadata: seen.metadata,
        advised,
        blind,
        lost,
        command,
        processes_left,
        logged,
        history: None,
        ended_by: ended_by.filter(|_| options.span.is_some()),
    };
    if source == TraceSource::Ebpf {
        hot.advised = advice(&hot);
    }
    Ok(hot)
}

/// Returns the advice on folders with something to gain, or else on the one in which a command
/// writes and may gain by its changes of metadata. The busiest of the other folders
/// follow: that nothing is to be done with them is news to many.
pub(super) fn advice(hot: &Hot) -> Vec<Advised> {
    let least = (hot.scope().worth_s_per_hour() / 3600.0 * hot.seconds * 1e9) as u64;
    let candidates = folder_tree::candidates(&hot.tree, least);
    let mut advised: Vec<_> = candidates.into_iter().map(|node| advised_on(hot, node)).collect();
    if advised.is_empty() {
        let written = folder_tree::written(&hot.tree).map(|node| advised_on(hot, node));
        advised.extend(written.filter(|one| one.recommendation.advice == Advice::Try));
    }
    let busiest = folder_tree::busiest(&hot.tree).into_iter();
    let others = busiest.filter(|node| !advised.iter().any(|one| node.path.starts_with(&one.path)));
    let others: Vec<_> = others.take(OTHERS).map(|node| advised_on(hot, node)).collect();
    advised.extend(others);
    advised
}

/// So many busy folders are said to be fine as they are.
const OTHERS: usize = 3;

/// The folders as the kernel names them: without links.
pub(super) fn resolved(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let one = |path: &PathBuf| {
        let found = fsure_os::path::resolve(path).context("access", path)?;
        if !fsure_os::path::is_folder(&found) {
            return Err(Error::not_a_folder(path, "name the folder that it is in"));
        }
        Ok(found)
    };
    folders.iter().map(one).collect()
}

/// The error of a watch that cannot begin.
fn cannot(options: &HotOptions, place: &Path, error: std::io::Error) -> Error {
    let is_denied = error.kind() == std::io::ErrorKind::PermissionDenied;
    if let (Some(option), true) = (options.needs_ebpf(), is_denied) {
        return Error::Usage {
            message: format!("'{option}' needs eBPF, which is for root: {error}"),
            hint: Some(format!("run it as root: 'sudo fsure hot {option}'")),
        };
    }
    let hint = match options.source {
        Some(TraceSource::Ebpf) => {
            "run it as root, or with '--source fanotify', which reports less"
        }
        _ => "name them ('fsure hot DIR'), or run it as root to see all, with times",
    };
    if is_denied {
        return Error::Usage { message: error.to_string(), hint: Some(hint.to_owned()) };
    }
    let words = match (options.needs_ebpf(), options.source) {
        (Some(option), _) => format!(
            "{error}; '{option}' needs eBPF; 'fsure hot --source fanotify' reports less and needs \
             fewer permissions"
        ),
        (None, Some(TraceSource::Ebpf)) => {
            format!("{error}; '--source fanotify' reports less and needs fewer permissions")
        }
        _ => return Error::Io { doing: "watch", path: place.to_owned(), source: error },
    };
    let source = std::io::Error::new(error.kind(), words);
    Error::Io { doing: "watch", path: place.to_owned(), source }
}

/// Those that are in or below one of the folders, all where there are none.
pub(super) fn only(folders: Vec<FolderIo>, below: &[PathBuf]) -> Vec<FolderIo> {
    let is_asked = |folder: &FolderIo| match &folder.place {
        TracedFolder::At(path) => below.is_empty() || below.iter().any(|one| path.starts_with(one)),
        TracedFolder::Unseen { .. } => true,
    };
    folders.into_iter().filter(is_asked).collect()
}

fn advised_on(hot: &Hot, node: &FolderNode) -> Advised {
    let (durable, missed) = (hot.per_hour(durable_ns(&node.all)), hot.per_hour(node.all.missed_ns));
    // The size of a folder that is left as it is interests no user.
    let metadata = hot.metadata.map_or(0.0, |changes| hot.per_hour(changes.ns));
    let is_worth = durable + missed + metadata >= hot.scope().worth_s_per_hour();
    let contents =
        if is_worth { folder_contents::contents(&node.path) } else { FolderContents::default() };
    let seen = FolderUse {
        scope: hot.scope(),
        durable,
        missed,
        metadata,
        is_written: written_bytes(&node.all) > 0,
        is_in_memory: is_in_memory(&node.path).unwrap_or(false),
        is_disk_side: is_disk_side(&node.path),
        unbindable: unbindable(&node.path),
        is_of_the_system: is_of_the_system(&node.path),
        access: contents.access,
        size: contents.size,
        available: fsure_os::machine::available_memory(),
        risk: contents.risk,
    };
    let recommendation = placement_advice::advise(&seen);
    Advised { path: node.path.clone(), seen, recommendation }
}

/// Returns true if its flushes are those of `ram bind` or `ram run`, which keep a folder
/// of their own in the disk side.
fn is_disk_side(path: &Path) -> bool {
    path.ancestors().any(|above| {
        above.file_name().is_some_and(|name| name == OWN)
            || fsure_os::path::exists(&above.join(OWN))
    })
}

/// Returns the reason why `ram bind` would refuse it whatever its content; `None` if
/// there is none.
fn unbindable(path: &Path) -> Option<String> {
    let mount = fsure_os::overmount::mount_at(path).ok()?;
    fsure_ram::service::check_file_system(&mount).map(|refusal| refusal.why)
}

/// Returns true if the machine needs it to start, or if nearly all else is below it.
fn is_of_the_system(path: &Path) -> bool {
    const TREES: [&str; 10] =
        ["bin", "boot", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr"];
    const TOPS: [&str; 3] = ["/", "/home", "/var"];
    let mut parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    let is_in_tree = parts.next().is_some_and(|first| TREES.contains(&&*first));
    is_in_tree || TOPS.iter().any(|top| path == Path::new(top))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_core::NullMonitor;

    #[test]
    fn folders_of_the_system_are_known() {
        for (path, is) in [
            ("/", true),
            ("/usr/share/x", true),
            ("/home", true),
            ("/home/user", false),
            ("/users", false),
            ("/var/lib", false),
        ] {
            assert_eq!(is_of_the_system(Path::new(path)), is, "{path}");
        }
    }

    #[test]
    fn the_disk_side_of_a_ram_folder_is_known() {
        let folder = tempfile::tempdir().expect("make a folder");
        let deep = folder.path().join("ram/deep");
        let stage = folder.path().join("ram").join(OWN).join("stage");
        for made in [&deep, &stage] {
            std::fs::create_dir_all(made).expect("make a folder");
        }
        assert!(is_disk_side(&deep) && is_disk_side(&stage));
        assert!(is_disk_side(&folder.path().join("ram")) && !is_disk_side(folder.path()));
    }

    #[test]
    fn what_is_no_folder_is_refused_before_anything_is_watched() {
        let folder = tempfile::tempdir().expect("make a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("write");
        let watch = |path: &Path| {
            let options = HotOptions { below: vec![path.to_owned()], ..HotOptions::default() };
            hot(&options, &NullMonitor).expect_err("refused")
        };
        assert_eq!(watch(&file).exit_code(), ExitCode::Usage);
        assert_eq!(watch(&folder.path().join("none")).exit_code(), ExitCode::Incomplete);
    }
}
