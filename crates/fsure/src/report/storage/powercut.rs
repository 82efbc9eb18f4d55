//! `powercut` for a person: what comes to pass, line by line, and what a check
//! comes to.

use fsure_core::{count, safe};
use fsure_measure::flush_verdict::thresholds::CUTS_MIN;
use fsure_powercut::{CheckState, CheckSummary, Message, MethodResult, RunBegins};

/// The words of a line; no line end. The methods of a check make a table, of
/// which `is_first` gets the head.
pub fn text(line: &Message, is_first: bool) -> String {
    match line {
        Message::Listening { address } => format!("listening at {address}"),
        Message::Writer { run, host, folder, acked: 0 } => {
            format!("run {} begins: {} on {}", safe(run), safe(folder), safe(host))
        }
        Message::Writer { run, acked, .. } => {
            format!("run {} is heard again, after {} writes", safe(run), count(*acked))
        }
        Message::Silence { run, acked, is_ended: true } => {
            format!("run {} has ended: {} writes", safe(run), count(*acked))
        }
        Message::Silence { run, acked, is_ended: false } => {
            let acked = count(*acked);
            format!("run {} is silent: {acked} writes acknowledged, and kept", safe(run))
        }
        Message::Asked { run } => format!("run {} is checked", safe(run)),
        Message::Run(run) => begins(run),
        Message::Cutting { seconds, is_resting } => {
            let how = if *is_resting { "at rest" } else { "while writing" };
            format!("after {seconds:.1} s, {how}: starting the command that cuts the power")
        }
        Message::Written { run, acked, seconds, is_ended } => {
            let (run, acked) = (safe(run), count(*acked));
            let how = match is_ended {
                true => "the run has ended: there is nothing to check",
                false => "if the power was cut, run 'fsure powercut check' now",
            };
            format!("run {run}: {acked} writes in {seconds:.1} s; {how}")
        }
        Message::Method(method) if is_first => format!("{HEAD}\n{}", row(method)),
        Message::Method(method) => row(method),
        Message::Summary(summary) => self::summary(summary),
    }
}

fn begins(run: &RunBegins) -> String {
    let drive = match (&run.device, &run.unknown) {
        (Some(device), _) => format!(
            "drive: {}, serial {}, firmware {}",
            safe(device.model.as_deref().unwrap_or("model not known")),
            safe(&device.serial),
            safe(device.firmware.as_deref().unwrap_or("not known"))
        ),
        (None, why) => format!(
            "the drive cannot be identified, so the result will not be kept: {}",
            safe(why.as_deref().unwrap_or("nothing is known of it"))
        ),
    };
    format!(
        "run {} in {}\n{drive}\nmethods: {}\npatterns: {}\nCut the power at any moment now. Then \
         start the machine, mount the file system, and run 'fsure powercut check'.",
        safe(&run.run),
        safe(&run.folder),
        run.methods.join(", "),
        run.patterns.join(", ")
    )
}

const HEAD: &str = "method                        acked   lost    old   torn  misdirected  reordered  \
                    oldest  extra";

fn row(method: &MethodResult) -> String {
    let oldest = method.oldest_lost_ms.map_or("-".to_owned(), |ms| format!("{ms} ms"));
    format!(
        "{:24} {:>10} {:>6} {:>6} {:>6} {:>12} {:>10} {:>7} {:>6}",
        safe(&method.method),
        count(method.acked),
        count(method.lost),
        count(method.old),
        count(method.torn),
        count(method.misdirected),
        count(method.reordered),
        oldest,
        count(method.extra),
    )
}

fn summary(summary: &CheckSummary) -> String {
    let acked = count(summary.acked);
    let mut text = match summary.state {
        CheckState::Passed => {
            format!("passed: the content of all {acked} acknowledged writes is there")
        }
        CheckState::Failed => format!(
            "FAILED: {} blocks do not hold their last acknowledged content, of {acked} \
             acknowledged writes: do not trust this storage with data that has no other copy",
            count(summary.failed)
        ),
        CheckState::NothingShown => "nothing is shown".to_owned(),
    };
    if let Some(why) = &summary.why {
        text += &format!("\n{}", safe(why));
    }
    if let Some(cuts) = &summary.cuts {
        let (made, lost) = (count(cuts.made), count(cuts.lost));
        text += &format!("\nthis drive: {made} cuts so far, {lost} blocks lost");
        if cuts.lost == 0 && cuts.made < CUTS_MIN {
            text += &format!("; {CUTS_MIN} are needed for a result, so make more cuts");
        }
    }
    if summary.state == CheckState::Passed && summary.read == "cached" {
        text += "\nread through the page cache: this shows what is on the medium only if the \
                 machine was restarted";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_powercut::{DriveHistory, TestedDevice};

    fn method() -> MethodResult {
        MethodResult {
            method: "direct-fdatasync".to_owned(),
            acked: 51_234,
            lost: 7,
            old: 0,
            torn: 1,
            misdirected: 0,
            reordered: 3,
            oldest_lost_ms: Some(1_204),
            extra: 1,
        }
    }

    #[test]
    fn a_table_has_its_columns_below_each_other() {
        let reported = text(&Message::Method(method()), true);
        let lines: Vec<_> = reported.lines().collect();
        assert_eq!(lines.len(), 2);
        for (name, figure) in
            [("acked", "51,234"), ("lost", "7"), ("reordered", "3"), ("extra", "1")]
        {
            let end = lines[0].find(name).unwrap() + name.len();
            assert!(lines[1][..end].ends_with(figure), "{name}:\n{reported}");
        }
        assert_eq!(text(&Message::Method(method()), false), lines[1]);
    }

    #[test]
    fn a_check_names_the_next_command() {
        let device = TestedDevice {
            serial: "S".to_owned(),
            firmware: None,
            model: Some("\u{1b}".to_owned()),
        };
        let passed = CheckSummary {
            run: Some("r".to_owned()),
            state: CheckState::Passed,
            acked: 1_000,
            failed: 0,
            heard_ms: 5,
            read: "cached",
            device: Some(device),
            cuts: Some(DriveHistory { made: 3, acknowledged: 3_000, lost: 0 }),
            why: None,
            exit_code: 0,
        };
        let reported = text(&Message::Summary(passed.clone()), false);
        for part in
            ["passed: the content of all 1,000", "3 cuts so far", "make more cuts", "page cache"]
        {
            assert!(reported.contains(part), "{reported}");
        }
        let failed =
            CheckSummary { state: CheckState::Failed, failed: 2, cuts: None, ..passed.clone() };
        let reported = text(&Message::Summary(failed), false);
        assert!(reported.starts_with("FAILED: 2 blocks"), "{reported}");
        let why = Some("a \u{1b}[1m reason".to_owned());
        let nothing = CheckSummary { state: CheckState::NothingShown, why, cuts: None, ..passed };
        let reported = text(&Message::Summary(nothing), false);
        assert_eq!(reported, "nothing is shown\na \\x1b[1m reason");
    }
}
