//! Takes the sessions out of a page, and puts other outputs into it.

use std::ops::Range;

/// Output of one step. `errors` is shown with a failure and compared with nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub(crate) lines: Vec<String>,
    pub(crate) code: i32,
    pub(crate) errors: String,
}

/// One command of a session, and what the page says that comes of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) expected: Vec<String>,
    pub(crate) code: i32,
    /// Lines of the page that hold output and exit code.
    lines: Range<usize>,
}

impl Step {
    /// Returns what the page says as if it had been printed.
    pub(crate) fn as_expected(&self) -> Output {
        Output { lines: self.expected.clone(), code: self.code, errors: String::new() }
    }
}

/// A page, line by line, and the steps of all its sessions in order.
pub(crate) struct Page {
    lines: Vec<String>,
    pub(crate) steps: Vec<Step>,
}

impl Page {
    /// Reads the blocks of the kind `console`.
    ///
    /// # Panics
    /// If a block begins with output, or does not end.
    pub(crate) fn parse(text: &str) -> Self {
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let (mut steps, mut is_inside): (Vec<Step>, _) = (vec![], false);
        let mut is_first = false;
        for (at, line) in lines.iter().enumerate() {
            if line.starts_with("```") {
                is_inside = !is_inside && line == "```console";
                is_first = is_inside;
                continue;
            }
            if !is_inside {
                continue;
            }
            if let Some(command) = line.strip_prefix("$ ") {
                let (command, lines) = (command.to_owned(), at + 1..at + 1);
                steps.push(Step { command, expected: vec![], code: 0, lines });
                is_first = false;
                continue;
            }
            assert!(!is_first, "output before any command: {line}");
            let step = steps.last_mut().expect("a command before its output");
            add(step, at, line);
        }
        assert!(!is_inside, "a session without an end");
        Self { lines, steps }
    }

    /// Returns the text of the page with other outputs of all steps.
    pub(crate) fn with(&self, outputs: &[Output]) -> String {
        let mut lines = self.lines.clone();
        for (step, output) in self.steps.iter().zip(outputs).rev() {
            let code = (output.code != 0).then(|| format!("[{}]", output.code));
            lines.splice(step.lines.clone(), output.lines.iter().cloned().chain(code));
        }
        lines.join("\n") + "\n"
    }
}

/// Adds a line of a page to a step: more of its command, its exit code, or output.
fn add(step: &mut Step, at: usize, line: &str) {
    let code = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.parse().ok());
    let more = line.strip_prefix('>').filter(|more| more.is_empty() || more.starts_with(' '));
    match (more, code) {
        (Some(more), _) if step.lines.is_empty() => {
            step.command.push('\n');
            step.command.push_str(more.get(1..).unwrap_or_default());
            step.lines = at + 1..at + 1;
            return;
        }
        (_, Some(code)) => step.code = code,
        _ => step.expected.push(line.to_owned()),
    }
    step.lines.end = at + 1;
}

#[test]
fn a_page_is_read_and_written() {
    let text = "Text\n```console\n$ a\n>\n> b\nout\n[3]\n$ c\n```\n```sh\n$ no\n```\n";
    let page = Page::parse(text);
    let [first, second] = &page.steps[..] else { panic!("two steps") };
    assert_eq!((&*first.command, &*first.expected, first.code), ("a\n\nb", &["out".into()][..], 3));
    assert_eq!((&*second.command, second.expected.len(), second.code), ("c", 0, 0));
    let same: Vec<_> = page.steps.iter().map(Step::as_expected).collect();
    assert_eq!(page.with(&same), text);
    let other = Output { lines: vec!["x".into(), "y".into()], code: 1, errors: String::new() };
    let other = page.with(&[Output { lines: vec![], code: 0, errors: String::new() }, other]);
    assert_eq!(other, "Text\n```console\n$ a\n>\n> b\n$ c\nx\ny\n[1]\n```\n```sh\n$ no\n```\n");
}

#[test]
#[should_panic(expected = "output before any command")]
fn a_block_that_begins_with_output_is_refused() {
    Page::parse("```console\n$ a\n```\n```console\nout\n```\n");
}
