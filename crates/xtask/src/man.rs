//! Manual pages: one for `fsure`, and one for each command at every level.

use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use fsure::cli;

/// A command with the words that lead to it.
struct Page<'a> {
    /// The words behind `fsure`.
    words: Vec<&'a str>,
    command: &'a Command,
    /// The commands above it, the nearest last.
    above: Vec<&'a Command>,
}

/// Writes all pages into a folder.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    let mut command = cli::command();
    command.build();
    let date = date()?;
    for page in pages(&command) {
        std::fs::write(folder.join(format!("{}.1", page.name())), page.render(&date)?)?;
    }
    Ok(())
}

/// The date of the pages: today, or the one that a reproducible build asks for.
fn date() -> io::Result<String> {
    let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") else {
        return Ok(jiff::Zoned::now().date().to_string());
    };
    let seconds = epoch.parse().map_err(io::Error::other)?;
    let time = jiff::Timestamp::from_second(seconds).map_err(io::Error::other)?;
    Ok(time.to_zoned(jiff::tz::TimeZone::UTC).date().to_string())
}

/// Lists the visible commands, each above those below it.
fn pages(root: &Command) -> Vec<Page<'_>> {
    let mut pages = vec![Page { words: vec![], command: root, above: vec![] }];
    let mut next = 0;
    while next < pages.len() {
        let page = &pages[next];
        let below: Vec<_> = page
            .visible()
            .map(|sub| Page {
                words: [&*page.words, &[sub.get_name()]].concat(),
                command: sub,
                above: [&*page.above, &[page.command]].concat(),
            })
            .collect();
        drop(pages.splice(next + 1..next + 1, below));
        next += 1;
    }
    pages
}

impl<'a> Page<'a> {
    fn visible(&self) -> impl Iterator<Item = &'a Command> + use<'a> {
        self.command.get_subcommands().filter(|sub| !sub.is_hide_set())
    }

    /// The name of the page, such as `fsure-ram-bind`.
    fn name(&self) -> String {
        page_name(&self.words.join(" "))
    }

    fn render(&self, date: &str) -> io::Result<String> {
        let name = self.name();
        let version = format!("fsure {}", env!("CARGO_PKG_VERSION"));
        let mut own = Roff::new();
        own.control("TH", [&*name.to_uppercase(), "1", date, &version, "User Commands"]);
        own.control("SH", ["NAME"]);
        own.text([roman(format!("{name} - {}", self.about()))]);
        own.control("SH", ["SYNOPSIS"]);
        self.synopsis(&mut own);
        let mut text = own.render();
        let man = Man::new(self.command.clone());
        text += &section(|out| man.render_description_section(out))?;
        text += &section(|out| man.render_options_section(out))?;
        let mut end = Roff::new();
        self.commands(&mut end);
        self.exit_status(&mut end);
        self.places(&mut end);
        self.examples(&mut end);
        self.see_also(&mut end);
        Ok(text + &end.to_roff().replace('\'', "\\(aq"))
    }

    fn about(&self) -> String {
        self.command.get_about().map(ToString::to_string).unwrap_or_default()
    }

    fn synopsis(&self, roff: &mut Roff) {
        let usage = self.command.clone().render_usage().to_string();
        let calls = usage.trim_start_matches("Usage:").lines().map(str::trim);
        let name = ["fsure"].iter().chain(&self.words).copied().collect::<Vec<_>>().join(" ");
        for (place, call) in calls.filter(|call| !call.is_empty()).enumerate() {
            if place > 0 {
                roff.control("br", []);
            }
            roff.text(match call.strip_prefix(&name) {
                Some(rest) => vec![bold(&name), roman(rest)],
                None => vec![roman(call)],
            });
        }
    }

    fn commands(&self, roff: &mut Roff) {
        let line = |roff: &mut Roff, sub: &Command| {
            roff.control("TP", []);
            roff.text([bold(format!("{}-{}", self.name(), sub.get_name())), roman("(1)")]);
            roff.text([roman(sub.get_about().map(ToString::to_string).unwrap_or_default())]);
        };
        if self.visible().next().is_none() {
            return;
        }
        roff.control("SH", ["COMMANDS"]);
        if !self.words.is_empty() {
            self.visible().for_each(|sub| line(roff, sub));
            return;
        }
        for (heading, names) in cli::COMMAND_GROUPS {
            roff.control("SS", [*heading]);
            let subs = names.iter().filter_map(|name| self.command.find_subcommand(name));
            subs.for_each(|sub| line(roff, sub));
        }
    }

