//! The help: the commands in groups, examples below each command, topics, and the first steps.

use std::fmt::Write as _;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, Args, Command, CommandFactory as _};

use super::Cli;
use super::examples::notes;
use super::topics::TOPICS;

/// A group of commands: its heading, and their names.
pub type CommandGroup = (&'static str, &'static [&'static str]);

/// The commands in groups, in the order in which the help shows them.
pub const COMMAND_GROUPS: &[CommandGroup] = &[
    (
        "My files",
        &[
            "update", "verify", "status", "scrub", "heal", "protect", "recover", "compare",
            "dupes", "log", "seal", "export", "import",
        ],
    ),
    #[cfg(feature = "storage")]
    ("Measure storage", &["speed", "flush"]),
    #[cfg(feature = "storage")]
    ("Survive power cuts", &["crash", "powercut", "defer"]),
    #[cfg(feature = "storage")]
    ("Memory", &["hot", "ram", "uncached"]),
    #[cfg(feature = "storage")]
    ("Reports and help", &["report", "help"]),
    #[cfg(not(feature = "storage"))]
    ("Help", &["help"]),
];

const ALL_COMMANDS: &str = if cfg!(feature = "storage") {
    "all commands, also those that measure storage"
} else {
    "all commands"
};

const FIRST_STEPS: [(&str, &str); 3] = [
    ("fsure update photos", "record a checksum of every file below 'photos'"),
    ("fsure verify photos", "later: read all of it again, and name what is damaged"),
    ("fsure heal photos --from COPY", "show what a copy can repair; '--yes' repairs it"),
];

const FIRST_HELP: [(&str, &str); 2] =
    [("fsure --help", ALL_COMMANDS), ("fsure help verify", "one command, with examples")];

/// Returns the text of plain `fsure` for a terminal of `width` columns: a command and its purpose
/// share a line if all of them fit.
fn first_steps_text(width: usize) -> String {
    let all = || FIRST_STEPS.iter().chain(&FIRST_HELP);
    let first = all().map(|(command, _)| command.len()).max().unwrap_or(0);
    let second = all().map(|(_, purpose)| purpose.len()).max().unwrap_or(0);
    let is_wide = 2 + first + 3 + second <= width;
    let mut text =
        "fsure finds files that have changed by themselves (bit rot).\n\nFirst steps:\n".to_owned();
    for (number, (command, purpose)) in all().enumerate() {
        if number == FIRST_STEPS.len() {
            text += "\nHelp:\n";
        }
        if is_wide {
            let _ = writeln!(text, "  {command:<first$}   {purpose}");
        } else {
            let _ = writeln!(text, "  {command}\n      {}", hanging(purpose, 6, width));
        }
    }
    text
}

const VERSION_HELP: &str = "Print the version; with '--verbose', what a report of a fault needs";

/// Columns of a terminal that the list of commands is made for.
const LIST_WIDTH: usize = 80;

/// Show the help of a command, or a topic
///
/// Topics are exit-codes, verdicts and patterns.
#[derive(Args)]
pub(super) struct HelpArgs {
    /// A command, such as 'update', or a topic: exit-codes, verdicts or patterns
    /// [default: the list of commands]
    #[arg(value_name = "COMMAND|TOPIC", value_parser = HelpWords, hide_possible_values = true)]
    words: Vec<String>,
}

impl HelpArgs {
    /// Returns the text of the topic that is asked for; `None` if it is not a topic.
    pub(super) fn topic(&self) -> Option<String> {
        let [word] = &self.words[..] else { return None };
        TOPICS.iter().find(|topic| topic.name == word).map(|topic| (topic.text)())
    }

    /// Returns the command line that prints the help of the command that is asked for.
    pub(super) fn command_line(&self) -> Vec<String> {
        let words = ["fsure"].into_iter().chain(self.words.iter().map(String::as_str));
        words.chain(["--help"]).map(str::to_owned).collect()
    }
}

/// Takes every word, since the command line then made of them is checked; lists those that a
/// shell can complete.
#[derive(Clone)]
struct HelpWords;

impl TypedValueParser for HelpWords {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let commands = COMMAND_GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        let words = commands.chain(TOPICS.iter().map(|topic| topic.name));
        Some(Box::new(words.map(PossibleValue::new)))
    }
}

/// Returns the definition of the whole command line, with its help.
pub fn command() -> Command {
    command_for(LIST_WIDTH)
}

/// The same for a terminal of `width` columns.
pub(super) fn command_for(width: usize) -> Command {
    let version = Arg::new("version").short('V').long("version").action(ArgAction::Version);
    let command = Cli::command().disable_version_flag(true).arg(version.help(VERSION_HELP));
    // Beside long options, a narrow terminal has no room for a second column.
    let command = command.next_line_help(width < TWO_COLUMNS_MIN);
    let command = with_examples(command, "");
    let header = *command.get_styles().get_header();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}\
         {header}Options:{header:#}\n{{options}}{{after-help}}",
        groups(&command, width.min(LIST_WIDTH)),
    );
    command.help_template(template)
}

