//! Reports the results of a run as metrics in the text format of Prometheus, for the
//! textfile collector of its `node_exporter`: one set of samples for each root.

use std::fmt::Write as _;

use fsure_core::ExitCode;
use fsure_integrity::model::{AgeBucket, AgeHistogram, Outcome, ScrubSummary, Verdict};

/// The data that is reported of one root.
#[derive(Clone, Debug)]
pub struct RootMetrics {
    /// The root folder, as text.
    pub root: String,
    /// Result of the run; `None` if it ended with an error.
    pub outcome: Option<Outcome>,
    /// Amounts of its files by the time at which they were verified; `None` if its record
    /// does not have these times.
    pub ages: Option<AgeHistogram>,
    /// Exit code of its run.
    pub code: ExitCode,
}

/// The metrics of one call, which ended at `now_s`, seconds since 1970.
pub fn metrics(command: &str, now_s: i64, roots: &[RootMetrics]) -> String {
    let mut page = MetricsPage { text: String::new(), command, roots };
    page.of_the_run(now_s);
    page.of_the_outcome();
    page.of_the_ages();
    page.of_the_scrub();
    page.text
}

struct MetricsPage<'a> {
    text: String,
    command: &'a str,
    roots: &'a [RootMetrics],
}

/// A label besides those that all samples have, and a value.
type Sample = (Option<(&'static str, &'static str)>, f64);

impl MetricsPage<'_> {
    fn of_the_run(&mut self, now_s: i64) {
        self.add("last_run_timestamp_seconds", "When the last run ended.", &|_| {
            vec![(None, now_s as f64)]
        });
        self.add("last_run_exit_code", "Exit code of the last run; 0 is clean.", &|root| {
            vec![(None, f64::from(root.code.number()))]
        });
        self.add("last_run_duration_seconds", "How long the last run took.", &|root| {
            let seconds = root.outcome.as_ref().map(|outcome| outcome.seconds);
            seconds.map(|seconds| (None, seconds)).into_iter().collect()
        });
    }

    fn of_the_outcome(&mut self) {
        let by_verdict = |of: &dyn Fn(Verdict) -> u64| -> Vec<Sample> {
            let sample = |verdict: Verdict| (Some(("verdict", verdict.name())), of(verdict) as f64);
            Verdict::ALL.map(sample).into()
        };
        let outcome = |root: &RootMetrics, of: &dyn Fn(&Outcome) -> Vec<Sample>| {
            root.outcome.as_ref().map(of).unwrap_or_default()
        };
        self.add("files", "Files that the last run judged, by verdict.", &|root| {
            outcome(root, &|o| by_verdict(&|verdict| o.files.of(verdict)))
        });
        self.add("file_bytes", "Bytes of these files, by verdict.", &|root| {
            outcome(root, &|o| by_verdict(&|verdict| o.file_bytes.of(verdict)))
        });
        self.add("read_bytes", "Bytes that the last run read, by the way they came.", &|root| {
            outcome(root, &|o| {
                let ways = [
                    ("direct", o.bytes.direct),
                    ("remote", o.bytes.remote),
                    ("dontcache", o.bytes.dontcache),
                    ("dropped", o.bytes.dropped),
                    ("cached", o.bytes.cached),
                ];
                ways.map(|(way, bytes)| (Some(("way", way)), bytes as f64)).into()
            })
        });
    }

    fn of_the_ages(&mut self) {
        let ages = |root: &RootMetrics, of: &dyn Fn(&AgeHistogram) -> Option<f64>| {
            let value = root.ages.as_ref().and_then(of);
            value.map(|value| (None, value)).into_iter().collect::<Vec<Sample>>()
        };
        self.add("recorded_files", "Files in the record.", &|root| {
            ages(root, &|ages| Some(ages.total().files as f64))
        });
        self.add("recorded_bytes", "Bytes of the files in the record.", &|root| {
            ages(root, &|ages| Some(ages.total().bytes as f64))
        });
        self.add("never_verified_files", "Recorded files that were never verified.", &|root| {
            ages(root, &|ages| Some(ages.of(AgeBucket::Never).files as f64))
        });
        let help = "Files that an earlier run found damaged and that nothing has settled since, \
                    by verdict.";
        self.add("known_damage_files", help, &|root| {
            let of = |ages: &AgeHistogram| -> Vec<Sample> {
                let damage = Verdict::ALL.into_iter().filter(|verdict| verdict.is_damage());
                let sample = |verdict: Verdict| {
                    (Some(("verdict", verdict.name())), ages.known_damage.of(verdict) as f64)
                };
                damage.map(sample).collect()
            };
            root.ages.as_ref().map(of).unwrap_or_default()
        });
        self.add(
            "known_damage_since_timestamp_seconds",
            "When the first of it was found.",
            &|root| ages(root, &|ages| ages.damaged_since_s.map(|since_s| since_s as f64)),
        );
        let help = "When the file was verified that was verified longest ago, of those that ever \
                    were.";
        self.add("oldest_verification_timestamp_seconds", help, &|root| {
            ages(root, &|ages| ages.oldest.as_ref().map(|(_, verified_s)| *verified_s as f64))
        });
    }

    fn of_the_scrub(&mut self) {
        let scrub = |root: &RootMetrics, of: &dyn Fn(&ScrubSummary) -> u64| {
            let scrub = root.outcome.as_ref().and_then(|outcome| outcome.scrub.as_ref());
            scrub.map(|scrub| (None, of(scrub) as f64)).into_iter().collect::<Vec<Sample>>()
        };
        self.add("scrub_due_files", "Files that were due when the last scrub began.", &|root| {
            scrub(root, &|scrub| scrub.due_files)
        });
        self.add("scrub_left_files", "Of these, files that it left for the next.", &|root| {
            scrub(root, &ScrubSummary::left_files)
        });
        self.add("scrub_left_bytes", "Bytes that the last scrub left for the next.", &|root| {
            scrub(root, &ScrubSummary::left_bytes)
        });
        let help = "Files that no scrub with this budget can verify.";
        self.add("scrub_too_large_files", help, &|root| {
            scrub(root, &|scrub| scrub.too_large_files)
        });
    }

    /// A family: nothing at all where no root has a sample.
    fn add(&mut self, name: &str, help: &str, samples: &dyn Fn(&RootMetrics) -> Vec<Sample>) {
        let of_each: Vec<_> = self.roots.iter().map(|root| (&root.root, samples(root))).collect();
        if of_each.iter().all(|(_, samples)| samples.is_empty()) {
            return;
        }
        let command = self.command;
        let text = &mut self.text;
        let written = (|| {
            writeln!(text, "# HELP fsure_{name} {help}\n# TYPE fsure_{name} gauge")?;
            for (root, samples) in of_each {
                let root = escape(root);
                for (label, value) in samples {
                    let label = label.map(|(name, text)| format!(",{name}=\"{text}\""));
                    let label = label.unwrap_or_default();
                    let labels = format!("root=\"{root}\",command=\"{command}\"{label}");
                    writeln!(text, "fsure_{name}{{{labels}}} {value}")?;
                }
            }
            std::fmt::Result::Ok(())
        })();
        written.expect("a string takes everything");
    }
}