    /// The exit codes of the command, or of the nearest one above that has its own.
    fn exit_status(&self, roff: &mut Roff) {
        roff.control("SH", ["EXIT STATUS"]);
        let own = self.above.iter().chain([&self.command]).rev().find_map(|command| {
            let about = command.get_long_about()?.to_string();
            let (_, codes) = about.split_once("Exit codes: ")?;
            Some(codes.split("\n\n").next()?.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        if let Some(codes) = own {
            roff.text([roman(codes)]);
            roff.control("PP", []);
            roff.text([roman("Other codes are those of all commands:")]);
        }
        for (code, meaning) in cli::EXIT_CODES {
            roff.control("TP", []);
            roff.text([bold(*code)]);
            roff.text([roman(*meaning)]);
        }
    }

    fn places(&self, roff: &mut Roff) {
        let first = self.words.first().copied().unwrap_or_default();
        let is_about = |commands: &[&str]| first.is_empty() || commands.contains(&first);
        let files_of = |(heading, _): &&cli::CommandGroup| *heading == "My files";
        let on_records = cli::COMMAND_GROUPS.iter().find(files_of).into_iter();
        let on_records: Vec<_> = on_records.flat_map(|(_, names)| *names).copied().collect();
        let about_records = is_about(&on_records);
        roff.control("SH", ["FILES"]);
        let mut list = |files: &[(&str, &str)]| {
            for (file, meaning) in files {
                roff.control("TP", []);
                roff.text([italic(*file)]);
                roff.text([roman(*meaning)]);
            }
        };
        if about_records {
            list(FILES_OF_RECORDS);
        }
        if is_about(&["powercut", "flush"]) {
            list(FILES_OF_POWERCUT);
        }
        if is_about(&["ram"]) {
            list(FILES_OF_RAM);
        }
        if is_about(&["hot"]) {
            list(FILES_OF_HOT);
        }
        list(FILES_OF_USER);
        roff.control("SH", ["ENVIRONMENT"]);
        let options = self.command.get_arguments().filter(|option| !option.is_hide_set());
        let options = options.filter_map(|option| Some((option.get_env()?, option.get_long()?)));
        let options = options.map(|(variable, option)| {
            (variable.to_string_lossy().into_owned(), format!("the value of '--{option}'"))
        });
        let others =
            ENVIRONMENT.iter().map(|(name, meaning)| (name.to_string(), meaning.to_string()));
        for (name, meaning) in options.chain(others) {
            roff.control("TP", []);
            roff.text([bold(name)]);
            roff.text([roman(meaning)]);
        }
    }

    fn examples(&self, roff: &mut Roff) {
        let first_steps = cli::COMMAND_GROUPS[0].1[..2].iter().copied();
        let of_all = || first_steps.filter_map(cli::notes).map(|notes| &notes.examples[..1]);
        let examples: Vec<_> = match cli::notes(&self.words.join(" ")) {
            Some(notes) => notes.examples.to_vec(),
            None => of_all().flatten().copied().collect(),
        };
        roff.control("SH", ["EXAMPLES"]);
        for (line, sentence) in examples {
            roff.control("TP", []);
            roff.text([bold(line)]);
            roff.text([roman(sentence)]);
        }
    }

    fn see_also(&self, roff: &mut Roff) {
        let notes = cli::notes(&self.words.join(" "));
        let related = notes.into_iter().flat_map(|notes| notes.see_also).copied();
        let related = related.filter(|other| !other.starts_with("help ")).map(page_name);
        let above = self.words.split_last().map(|(_, above)| page_name(&above.join(" ")));
        let mut names: Vec<String> = vec![];
        for name in above.into_iter().chain(related) {
            if name != self.name() && !names.contains(&name) {
                names.push(name);
            }
        }
        if self.words.is_empty() {
            names.extend(self.visible().map(|sub| page_name(sub.get_name())));
        }
        roff.control("SH", ["SEE ALSO"]);
        let references = names.iter().flat_map(|name| [bold(name), roman("(1), ")]);
        let mut line: Vec<Inline> = references.collect();
        let page = notes.map_or("README.md", |notes| notes.page);
        line.push(roman(format!("{page} in the documentation of fsure")));
        roff.text(line);
    }
}

/// The name of the page of a command, by its words behind `fsure`.
fn page_name(words: &str) -> String {
    let name = format!("fsure {words}");
    name.trim_end().replace(' ', "-")
}

/// Returns a section without the lines that are to be at the top of a page only.
fn section(render: impl Fn(&mut dyn io::Write) -> io::Result<()>) -> io::Result<String> {
    let mut text = vec![];
    render(&mut text)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    // Above the possible values of an option.
    let text = text.replace("\n.br\n\n.br\n", "\n.sp\n");
    let is_preamble = |line: &&str| line.starts_with(".ie ") || line.starts_with(".el ");
    Ok(text.lines().filter(|line| !is_preamble(line)).map(|line| format!("{line}\n")).collect())
}

const FILES_OF_RECORDS: &[(&str, &str)] = &[
    ("PATH/.fsure/catalog.db", "the record of PATH, unless '--catalog FILE' names another place"),
    ("PATH/.fsure/catalog.db.backup", "the backup of the record, from which 'fsure recover' works"),
    ("PATH/.fsure/config.toml", "patterns of what is left out in every run over PATH"),
    ("PATH/.fsure/replaced", "what 'fsure heal' has replaced"),
    (".fsureignore", "patterns, as in a .gitignore, of what is left out in its folder"),
    ("~/.local/state/fsure/trust.db", "what this user has seen signed"),
];

const FILES_OF_POWERCUT: &[(&str, &str)] =
    &[("~/.local/state/fsure/powercut.jsonl", "what cuts of the power have shown of each drive")];

const FILES_OF_RAM: &[(&str, &str)] = &[
    ("/run/fsure/ram", "the folders that are in RAM, and what their daemons report"),
    ("/var/lib/fsure/ram", "what a crash must not forget of them"),
    ("/run/fsure/disk", "the RAM disks that have a name"),
];

const FILES_OF_HOT: &[(&str, &str)] =
    &[("/var/lib/fsure/hot", "what 'fsure hot record' has stored, unless '--store' names another")];

const FILES_OF_USER: &[(&str, &str)] =
    &[("~/.config/fsure/config.toml", "the user's own defaults for options")];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("NO_COLOR", "if it is set, 'auto' does not colour the output"),
    ("TERM", "if it is 'dumb', 'auto' does not colour the output"),
    ("XDG_CONFIG_HOME", "the folder to use in place of ~/.config"),
    ("XDG_STATE_HOME", "the folder to use in place of ~/.local/state"),
    ("XDG_RUNTIME_DIR", "the folder of what a user without root keeps in RAM"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered() -> Vec<(String, String)> {
        let mut command = cli::command();
        command.build();
        let pages = pages(&command);
        pages.iter().map(|page| (page.name(), page.render("2026-01-01").unwrap())).collect()
    }

    #[test]
    fn there_is_a_page_for_every_level_and_none_for_internal_commands() {
        let names: Vec<_> = rendered().into_iter().map(|(name, _)| name).collect();
        for name in ["fsure", "fsure-update", "fsure-ram-bind", "fsure-ram-disk-create"] {
            assert!(names.iter().any(|page| page == name), "{name} in {names:?}");
        }
        for name in ["fsure-family", "fsure-sweep", "fsure-ram-keep", "fsure-workload"] {
            assert!(names.iter().all(|page| page != name), "{name}");
        }
    }

    #[test]
    fn every_page_has_every_section() {
        let sections = [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "\"EXIT STATUS\"",
            "FILES",
            "ENVIRONMENT",
            "EXAMPLES",
            "\"SEE ALSO\"",
        ];
        for (name, text) in rendered() {
            for section in sections {
                assert!(text.contains(&format!("\n.SH {section}\n")), "{name}: {section}\n{text}");
            }
            assert_eq!(text.matches("\n.TH ").count(), 1, "{name}");
        }
    }

    #[test]
    fn a_page_names_the_variables_of_its_options() {
        let pages = rendered();
        let verify = &pages.iter().find(|(name, _)| name == "fsure-verify").unwrap().1;
        let (_, environment) = verify.split_once("\n.SH ENVIRONMENT\n").unwrap();
        assert!(environment.contains("\\fBFSURE_THREADS\\fR\n"), "{environment}");
    }

    #[test]
    fn a_page_names_only_pages_that_exist() {
        let pages = rendered();
        for (name, text) in &pages {
            let see = text.split("\n.SH \"SEE ALSO\"\n").nth(1).unwrap().replace("\\-", "-");
            for reference in see.split("\\fB").skip(1) {
                let other = reference.split("\\fR").next().unwrap();
                assert!(pages.iter().any(|(page, _)| page == other), "{name}: {other}");
            }
        }
    }

    #[test]
    fn a_command_with_exit_codes_of_its_own_gives_them_to_those_below() {
        let pages = rendered();
        let text = |name: &str| &pages.iter().find(|(page, _)| page == name).unwrap().1;
        for name in ["fsure-powercut", "fsure-powercut-check"] {
            assert!(text(name).contains("acknowledged write does not hold"), "{name}");
        }
        assert!(!text("fsure-update").contains("Other codes are"));
    }
}
