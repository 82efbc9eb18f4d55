//! Compares an output with the pattern that a page shows, and makes a pattern of an output.

/// Any number of lines.
const LINES: &str = "...";
/// Any text within a line.
const TEXT: &str = "[..]";

/// Returns true if lines match a pattern of lines.
pub(crate) fn fits(expected: &[String], lines: &[String]) -> bool {
    match (expected.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((any, rest)), _) if any == LINES => {
            fits(rest, lines) || lines.split_first().is_some_and(|(_, lines)| fits(expected, lines))
        }
        (Some((first, rest)), Some((line, lines))) => line_fits(first, line) && fits(rest, lines),
        _ => false,
    }
}

/// Returns true if a line matches a pattern. Dates, durations and rates need not be the same.
fn line_fits(expected: &str, line: &str) -> bool {
    text_fits(expected, line) || text_fits(&without_times(expected), &without_times(line))
}

fn text_fits(expected: &str, line: &str) -> bool {
    let Some((head, tail)) = expected.split_once(TEXT) else { return expected == line };
    let Some(rest) = line.strip_prefix(head) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| text_fits(tail, &rest[at..]))
}

/// Returns a line with a placeholder for each date, time of day, duration and rate.
fn without_times(line: &str) -> String {
    let line = without_shape(&without_shape(line, "0000-00-00", "DATE"), "00:00:00", "TIME");
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        let unit = words[at].trim_end_matches([',', '.', ';', ':', ')']);
        let is_rate = unit.len() <= 5 && unit.ends_with("B/s");
        let is_number = words[at - 1].trim_start_matches('(').parse::<f64>().is_ok();
        if is_number && (is_rate || ["s", "ms", "us", "ns"].contains(&unit)) {
            let end = &words[at][unit.len()..];
            words[at] = format!("{}{end}", if is_rate { "B/s" } else { "s" });
            words[at - 1] = "N".to_owned();
        }
    }
    words.join(" ")
}

/// Replaces text of a shape, in which 0 stands for any digit.
fn without_shape(line: &str, shape: &str, name: &str) -> String {
    let digits_as_0 = |c: char| if c.is_ascii_digit() { '0' } else { c };
    // ASCII for ASCII: places are the same in both.
    let shapes: String = line.chars().map(digits_as_0).collect();
    let (mut new, mut from) = (String::new(), 0);
    while let Some(at) = shapes[from..].find(shape) {
        new.push_str(&line[from..from + at]);
        new.push_str(name);
        from += at + shape.len();
        // A fraction of a second.
        if shapes[from..].starts_with(".0") {
            from += 1;
            from += shapes[from..].len() - shapes[from..].trim_start_matches('0').len();
        }
    }
    new + &line[from..]
}

/// Cost of a line that is only in the pattern, or only in the output: more than any change.
const GONE: u32 = 200;

/// Returns the cost of a line in the place of another one, by the words that they share.
fn change_cost(expected: &str, line: &str) -> u32 {
    let words: Vec<_> = expected.split_whitespace().collect();
    let shared = line.split_whitespace().filter(|word| words.contains(word)).count();
    let all = words.len().max(line.split_whitespace().count()).max(1);
    let percent = 100 * shared.min(all) / all;
    30 + u32::try_from(100 - percent).expect("a percentage")
}

/// A step of the cheapest way from a pattern to an output.
#[derive(Clone, Copy, PartialEq)]
enum Move {
    Keep,
    Change,
    Drop,
    Insert,
    /// `...` takes one line more, or no more.
    Absorb,
    EndOfAny,
}

/// Returns a pattern that fits an output: lines of the old one that fit stay, with `...` and
/// `[..]` in them. In others, what differs between two runs is `[..]`.
pub(crate) fn renewed(expected: &[String], lines: &[String], again: &[String]) -> Vec<String> {
    let moves = cheapest(expected, lines);
    let new = |at: usize| match again.len() == lines.len() {
        true => masked(&lines[at], &again[at]),
        false => lines[at].clone(),
    };
    let (mut pattern, mut from, mut at) = (vec![], 0, 0);
    while let Some(step) = moves.get(from).and_then(|moves| moves.get(at)).copied().flatten() {
        match step {
            Move::Keep => pattern.push(expected[from].clone()),
            Move::Change | Move::Insert => pattern.push(new(at)),
            // Once, however many lines it takes. One that takes none is left out.
            Move::Absorb if pattern.last().is_none_or(|last| last != LINES) => {
                pattern.push(LINES.to_owned());
            }
            Move::Drop | Move::Absorb | Move::EndOfAny => {}
        }
        from += usize::from([Move::Keep, Move::Change, Move::Drop, Move::EndOfAny].contains(&step));
        at += usize::from([Move::Keep, Move::Change, Move::Insert, Move::Absorb].contains(&step));
    }
    pattern
}