/// A label's value: backslash, quote and line feed are escaped, and nothing else.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::samples::finding;
    use super::*;
    use fsure_core::RelPath;
    use fsure_integrity::model::BytesByReadMode;

    fn roots() -> Vec<RootMetrics> {
        let mut outcome = Outcome { seconds: 1.5, ..Outcome::default() };
        outcome.bytes = BytesByReadMode { direct: 25 << 40, ..BytesByReadMode::default() };
        outcome.add(finding(b"a", Verdict::Ok));
        outcome.add(finding(b"b", Verdict::Rotten));
        outcome.scrub = Some(ScrubSummary { due_files: 2, ..ScrubSummary::default() });
        let mut ages = AgeHistogram::default();
        ages.add(&RelPath::from_bytes(*b"a"), 7, 1_700_000_000, 1_800_000_000);
        let one = RootMetrics {
            root: "/a\\b \"c\"\nd é".to_owned(),
            outcome: Some(outcome),
            ages: Some(ages),
            code: ExitCode::Damage,
        };
        let (root, code) = ("/gone".to_owned(), ExitCode::Incomplete);
        vec![one, RootMetrics { root, outcome: None, ages: None, code }]
    }

    #[test]
    fn one_set_for_each_root_and_names_that_cannot_break_out() {
        let text = metrics("scrub", 1_800_000_000, &roots());
        let root = r#"root="/a\\b \"c\"\nd é",command="scrub""#;
        for line in [
            "# HELP fsure_files Files that the last run judged, by verdict.".to_owned(),
            "# TYPE fsure_files gauge".to_owned(),
            format!("fsure_files{{{root},verdict=\"rotten\"}} 1"),
            format!("fsure_file_bytes{{{root},verdict=\"rotten\"}} 25165824"),
            format!("fsure_read_bytes{{{root},way=\"direct\"}} 27487790694400"),
            format!("fsure_last_run_exit_code{{{root}}} 3"),
            "fsure_last_run_exit_code{root=\"/gone\",command=\"scrub\"} 5".to_owned(),
            format!("fsure_last_run_duration_seconds{{{root}}} 1.5"),
            format!("fsure_last_run_timestamp_seconds{{{root}}} 1800000000"),
            format!("fsure_oldest_verification_timestamp_seconds{{{root}}} 1700000000"),
            format!("fsure_scrub_left_files{{{root}}} 2"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
        }
        assert!(!text.contains("fsure_files{root=\"/gone\""), "nothing is invented: {text}");
        assert!(text.ends_with('\n'));
    }

    /// A value is written as a number that Prometheus reads back as the same.
    #[test]
    fn large_values_are_exact() {
        for value in [0.0, 1.5, (1_u64 << 53) as f64, u64::MAX as f64] {
            assert_eq!(format!("{value}").parse::<f64>().unwrap(), value);
        }
    }
}
