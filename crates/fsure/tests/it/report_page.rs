//! `fsure report`: what stands on the page, that names stay text, and what is
//! refused.

use crate::support;
use std::path::{Path, PathBuf};

use crate::support::fsure;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/results").join(name)
}

fn all() -> Vec<String> {
    let names = ["speed.jsonl", "flush-cut.jsonl", "verify.jsonl", "age.jsonl"];
    names.map(|name| data(name).to_string_lossy().into_owned()).into()
}

fn report(results: &[String], page: &Path) -> support::Run {
    let mut args = vec!["report".to_owned()];
    args.extend_from_slice(results);
    args.extend(["-o".to_owned(), page.to_string_lossy().into_owned()]);
    fsure(&args)
}

#[test]
fn the_page_shows_everything_and_names_stay_text() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let run = report(&all(), &page);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<svg ").count(), 12);
    assert_eq!(html.matches("<script").count(), 1);
    assert_eq!(html.matches("data-verdict=").count(), 44);
    for part in [
        "default-src 'none'",
        "void",
        "memory copy",
        "bindfs is not installed",
        "verify would run at 98.2 % of this device",
        "CUT OFF",
        "FREE_FLUSH",
        "<h1>1 of 151,244 files is damaged</h1>",
        "Folders with findings",
        "SUSPICIOUS files",
        "damaged bytes 1048576-3145728",
        "bad\\xff",
        "\\u{202e}",
        "Verified longest ago: 2023-01-05 10:00:00, 2009&#x2f;a.tif",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let absent =
        ["<b>&", "alert(1)</script>", "\u{202e}", "\u{1b}", "NaN", "http:", "https:", "not told"];
    for part in absent {
        assert!(!html.contains(part), "{part}");
    }
    assert!(!html.contains("\\n") && !html.contains(" 1 findings"), "a fault of the template");
}

/// The page of one result.
fn page_of(name: &str, more: &[&str]) -> String {
    let path = data(name);
    let mut args = vec!["report", path.to_str().unwrap(), "-o", "-"];
    args.extend_from_slice(more);
    let run = fsure(&args);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{name}");
    run.stdout
}

/// The verdict is the first thing on a page, and it is there for all commands.
#[test]
fn each_command_has_a_verdict() {
    for (name, grade, sentence) in [
        ("verify-good.jsonl", "good", "All 6 files are as recorded"),
        ("verify-damaged.jsonl", "bad", "2 of 1,204 files are damaged"),
        ("heal.jsonl", "bad", "1 of 1,203 files is damaged"),
        ("age.jsonl", "warn", "66.3 % of 151,244 files verified in the last three months"),
        ("compare.jsonl", "warn", "3 differences; 1,200 files of the same content"),
        ("dupes.jsonl", "plain", "81.0 MiB could be saved"),
        ("log.jsonl", "bad", "1 file is known to be damaged"),
        ("recover.jsonl", "bad", "2 rows are lost of the record"),
        ("protect.jsonl", "warn", "1 file is NOT PROTECTED"),
        ("crash-matrix.jsonl", "bad", "1 cell came out otherwise than expected"),
        ("powercut.jsonl", "bad", "8 blocks do not hold what was acknowledged last"),
        ("hot.jsonl", "plain", "Programs waited 22.1 s for storage in 60 s"),
        ("hot-history.jsonl", "plain", "Programs waited 22.1 s for storage in 9:00:00"),
        ("ram-try.jsonl", "plain", "The command is 8 times as fast in memory"),
        ("flush-trace.jsonl", "plain", "216 flushes took 3.6 s of 5 s (72 %)"),
        ("defer.jsonl", "good", "All was durable after 641 ms at most"),
        ("ram-status.jsonl", "bad", "Something is wrong with 1 of 2 RAM folders"),
        ("speed.jsonl", "plain", "The disk reads 511 MiB&#x2f;s and writes 305 MiB&#x2f;s durably"),
        ("speed-io.jsonl", "bad", "1 of 20 places of &#x2f;dev&#x2f;sdb could not be read"),
        ("speed-tree.jsonl", "warn", "Reading through the page cache costs 47 % of the speed"),
        ("flush-second.jsonl", "good", "A durable write with fdatasync takes 13 ms"),
    ] {
        let html = page_of(name, &[]);
        assert!(html.contains(&format!("<header class=\"band {grade}\">")), "{name}: {grade}");
        let verdict = html.split_once("<h1>").unwrap().1.split_once("</h1>").unwrap().0;
        assert!(verdict.contains(sentence), "{name}: {verdict}");
    }
}

