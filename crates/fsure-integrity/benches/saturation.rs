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
use std::time::{Duration, Instant};

use fsure_core::{AlgorithmSet, Clock, NullMonitor, Result};
use fsure_integrity::catalog::{Catalog, RootSettings};
use fsure_integrity::scan::{ContentSource, IoOptions, Purpose, ScanPlan, UpdateRules, scan};
use fsure_integrity::tree::{Walk, WalkOptions};
use fsure_os::filesystem_id;
use fsure_os::machine::own_time;
use fsure_os::root_dir::Root;

const FILES_PER_FOLDER: usize = 1_000;

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
    let (started, thread, process) = (Instant::now(), thread_time(), own_time());
    run()?;
    let seconds = started.elapsed().as_secs_f64();
    let control = thread_time() - thread;
    let others =
        own_time().zip(process).map(|(now, before)| (now - before).saturating_sub(control));
    let per_path = |time: Duration| time.as_secs_f64() * 1e6 / paths as f64;
    println!(
        "{name:34} {:10.0} {:8.2} {:8.2}",
        paths as f64 / seconds,
        per_path(control),
        per_path(others.expect("Linux")),
    );
    Ok(())
}

/// Processor time of this thread, by the scheduler's own statistics.
fn thread_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.expect("a number"))
}

fn peak_memory() -> String {
    let text = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("not known").trim().to_owned()
}

fn open(tree: &Path) -> Arc<Root> {
    Arc::new(Root::open(tree).expect("open the tree"))
}

fn walk(tree: &Path, listers: usize) -> Result<()> {
    let options = WalkOptions { listers, ..WalkOptions::whole(IoOptions::default().timeout) };
    let mut walk = Walk::start(open(tree), options)?;
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
    let digests = AlgorithmSet::default().recordable();
    Purpose::Update(UpdateRules { full, ..UpdateRules::new(digests) })
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
    let mut plan = ScanPlan::new(open(tree), purpose);
    plan.walk.listers = listers;
    plan.reads_from = ContentSource::Cache;
    plan.effort.threads = Some(readers);
    plan.may_write = true;
    scan(&plan, &mut catalog, &NullMonitor).map(drop)
}
