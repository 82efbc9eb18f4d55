//! Tests of the reports with the figures of an imaginary machine.

use fsure_os::io_trace::ProcessIo;
use fsure_os::process_tree::{CommandEnd, Ended};

use super::*;
use fsure_hot::placement_advice;
use fsure_hot::placement_advice::FolderUse;

fn node(path: &str, own: IoCounts, children: Vec<FolderNode>) -> FolderNode {
    let mut all = own;
    children.iter().for_each(|child| all.add(&child.all));
    let processes: BTreeSet<_> = [ProcessIo { name: "db\u{1b}".to_owned(), id: 7 }].into();
    let own_processes = processes.clone();
    FolderNode { path: PathBuf::from(path), own, all, own_processes, processes, children }
}

fn hot(source: TraceSource) -> Hot {
    let log = IoCounts { fsyncs: 100, fsync_ns: 1_500_000_000, writes: 100, ..IoCounts::default() };
    let data =
        IoCounts { reads: 2, bytes_read: 1 << 20, missed_ns: 5_000_000, ..IoCounts::default() };
    let far = node("/srv/db/\u{1b}data", data, vec![]);
    let db = node("/srv/db", IoCounts::default(), vec![node("/srv/db/log", log, vec![]), far]);
    let tree = node("/", IoCounts::default(), vec![node("/srv", IoCounts::default(), vec![db])]);
    let seen = FolderUse { durable: 180.0, size: Some(1 << 20), ..FolderUse::default() };
    let recommendation = placement_advice::advise(&seen);
    let unseen = FolderIo {
        place: TracedFolder::Unseen { device: (254, 0), ino: 12 },
        counts: IoCounts { writes: 1, bytes_written: 4096, ..IoCounts::default() },
        processes: BTreeSet::new(),
    };
    let is_best = source == TraceSource::Ebpf;
    Hot {
        source,
        fell_back: (!is_best).then(|| "refused".to_owned()),
        seconds: 30.0,
        tree,
        unseen: vec![unseen],
        advised: if is_best {
            vec![Advised { path: PathBuf::from("/srv/db"), seen, recommendation }]
        } else {
            vec![]
        },
        blind: vec!["an msync".to_owned()],
        lost: vec![("names".to_owned(), 3)],
        command: None,
        processes_left: 0,
        metadata: None,
        logged: None,
        history: None,
        ended_by: None,
    }
}

#[test]
fn the_tree_has_the_hottest_first_and_nothing_that_only_leads_there() {
    let text = text(&hot(TraceSource::Ebpf), By::Saved);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].ends_with("advice  folder"), "{text}");
    assert!(lines[1].ends_with("bind    /srv/db"), "{text}");
    assert!(lines[1].trim_start().starts_with("181  "), "seconds per hour: {text}");
    assert!(lines[2].ends_with("  log"), "{text}");
    assert!(lines[3].ends_with("  \\x1bdata"), "{text}");
    assert!(lines[4].ends_with("<deleted or not visible> 254:0:12"), "{text}");
    assert_eq!(
        lines[5..],
        ["Watched for 30.0 s by ebpf. Not seen: an msync. LOST: 3 names."],
        "{text}"
    );
    let read = super::text(&hot(TraceSource::Ebpf), By::Read);
    assert!(read.find("data").unwrap() < read.find("log").unwrap(), "{read}");
}

#[test]
fn a_figure_that_a_source_lacks_is_not_zero() {
    let hot = hot(TraceSource::Fanotify);
    let text = text(&hot, By::Saved);
    let log = text.lines().find(|line| line.contains("log")).unwrap();
    let cells: Vec<_> = log.split_whitespace().collect();
    assert_eq!(cells, ["?", "?", "?", "?", "?", "?", "200", "1", "log"]);
    assert!(text.contains("by fanotify. eBPF is not available: refused."), "{text}");
    assert!(advice_text(&hot).starts_with("No advice"));
    let line: serde_json::Value = serde_json::from_str(&folder_lines(&hot, By::Saved)[0]).unwrap();
    for field in ["fsync_ms", "bytes_written", "bytes_read", "fsyncs", "advice"] {
        assert!(line[field].is_null(), "{field}: {line}");
    }
    assert_eq!(line["writes"], 100);
}

#[test]
fn lines_for_programs_are_the_folders_own() {
    let hot = hot(TraceSource::Ebpf);
    let lines: Vec<serde_json::Value> = folder_lines(&hot, By::Saved)
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let paths: Vec<_> = lines.iter().map(|line| line["path"].as_str().unwrap()).collect();
    let gone = "<deleted or not visible> 254:0:12";
    assert_eq!(paths, ["/srv/db/log", "/srv/db/\u{1b}data", gone]);
    assert_eq!((&lines[0]["fsync_ms"], &lines[0]["advice"]), (&1500.0.into(), &"bind".into()));
    assert_eq!((&lines[2]["is_visible"], &lines[2]["advice"]), (&false.into(), &().into()));
    let advice: serde_json::Value = serde_json::from_str(&advice_lines(&hot)[0]).unwrap();
    assert_eq!((&advice["type"], &advice["memory_bytes"]), (&"advice".into(), &(1 << 20).into()));
    let last = summary_line(&hot, fsure_core::ExitCode::Clean);
    let last: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!((&last["source"], &last["writes"]), (&"ebpf".into(), &101.into()));
    assert_eq!(last["lost"][0]["count"], 3);
}

#[test]
fn advice_names_its_cost() {
    let text = advice_text(&hot(TraceSource::Ebpf));
    let start = "bind     /srv/db\n         saves 180 s per hour (5.00 % of the time); needs 1.0 MiB; holds: unknown\n";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn advice_on_a_command_gives_the_share_of_its_time() {
    let mut hot = hot(TraceSource::Ebpf);
    let time = std::time::Duration::from_secs(3);
    hot.command = Some(CommandEnd { ended: Ended::Code(0), time, asked: None });
    hot.seconds = 3.0;
    hot.advised[0].seen.scope = hot.scope();
    hot.advised[0].seen.durable = 900.0;
    let text = advice_text(&hot);
    assert!(text.contains("saves 25.0 % of its time (1.33 times as fast); needs"), "{text}");
    assert!(text.contains("It waited for the device for 1.50 s, 50.2 % of its time."), "{text}");
    hot.seconds = 1.0;
    hot.advised[0].seen.durable = 5400.0;
    let text = advice_text(&hot);
    assert!(text.contains("saves all of its time (several processes wait at once)"), "{text}");
    assert!(text.contains("It waited for the device for 1.50 s. "), "{text}");
}