/// The narrowest terminal on which options and their help are beside each other.
const TWO_COLUMNS_MIN: usize = 60;

/// Lists the commands in their groups, a line or more for each.
fn groups(command: &Command, width: usize) -> String {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let widest = command.get_subcommands().map(|sub| sub.get_name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for (heading, names) in COMMAND_GROUPS {
        let _ = writeln!(text, "{header}{heading}:{header:#}");
        for name in *names {
            let sub = command.find_subcommand(name);
            let about = sub.and_then(Command::get_about).map(ToString::to_string);
            let about = hanging(&about.unwrap_or_default(), widest + 4, width);
            let _ = writeln!(text, "  {literal}{name:<widest$}{literal:#}  {about}");
        }
        text.push('\n');
    }
    text
}

/// Wraps a text whose first line begins in a column, so that all others begin there, too.
fn hanging(text: &str, column: usize, width: usize) -> String {
    let (mut wrapped, mut at) = (String::new(), column);
    for word in text.split(' ') {
        if at > column && at + 1 + word.len() > width {
            let _ = write!(wrapped, "\n{:column$}", "");
            at = column;
        } else if at > column {
            wrapped.push(' ');
            at += 1;
        }
        wrapped.push_str(word);
        at += word.len();
    }
    wrapped
}

/// Adds examples to the long help of a command and of all below it.
fn with_examples(command: Command, words: &str) -> Command {
    let names: Vec<_> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |command, name| {
        let words = format!("{words} {name}").trim().to_owned();
        command.mut_subcommand(name, |sub| with_examples(sub, &words))
    });
    let Some(notes) = notes(words) else { return command };
    let styles = command.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let mut text = format!("{header}Examples:{header:#}\n");
    for (line, sentence) in notes.examples {
        let _ = writeln!(text, "  {literal}{line}{literal:#}\n      {sentence}");
    }
    let _ = write!(text, "\n{header}See also:{header:#}\n  ");
    for other in notes.see_also {
        let _ = match other.strip_prefix("help ") {
            Some(topic) => write!(text, "fsure help {topic}, "),
            None => write!(text, "fsure {other}, "),
        };
    }
    text.push_str(notes.page);
    command
        .after_help(format!("'fsure {words} --help' shows more, and examples."))
        .after_long_help(text)
}

/// Returns a definition whose help is nothing but a text, wrapped as every other help. In a line
/// of two columns that is longer than `width`, the second goes on below its beginning.
pub(super) fn page(text: &str, width: usize) -> Command {
    let lines = text.lines().map(|line| in_columns(line, width) + "\n");
    let text = lines.collect::<String>();
    Command::new("fsure").help_template("{about}").max_term_width(super::HELP_WIDTH).about(text)
}

fn in_columns(line: &str, width: usize) -> String {
    let start = line.len() - line.trim_start().len();
    let gap = line[start..].find("  ").filter(|_| line.chars().count() > width && start > 0);
    let Some(gap) = gap.map(|gap| start + gap) else { return line.to_owned() };
    let column = line.len() - line[gap..].trim_start().len();
    line[..column].to_owned() + &hanging(&line[column..], column, width)
}