#[test]
fn requests_are_shown_by_depth_over_time_and_over_the_area() {
    let html = page_of("speed-io.jsonl", &[]);
    for part in [
        "fsure speed --io random,sustained,area",
        "10,331 random reads a second (34,811 with 32 at a time)",
        "until its fast cache of about 2.8 GiB is used up after 5 s, and 98.4 MiB&#x2f;s from then",
        ">random write, 32 at a time</text>",
        "99 % take less than",
        ">MiB/s over seconds</text>",
        "&lt;b&gt;",
        "1 places could not be read",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(html.matches("<svg ").count(), 3);
    assert_eq!(html.matches("class=\"limit\"").count(), 1, "the place that could not be read");
    let anonymous = page_of("speed-io.jsonl", &["--anonymous"]);
    assert!(!anonymous.contains("srv&#x2f;max") && !anonymous.contains(">nas<"));
}

#[test]
fn the_flushes_of_a_command_are_shown_by_kind_and_file() {
    let html = page_of("flush-trace.jsonl", &[]);
    for part in [
        "would save 3.2 s at most (64 %)",
        "1 process of the command still ran at its end.",
        "LOST: 3 flushes for which there was no room.",
        "db-journal (since removed or renamed)",
        "&lt;b&gt;db",
        "what programs of 32 bits do",
        ">in those that can be deferred</text>",
        ">O_DSYNC write (no file)</text>",
        "91 ms",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(html.matches("<svg ").count(), 2);
    assert!(html.contains("max&#x2f;bank") && html.contains(">nas<"));
    let anonymous = page_of("flush-trace.jsonl", &["--anonymous"]);
    assert!(!anonymous.contains("max&#x2f;bank") && !anonymous.contains(">nas<"));
}

#[test]
fn the_price_of_the_page_cache_is_drawn_beside_what_the_device_can_give() {
    let html = page_of("speed-tree.jsonl", &[]);
    for part in [
        "fsure speed --tree &#x2f;home&#x2f;max&#x2f;bank &lt;b&gt;",
        "Memory (1.0 GiB) was full after 1.3 s: ",
        "1.1 MiB of them were pushed out of memory",
        ">past the cache: the reference</text>",
        ">965 MiB/s</text>",
        ">loss by round 47 % (31 to 49)</text>",
        ">files in the page cache, MiB</text>",
        ">memory is full</text>",
        ">through a purged cache</text>",
        "Kernel s&#x2f;GiB",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(html.matches("<svg ").count(), 2);
    assert!(!html.contains("bank <b>") && !html.contains("Side by side"));
    let anonymous = page_of("speed-tree.jsonl", &["--anonymous"]);
    assert!(!anonymous.contains("max&#x2f;bank") && !anonymous.contains(">nas<"));
    assert!(anonymous.contains("bank &lt;b&gt;"));
}

#[test]
fn a_log_of_calls_and_intervals_is_known_and_a_loss_is_shown() {
    let html = page_of("hot.jsonl", &[]);
    for part in [
        "The result has 1 single call, too, with time, program and file.",
        "LOST: 7 calls that are not in the log.",
        "Programs that wait, over time",
        ">ms waited in a second, over seconds</text>",
        "postgres: 1.2 s in all; rsync: 36 ms in all",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("were passed over"));
}

#[test]
fn a_history_says_which_time_it_covers() {
    let html = page_of("hot-history.jsonl", &[]);
    for part in [
        "Recorded in 54 intervals from 2026-11-24 01:00:00 to 2026-11-25 03:00:00 UTC.",
        "Not recorded: 17:00:00, with 1 gap; no figure takes it for quiet.",
        ">ms waited in a second, over hours</text>",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_trial_shows_times_ratios_and_what_was_refused() {
    let html = page_of("ram-try.jsonl", &[]);
    for part in [
        "With the time of its copies it is 4 times as fast.",
        "Not run deferred: ext4 at &#x2f; does not keep the order of &lt;b&gt;writes.",
        "8 (7 to 9.5)",
        "The command is 8 times as fast (7 to 9.5) in memory, with",
        "loses up to 1 s",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(html.matches("<svg ").count(), 1);
}

/// A picture says how many times as fast each of several commands is: the second of two results is
/// the first one again.
#[test]
fn several_trials_are_drawn_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let again = folder.path().join("2-git-clone,-idle.jsonl");
    std::fs::copy(data("ram-try.jsonl"), &again).unwrap();
    let html = page_of("ram-try.jsonl", &[again.to_str().unwrap()]);
    let title = ">Side by side: 2 commands in memory<";
    let (_, section) = html.split_once(title).expect("the section");
    for part in [
        ">How many times as fast is each command in memory as on the disk?<",
        ">git clone, idle</text>",
        ">ram try</text>",
        ">8.00</text>",
        ">7.00 to 9.50</text>",
    ] {
        assert!(section.contains(part), "{part}");
    }
    assert_eq!(html.matches("<svg ").count(), 3);
    // A file system is named if all trials had it.
    let older = std::fs::read_to_string(data("ram-try.jsonl")).unwrap();
    let newer = older.replace("\"max_loss_ms\"", "\"file_system\":\"xfs\",\"max_loss_ms\"");
    let both = [again, folder.path().join("3-git-gc.jsonl")];
    both.iter().for_each(|path| std::fs::write(path, &newer).unwrap());
    let [one, other] = both.each_ref().map(|path| path.to_str().unwrap());
    let html = page_of(one, &[other]);
    assert!(html.contains(" in memory as on the disk (xfs)?<"), "{html}");
    assert!(page_of("ram-try.jsonl", &[one]).contains(" in memory as on the disk?<"));
}

#[test]
fn a_receipt_says_who_when_and_what() {
    let html = page_of("verify-good.jsonl", &[]);
    for part in [
        "fsure verify &#x2f;home&#x2f;max&#x2f;photos",
        "2026-11-25 03:22:34 UTC",
        "nas",
        "generation 14",
        "6, 6.2 MiB (6,501,171 bytes) judged",
        "key A1B2C3D4E5F60718",
        "5f5f5f5f",
        "Signature:",
        "0: all is as it should be",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn folders_are_drawn_by_the_age_of_their_verification() {
    let html = page_of("age.jsonl", &[]);
    let picture = html.split_once("Folders by their last verification").expect("a treemap").1;
    for part in [
        "2009: 71.3 GiB longer ago or never",
        "2023/winter: 195.6 GiB in 91 days, 117.3 GiB in 365 days",
        "2025: 203.4 GiB in 30 days",
        "(top): 667.6 MiB in 30 days",
    ] {
        assert!(picture.contains(part), "{part}: {}", &picture[..2000.min(picture.len())]);
    }
    // 39,300, 100,300 and 140,300 of 151,244 files.
    for share in ["25.9 %", "66.3 %", "92.7 %"] {
        assert!(html.contains(share), "{share}");
    }
}

#[test]
fn damage_is_mapped_and_findings_come_before_counts() {
    let html = page_of("verify-damaged.jsonl", &[]);
    let place = |part: &str| html.find(part).unwrap_or_else(|| panic!("{part}"));
    assert!(place("<h3>Findings</h3>") < place("<h3>Counts</h3>"));
    // Each has its title in the drawing, and once more for who does not see it.
    assert_eq!(html.matches(">Map of ").count(), 4);
    for part in [
        "651.9 GiB",
        "1 difference in metadata",
        "size was 503,316,489 bytes, is 503,316,485 bytes",
        "date was 2024-05-01 12:00:00.25, is 2024-05-01 12:00:00.5",
        "is another file system and left out",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("touched"), "a count of zero");
}

#[test]
fn two_drives_are_compared_with_the_marks_of_databases() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let names = ["speed.jsonl", "speed-second.jsonl", "flush-cut.jsonl", "flush-second.jsonl"];
    let results = names.map(|name| data(name).to_string_lossy().into_owned());
    assert_eq!(report(&results, &page).code, 0);
    let html = std::fs::read_to_string(&page).unwrap();
    for part in [
        "Side by side: throughput of 2 results",
        "Side by side: flushes of 2 results",
        "Not alike: machine: ",
        "Against A",
        "Which of these for what",
        "Apple SSD, Linux, fsync (46/s)",
        "WD40EFRX",
        "etcd: 99 % in less than 10 ms (its FAQ)",
        "PostgreSQL and SQLite publish no mark",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

/// The pictures of two results that the program has made: bars of both, grey ones of known
/// drives with their sources, a title on the paper, and no line break that is none.
#[test]
fn drives_are_drawn_side_by_side_with_what_others_have_measured() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let charts = folder.path().join("charts");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/choose-a-disk");
    let results = ["fast.jsonl", "slow.jsonl"].map(|name| examples.join(name));
    let results = results.map(|path| path.to_str().unwrap().to_owned());
    let svg = ["--svg", charts.to_str().unwrap(), "-o", page.to_str().unwrap()];
    let arguments: Vec<&str> = results.iter().map(String::as_str).chain(svg).collect();
    assert_eq!(fsure(&[&["report"], &arguments[..]].concat()).code, 0);
    let svg = charts.join("01-time-of-a-durable-write-fdatasync.svg");
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains(">Time of a durable write: fdatasync</text>"), "{svg}");
    assert_eq!(svg.matches("class=\"reference\"").count(), 6, "{svg}");
    assert_eq!(svg.matches("class=\"whisker\"").count(), 2, "{svg}");
    assert!(svg.contains(" ms</text>") && !svg.contains("\\n"), "{svg}");
    let html = std::fs::read_to_string(&page).unwrap();
    for part in ["times slower than A", "Hector Martin, thread", "Suits", "Not alike: during A"] {
        assert!(html.contains(part), "{part}");
    }
    let twice = [results[0].clone(), results[0].clone()];
    assert_eq!(report(&twice, &page).code, 0);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("are the same result"), "one that is there twice is not compared");
}

#[test]
fn an_anonymous_page_names_nobody() {
    let secrets =
        ["nas", "max", "S3R14LNUMBER", "WD-WCC4E", "archive-", "A1B2C3D4", "/srv/archive/"];
    for entry in std::fs::read_dir(data("")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let html = page_of(name, &["--anonymous"]);
        let text = html.split_once("</style>").unwrap().1.replace("&#x2f;", "/");
        for secret in secrets {
            let is_word = |(place, _): (usize, &str)| {
                let end = text[place + secret.len()..].chars().next();
                let before = text[..place].chars().next_back();
                ![before, end].into_iter().flatten().any(char::is_alphanumeric)
                    || !secret.chars().all(char::is_alphabetic)
            };
            assert!(!text.match_indices(secret).any(is_word), "{name}: {secret}");
        }
        assert!(text.contains("are left out"), "{name}");
    }
    assert!(page_of("verify-good.jsonl", &[]).contains("--anonymous"), "the other page says how");
}

#[test]
fn the_page_says_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("a page.html");
    let run = report(&all()[..1], &page);
    let lines: Vec<_> = run.stdout.lines().collect();
    let size = std::fs::metadata(&page).unwrap().len();
    assert!(lines[0].starts_with("Page: ") && lines[0].ends_with("KiB)"), "{lines:?}");
    assert!(lines[1].starts_with("Open it in a browser: file:///"), "{lines:?}");
    assert!(lines[1].ends_with("/a%20page.html"), "{lines:?}");
    let page = page.to_str().unwrap();
    let quiet = fsure(&["report", &all()[0], "-o", page, "--quiet"]);
    assert_eq!((quiet.code, quiet.stdout.as_str()), (0, ""));
    let json = fsure(&["report", &all()[0], "-o", page, "--json"]);
    let last = json.stdout.lines().last().unwrap();
    let line: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!((line["page"].as_str(), line["bytes"].as_u64()), (Some(page), Some(size)));
}

/// Whatever the output or the input is: an end, and never a wait.
#[test]
fn pipes_never_hang() {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};
    let result = data("verify.jsonl");
    for output in ["-", "/dev/stdout"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fsure"));
        child.args(["report", "-o", output]).arg(&result).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut first = [0; 15];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        assert_eq!(&first, b"<!doctype html>", "{output}");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{output}: the reader has left");
    }
    for input in ["-", "/dev/stdin"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fsure"));
        child.args(["report", input, "-o", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&std::fs::read(&result).unwrap()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stdout.ends_with(b"</html>\n"), "{input}");
    }
    // Its own output as its input has no end that it could wait for.
    let mut child = Command::new(env!("CARGO_BIN_EXE_fsure"));
    child.args(["report", "/dev/stdout", "-o", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = child.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}

#[test]
fn a_line_that_is_none_is_named_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let (result, page) = (folder.path().join("r.jsonl"), folder.path().join("page.html"));
    let text = std::fs::read_to_string(data("verify-good.jsonl")).unwrap();
    std::fs::write(&result, text.replacen("{\"type\": \"progress\"", "oops", 1)).unwrap();
    let run = report(&[result.to_str().unwrap().to_owned()], &page);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("line 2: fsure did not write this line"), "{}", run.stderr);
    assert!(!page.exists());
}

#[test]
fn only_a_page_is_replaced_and_only_results_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    assert_eq!(report(&all(), &page).code, 0);
    assert_eq!(report(&all()[..1], &page).code, 0, "a page is replaced");
    let other = folder.path().join("other");
    std::fs::write(&other, "mine").unwrap();
    let run = report(&all(), &other);
    assert!(
        run.code == 2
            && run.stderr.contains("is there and is not a page or chart of 'fsure report'"),
        "{}",
        run.stderr
    );
    assert_eq!(std::fs::read(&other).unwrap(), b"mine");
    let results = [other.to_string_lossy().into_owned()];
    let run = report(&results, &page);
    assert!(run.code == 5 && run.stderr.contains("is not a result"), "{}", run.stderr);
    assert_eq!(report(&["/nonexistent".to_owned()], &page).code, 5);
}

#[test]
fn several_roots_are_shown_apart_and_not_only_added_up() {
    let (bad, good) = (support::Tree::new(), support::Tree::new());
    for tree in [&bad, &good] {
        tree.write("a", "a");
        assert_eq!(fsure(&["update".as_ref(), tree.root().as_os_str()]).code, 0);
    }
    bad.flip("a", 0);
    let run = fsure(
        &["verify".as_ref(), bad.root(), good.root(), "--json".as_ref()]
            .map(|word: &Path| word.as_os_str()),
    );
    assert_eq!(run.code, 3, "{run:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let (results, page) = (folder.path().join("v.json"), folder.path().join("page.html"));
    std::fs::write(&results, &run.stdout).expect("write");
    assert_eq!(report(&[results.to_str().expect("text").to_owned()], &page).code, 0);
    let page = std::fs::read_to_string(&page).expect("read");
    assert!(page.contains("<h1>1 of 2 files is damaged</h1>"), "over all roots");
    let each = page.split_once("<h3>Each root</h3>").expect("told apart").1;
    let each = each.split_once("</table>").expect("a table").0;
    assert!(each.contains(">3</td><td>1 altered</td>"), "{each}");
    assert!(each.contains(">0</td><td>1 ok</td>"), "{each}");
}