/// Returns for each place in a pattern and in an output the next step of the cheapest way to
/// the ends of both.
fn cheapest(expected: &[String], lines: &[String]) -> Vec<Vec<Option<Move>>> {
    let mut costs = vec![vec![0; lines.len() + 1]; expected.len() + 1];
    let mut moves = vec![vec![None; lines.len() + 1]; expected.len() + 1];
    for from in (0..=expected.len()).rev() {
        for at in (0..=lines.len()).rev() {
            let (line, pattern) = (lines.get(at), expected.get(from));
            let is_any = pattern.is_some_and(|pattern| pattern == LINES);
            let mut ways = vec![];
            if let (Some(pattern), Some(line), false) = (pattern, line, is_any) {
                let is_kept = line_fits(pattern, line);
                let (cost, way) = match is_kept {
                    true => (0, Move::Keep),
                    false => (change_cost(pattern, line), Move::Change),
                };
                ways.push((cost + costs[from + 1][at + 1], way));
            }
            if pattern.is_some() {
                let (cost, way) = if is_any { (0, Move::EndOfAny) } else { (GONE, Move::Drop) };
                ways.push((cost + costs[from + 1][at], way));
            }
            if line.is_some() {
                let (cost, way) = if is_any { (0, Move::Absorb) } else { (GONE, Move::Insert) };
                ways.push((cost + costs[from][at + 1], way));
            }
            if let Some((cost, way)) = ways.into_iter().min_by_key(|(cost, _)| *cost) {
                (costs[from][at], moves[from][at]) = (cost, Some(way));
            }
        }
    }
    moves
}

/// Returns a line with `[..]` for each word that another run printed otherwise.
fn masked(line: &str, again: &str) -> String {
    if without_times(line) == without_times(again) {
        return line.to_owned();
    }
    let (words, others): (Vec<_>, Vec<_>) = (line.split(' ').collect(), again.split(' ').collect());
    if words.len() != others.len() {
        let same = words.iter().zip(&others).take_while(|(word, other)| word == other).count();
        return format!("{} {TEXT}", words[..same].join(" ")).trim_start().to_owned();
    }
    let pairs = words.iter().zip(&others);
    pairs
        .map(|(word, other)| if word == other { *word } else { TEXT })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::{fits, masked, renewed};

    fn strings(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn the_patterns_are_strict_where_they_should_be() {
        for (expected, lines, fit) in [
            (&["a"][..], &["a"][..], true),
            (&["a"], &["b"], false),
            (&["a"], &[], false),
            (&["...", "z"], &["x", "y", "z"], true),
            (&["...", "z"], &["x", "z", "y"], false),
            (&["a [..] c"], &["a bb c"], true),
            (&["a [..] c"], &["a bb d"], false),
            (&["a [..]"], &["a anything"], true),
            (&["[..]b"], &["ab c"], false),
            (&["on 2026-11-25 03:33:17"], &["on 2031-01-02 23:59:01"], true),
            (&["\"2026-11-25T03:33:17.95Z\""], &["\"2026-11-25T03:33:18Z\""], true),
            (&["in 0.01 s = 354 MiB/s."], &["in 12 ms = 1.2 GiB/s."], true),
            (&["in 0.01 s"], &["in 0.01 MiB"], false),
            (&["3 files in 0.01 s"], &["4 files in 0.01 s"], false),
            (&["2 MiB"], &["3 MiB"], false),
        ] {
            let fitting = fits(&strings(expected), &strings(lines));
            assert_eq!(fitting, fit, "{expected:?} {lines:?}");
        }
    }

    #[test]
    fn an_output_becomes_a_pattern_that_keeps_what_fits() {
        for (expected, lines, new) in [
            (&["a", "b"][..], &["a", "c"][..], &["a", "c"][..]),
            (
                &["...", "All 3 files ok."],
                &["x", "y", "OK: All 3 files."],
                &["...", "OK: All 3 files."],
            ),
            (&["...", "z"], &["y"], &["y"]),
            (&["one [..]", "..."], &["one x", "y"], &["one [..]", "..."]),
            (&["one [..]", "two"], &["one x"], &["one [..]"]),
            (&["one", "two"], &["zero", "one", "two"], &["zero", "one", "two"]),
            (&[], &["new"], &["new"]),
            (&["old"], &[], &[]),
            (
                &["a", "...", "b", "...", "c"],
                &["a", "1", "b", "2", "cc"],
                &["a", "...", "b", "...", "cc"],
            ),
        ] {
            let renewed = renewed(&strings(expected), &strings(lines), &strings(lines));
            assert_eq!(renewed, strings(new), "{expected:?} {lines:?}");
            assert!(fits(&renewed, &strings(lines)));
        }
    }

    #[test]
    fn words_that_differ_between_two_runs_are_not_fixed() {
        assert_eq!(masked("id 1234 of a", "id 987 of a"), "id [..] of a");
        assert_eq!(masked("in 1 s, 5", "in 2 s, 5"), "in 1 s, 5");
        assert_eq!(masked("key a b", "key a"), "key a [..]");
    }
}
