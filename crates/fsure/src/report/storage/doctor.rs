//! Reports the findings of `ram doctor`, in words and as JSON.

use serde::Serialize;

use super::json::line;
use fsure_core::{ExitCode, escape};
use fsure_ram::doctor::{Finding, FindingState};

/// Returns exit code 1 if something has to be done.
pub fn exit_code(findings: &[Finding]) -> ExitCode {
    let must = findings.iter().any(|finding| finding.state == FindingState::Act);
    if must { ExitCode::Differences } else { ExitCode::Clean }
}

fn word(state: FindingState) -> &'static str {
    match state {
        FindingState::Fine => "ok",
        FindingState::Limits => "limits",
        FindingState::Act => "act",
    }
}

/// Returns one line for each finding, and what to do below it. Paths in them can be any
/// user's, so that a terminal gets none of it as it is.
pub fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { about, state, words, remedy } in findings {
        text += &format!("{:<7} {about}: {}\n", word(*state), escape(words.as_bytes()));
        if let Some(remedy) = remedy {
            text += &format!("        {}\n", escape(remedy.as_bytes()));
        }
    }
    text
}

#[derive(Serialize)]
struct DoctorLine<'a> {
    r#type: &'a str,
    about: &'a str,
    state: &'a str,
    words: &'a str,
    remedy: Option<&'a str>,
}

#[derive(Serialize)]
struct DoctorSummary<'a> {
    r#type: &'a str,
    command: &'a str,
    act: usize,
    limits: usize,
    exit_code: u8,
}

/// The lines for a program.
pub fn json_lines(findings: &[Finding]) -> String {
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let mut text = String::new();
    for Finding { about, state, words, remedy } in findings {
        let (state, remedy) = (word(*state), remedy.as_deref());
        text += &line(&DoctorLine { r#type: "finding", about, state, words, remedy });
        text += "\n";
    }
    let (act, limits) = (count(FindingState::Act), count(FindingState::Limits));
    let exit_code = exit_code(findings).number();
    text + &line(&DoctorSummary {
        r#type: "summary",
        command: "ram doctor",
        act,
        limits,
        exit_code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_has_advice() {
        let words = "no \u{1b}[2Jswap".to_owned();
        let fine = Finding { about: "swap", state: FindingState::Fine, words, remedy: None };
        let remedy = Some("do it".to_owned());
        let act = Finding { state: FindingState::Act, remedy, ..fine.clone() };
        let both = [act, fine.clone()];
        assert_eq!(
            text(&both),
            "act     swap: no \\x1b[2Jswap\n        do it\nok      swap: no \\x1b[2Jswap\n"
        );
        assert_eq!((exit_code(&both).number(), exit_code(&[fine]).number()), (1, 0));
        assert!(json_lines(&both).ends_with(
            "{\"type\":\"summary\",\"command\":\"ram doctor\",\"act\":1,\"limits\":0,\"exit_code\":1}"
        ));
    }
}
