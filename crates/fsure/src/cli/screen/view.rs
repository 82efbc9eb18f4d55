//! A view that is drawn over the one before, as `top` does. The terminal keeps its modes and its
//! cursor: whatever ends the process, there is nothing to put back.

/// Returns what draws a view over the one before: each line is cut to the terminal's width and
/// ends what was there, and the last row stays free for the cursor.
pub(super) fn drawn(view: &str, (columns, rows): (usize, usize), is_first: bool) -> String {
    const TO_THE_TOP: &str = "\x1b[H";
    const CLEAR_ALL: &str = "\x1b[2J";
    const CLEAR_LINE: &str = "\x1b[K";
    const CLEAR_BELOW: &str = "\x1b[J";
    let mut drawn = if is_first { CLEAR_ALL.to_owned() } else { String::new() };
    drawn += TO_THE_TOP;
    for line in view.lines().take(rows.saturating_sub(1)) {
        drawn.extend(line.chars().take(columns));
        drawn += CLEAR_LINE;
        drawn.push('\n');
    }
    drawn + CLEAR_BELOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_leaves_nothing_of_the_one_before_and_does_not_scroll() {
        let view = "abcdef\nb\nc\nd";
        assert_eq!(drawn(view, (4, 3), true), "\x1b[2J\x1b[Habcd\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(drawn("", (4, 3), false), "\x1b[H\x1b[J");
        assert_eq!(drawn(view, (9, 99), false).matches('\n').count(), 4);
    }
}
