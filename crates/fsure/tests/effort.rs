//! How hard to read, told by hand: it changes how long a run takes and never
//! what it finds. And roots on different disks are read at the same time.

mod support;

use support::{Recorded, Tree, content, fsure, told};

const MIB: usize = 1 << 20;

/// A tree with files of every kind of reading: together, alone, in segments.
fn tree() -> Tree {
    let tree = Tree::new();
    for number in 0..300 {
        tree.write(format!("small/{number:03}"), content(number * 137, number as u64));
    }
    tree.write("middle", content(5 * MIB + 1, 1));
    tree.write("large", content(130 * MIB + 17, 2));
    tree
}

#[test]
fn it_never_changes_what_is_found() {
    let tree = tree();
    let beside = Tree::new();
    let recorded = Recorded::outside(tree.root(), &beside.path("c.db"));
    recorded.record();
    tree.flip("small/123", 5);
    tree.flip("large", 100 * MIB as u64);
    let expected = told(&[("large", "altered"), ("small/123", "altered")]);
    for (threads, depth) in [("1", "1"), ("1", "128"), ("2", "3"), ("64", "1"), ("256", "128")] {
        let found = recorded.run("verify", &["--threads", threads, "--depth", depth]);
        assert_eq!(found.code, 3, "{found:?}");
        assert_eq!(found.told(), expected, "{threads} threads, depth {depth}: {found:?}");
        assert_eq!(found.count("ok"), 300, "{found:?}");
    }
}

#[test]
fn a_rate_is_kept() {
    let tree = Tree::new();
    tree.write("file", content(12 * MIB, 1));
    for number in 0..100 {
        tree.write(format!("small/{number}"), content(40_000, number));
    }
    let beside = Tree::new();
    let recorded = Recorded::outside(tree.root(), &beside.path("c.db"));
    let update = recorded.run("update", &["--rate", "8MiB/s"]);
    assert_eq!(update.code, 0, "{update:?}");
    // 15.8 MiB, of which the last piece is not waited for.
    let seconds = update.summary()["seconds"].as_f64().expect("a number");
    assert!(seconds > 1.5, "{seconds} s");
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for bad in [
        ["--threads", "0"],
        ["--threads", "257"],
        ["--depth", "0"],
        ["--depth", "129"],
        ["--rate", "fast"],
        ["--rate", "0"],
        ["--timeout", "10"],
        ["--timeout", "0s"],
    ] {
        let run = fsure(&["verify", bad[0], bad[1]]);
        assert_eq!(run.code, 2, "{bad:?}: {run:?}");
        assert!(run.stderr.contains(bad[0]), "{bad:?}: {}", run.stderr);
    }
}

/// One root answers only when the other has been verified.
#[cfg(target_os = "linux")]
#[test]
fn roots_on_different_disks_are_read_at_the_same_time() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use support::{FaultyFs, Meanwhile, Moment, Mounted, or_skip};

    fn text(path: &std::path::Path) -> &str {
        path.to_str().expect("a path in UTF-8")
    }

    let test = "roots_on_different_disks_are_read_at_the_same_time";
    let (slow, fast) = (Tree::new(), Tree::new());
    let Some(_memory) = or_skip(test, Mounted::tmpfs(fast.root(), 4096)) else { return };
    for tree in [&slow, &fast] {
        tree.write("file", content(10_000, 1));
        assert_eq!(fsure(&["update", text(tree.root())]).code, 0);
    }
    fast.flip("file", 5);
    let Some(view) = or_skip(test, FaultyFs::new(slow.root())) else { return };
    let fast_catalog = fast.path(".fsure/catalog.db.lock");
    std::fs::remove_file(&fast_catalog).expect("remove the lock file");
    let is_alone = Arc::new(AtomicBool::new(false));
    let is_alone_too = Arc::clone(&is_alone);
    view.faults.lock().expect("not poisoned").meanwhile = Meanwhile::new(move |path, _: Moment| {
        // The other run makes its lock file anew. A minute is time for that.
        let is_there = |_: &u32| fast_catalog.exists() || !path.ends_with("file");
        let wait = |_: u32| std::thread::sleep(std::time::Duration::from_millis(100));
        (0..600).take_while(|round| !is_there(round)).for_each(wait);
        is_alone_too.fetch_or(!is_there(&0), Relaxed);
    });
    let run = fsure(&["verify", text(view.root()), text(fast.root())]);
    assert!(!is_alone.load(Relaxed), "one after the other: {run:?}");
    assert_eq!(run.code, 3, "{run:?}");
    let line = format!("altered      {}/file  ", text(fast.root()));
    assert!(run.stdout.lines().any(|told| told.starts_with(&line)), "{line}: {run:?}");
    assert_eq!(run.stdout.matches("\nWith hash ").count(), 2, "both report: {run:?}");
}
