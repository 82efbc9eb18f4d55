//! Finds out which part of the pipeline is busy first when the storage answers at once:
//! `cargo bench -p fsure-integrity --bench saturation -- FOLDER [FILES [BYTES]]`.
//!
//! The folder belongs on a tmpfs, so that nothing waits for a device. Files are made there if it
//! is empty, 1,000 to a folder. Each row gives the processor time per path of the control thread
//! (one per run, whatever the machine has) and of all other threads together, which grow with
//! the number of cores. `docs/scaling.md` holds a result and what follows from it.

#![allow(clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use fsure_core::{AlgorithmSet, Clock, NullMonitor, RelPath, Result};
use fsure_integrity::catalog::{Catalog, OWN_CATALOG, RootSettings};
use fsure_integrity::model::MetadataFields;
use fsure_integrity::scan::{
    Accept, ContentSource, Forget, IoOptions, Purpose, ScanPlan, UpdateRules, scan,
};
use fsure_integrity::tree::{Patterns, Walk, WalkBounds, WalkOptions};
use fsure_os::filesystem_id;
use fsure_os::physical_order::LocateFiles;
use fsure_os::read::ReadMode;
use fsure_os::root_dir::Root;

const FILES_PER_FOLDER: usize = 1_000;
const NS_PER_S: f64 = 1e9;

fn main() -> Result<()> {
    // Cargo adds an option of its own.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        println!(
            "usage: cargo bench -p fsure-integrity --bench saturation -- FOLDER [FILES [BYTES]]"
        );
        return Ok(());
    };
    let mut number =
        |default| arguments.next().map_or(default, |argument| argument.parse().expect("a number"));
    let (files, bytes) = (number(200_000), number(1));
    let tree = folder.join("tree");
    if !tree.exists() {
        make_tree(&tree, files, bytes);
    }
    let catalog = folder.join("catalog.db");
    println!("{files} files of {bytes} bytes, processor time per path in us:");
    println!("{:34} {:>10} {:>8} {:>8}", "", "paths/s", "control", "others");
    for listers in [1, 2, 4, 8] {
        report(&format!("walk, {listers} listers"), files, || walk(&tree, listers))?;
    }
    for round in 0..2 {
        let _ = fs::remove_file(&catalog);
        let _ = fs::remove_file(folder.join("catalog.db.backup"));
        create_catalog(&tree, &catalog)?;
        let run = |name: &str, purpose: Purpose, listers, readers| {
            let name = format!("{name}, {listers} listers, {readers} readers");
            let run = || run_scan(&tree, &catalog, purpose.clone(), listers, readers);
            if round == 0 { run() } else { report(&name, files, run) }
        };
        run("update, first record", update(false), 2, 2)?;
        for listers in [1, 2, 4, 8] {
            run("status", Purpose::Status, listers, 1)?;
        }
        for readers in [1, 2, 4] {
            run("verify", Purpose::Verify, 2, readers)?;
        }
        run("update --full", update(true), 2, 2)?;
    }
    println!("peak memory: {}", peak_memory());
    Ok(())
}

fn make_tree(tree: &Path, files: usize, bytes: usize) {
    for number in 0..files {
        let folder = tree.join(format!("{:05}", number / FILES_PER_FOLDER));
        if number % FILES_PER_FOLDER == 0 {
            fs::create_dir_all(&folder).expect("make a folder");
        }
        let content = number.to_le_bytes().iter().copied().cycle().take(bytes).collect::<Vec<_>>();
        fs::write(folder.join(format!("{number:08}")), content).expect("write a file");
    }
}

/// Runs `run`, and prints the time that it took per path.
fn report(name: &str, paths: usize, run: impl FnOnce() -> Result<()>) -> Result<()> {
    let (started, thread, process) = (Instant::now(), thread_cpu_ns(), process_cpu_ns());
    run()?;
    let seconds = started.elapsed().as_secs_f64();
    let control_ns = (thread_cpu_ns() - thread) as f64;
    let others_ns = (process_cpu_ns() - process) as f64 - control_ns;
    let per_path = |ns: f64| ns / 1e3 / paths as f64;
    println!(
        "{name:34} {:10.0} {:8.2} {:8.2}",
        paths as f64 / seconds,
        per_path(control_ns),
        per_path(others_ns.max(0.0)),
    );
    Ok(())
}

/// Processor time of this thread, by the scheduler's own statistics.
fn thread_cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}

/// Processor time of this process, ended threads included, to 10 ms.
fn process_cpu_ns() -> u64 {
    const TICKS_PER_S: f64 = 100.0;
    let text = fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = text.rsplit_once(") ").expect("a name").1;
    let ticks: u64 = after_name
        .split(' ')
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().expect("ticks"))
        .sum();
    (ticks as f64 / TICKS_PER_S * NS_PER_S) as u64
}

fn peak_memory() -> String {
    let text = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("not known").trim().to_owned()
}

fn walk_options(listers: usize) -> WalkOptions {
    WalkOptions {
        scope: RelPath::root(),
        patterns: Patterns::new(&[], &[], &[]).expect("no patterns"),
        borders: WalkBounds {
            places: LocateFiles::No,
            catalog_in_root: OWN_CATALOG,
            ..WalkBounds::default()
        },
        listers,
        timeout: IoOptions::default().timeout,
    }
}

fn open(tree: &Path) -> Arc<Root> {
    Arc::new(Root::open(tree).expect("open the tree"))
}

fn walk(tree: &Path, listers: usize) -> Result<()> {
    let mut walk = Walk::start(open(tree), walk_options(listers))?;
    loop {
        match walk.poll() {
            std::task::Poll::Ready(None) => return Ok(()),
            std::task::Poll::Ready(Some(event)) => drop(event?),
            std::task::Poll::Pending => {}
        }
    }
}

fn create_catalog(tree: &Path, catalog: &Path) -> Result<()> {
    let root = open(tree);
    let volume = filesystem_id::of(&root, b"").expect("a file system");
    let inode = root.stat(b"").expect("a stat").inode;
    let digests = AlgorithmSet::default().recordable();
    let settings = RootSettings { digests, cross_file_systems: false };
    Catalog::create(catalog, settings, (volume, inode), Clock::default().now_s())
}

fn update(full: bool) -> Purpose {
    Purpose::Update(UpdateRules {
        full,
        digests: AlgorithmSet::default().recordable(),
        only_completes: false,
        accept: Accept::Nothing,
        forget: Forget::default(),
        only_sizes: None,
    })
}

fn run_scan(
    tree: &Path,
    catalog: &Path,
    purpose: Purpose,
    listers: usize,
    readers: usize,
) -> Result<()> {
    let lock = Catalog::lock(catalog, |_| Ok(()))?;
    let mut catalog = Catalog::open(catalog, Some(lock))?;
    let effort = IoOptions { threads: Some(readers), ..IoOptions::default() };
    let plan = ScanPlan {
        root: open(tree),
        walk: walk_options(listers),
        reads_from: ContentSource::Cache,
        command: "bench",
        must_write: matches!(purpose, Purpose::Update(_)),
        purpose,
        first_way: ReadMode::Direct,
        effort,
        may_write: true,
        binds_claims: false,
        is_list: false,
        meta: MetadataFields::default(),
        force: false,
        report_ok: false,
        clock: Clock::default(),
        scrub: None,
    };
    scan(&plan, &mut catalog, &NullMonitor).map(drop)
}