/// Returns what a user who has typed nothing should do first.
pub(super) fn first_steps(width: usize) -> Command {
    page(&first_steps_text(width), width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::hints::STORAGE_COMMANDS;

    fn long_help(words: &[&str]) -> String {
        let line = ["fsure"].iter().chain(words).chain(&["--help"]);
        let error = command().term_width(80).try_get_matches_from(line).unwrap_err();
        error.render().to_string()
    }

    #[test]
    fn the_definitions_are_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_visible_command_is_in_exactly_one_group() {
        let command = command();
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let mut visible: Vec<_> = visible.map(Command::get_name).collect();
        let mut grouped: Vec<_> =
            COMMAND_GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(visible, grouped);
    }

    #[test]
    fn the_list_has_a_line_for_each_command_and_fits_into_80_columns() {
        let help = long_help(&[]);
        for (heading, names) in COMMAND_GROUPS {
            assert!(help.contains(&format!("\n{heading}:\n")), "{heading}: {help}");
            for name in *names {
                assert!(help.contains(&format!("\n  {name} ")), "{name}: {help}");
            }
        }
        assert!(help.contains("fsure help exit-codes"), "{help}");
        let wide: Vec<_> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(wide, [""; 0]);
    }

    #[test]
    fn a_long_line_goes_on_below_its_beginning() {
        let text = ["word"; 20].join(" ");
        let wrapped = hanging(&text, 12, LIST_WIDTH);
        let (first, second) = wrapped.split_once('\n').unwrap();
        assert!(first.len() + 12 <= LIST_WIDTH && second.starts_with(&" ".repeat(12)));
        assert_eq!(wrapped.split_whitespace().count(), 20);
    }

    #[test]
    fn the_long_help_ends_with_examples_and_where_to_read_on() {
        for words in [&["update"][..], &["verify"], &["scrub"]] {
            let help = long_help(words);
            let end = help.split_once("\nExamples:\n").map(|(_, end)| end).unwrap_or_default();
            assert!(end.contains(&format!("fsure {}", words.join(" "))), "{help}");
            assert!(end.contains("\nSee also:\n") && end.contains("docs/"), "{help}");
        }
    }

    #[test]
    fn the_short_help_names_the_long_one() {
        let error = command().try_get_matches_from(["fsure", "update", "-h"]).unwrap_err();
        let help = error.render().to_string();
        assert!(help.contains("'fsure update --help'") && !help.contains("Examples:"), "{help}");
    }

    /// All texts that explain commands.
    fn all_texts(command: &Command, words: &[&str], texts: &mut Vec<String>) {
        texts.push(long_help(words));
        for sub in command.get_subcommands() {
            all_texts(sub, &[words, &[sub.get_name()]].concat(), texts);
        }
    }

    #[test]
    fn no_text_names_a_command_that_this_build_lacks() {
        let mut texts = vec![first_steps_text(LIST_WIDTH)];
        texts.extend(TOPICS.iter().map(|topic| (topic.text)()));
        all_texts(&command(), &[], &mut texts);
        let command = command();
        for name in STORAGE_COMMANDS.iter().filter(|name| command.find_subcommand(name).is_none()) {
            for named in
                ["fsure ", "fsure help ", "'", "docs/"].map(|before| before.to_owned() + name)
            {
                let text = texts.iter().find(|text| text.contains(&named));
                assert!(text.is_none(), "{named}: {}", text.unwrap());
            }
        }
    }

    #[test]
    fn a_topic_is_a_text_and_a_command_is_a_command_line() {
        let help = |words: &[&str]| HelpArgs { words: words.iter().map(|w| (*w).into()).collect() };
        for topic in TOPICS {
            assert!(help(&[topic.name]).topic().is_some(), "{}", topic.name);
        }
        assert!(help(&["update"]).topic().is_none() && help(&[]).topic().is_none());
        assert_eq!(help(&["ram", "bind"]).command_line(), ["fsure", "ram", "bind", "--help"]);
    }

    #[test]
    fn the_first_steps_are_ten_lines_of_commands_that_are_understood() {
        let text = first_steps_text(LIST_WIDTH + 20);
        assert!(text.lines().count() <= 11);
        let narrow = first_steps_text(40);
        assert!(narrow.contains("\n  fsure heal photos --from COPY\n      show what"), "{narrow}");
        let wide: Vec<_> = narrow.lines().skip(1).filter(|line| line.len() > 40).collect();
        assert_eq!(wide, [""; 0]);
        let lines = [text, narrow].join("\n");
        let lines = lines.lines().filter_map(|line| line.strip_prefix("  "));
        for line in lines.filter(|line| line.starts_with("fsure")) {
            let call = line.split("   ").next().unwrap_or_default();
            let parsed = command().try_get_matches_from(call.split(' '));
            let error = parsed.err().filter(clap::Error::use_stderr);
            assert!(error.is_none(), "{call}: {}", error.unwrap());
        }
    }
}
