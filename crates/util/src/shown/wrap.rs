//! Wraps log lines at spaces, so that a terminal does not break them within words.

use console::measure_text_width;

/// Least indentation of the lines after the first: the width of a level and the spaces around it.
const INDENT: usize = 6;
/// The beginning of a message that is a command to copy, which stays on one line.
const COMMAND: &str = ": trainer ";

/// Wraps each line of a text to `width` columns, between words. A word that is wider gets a line to itself, and a command to copy
/// stays whole.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    for line in text.split_inclusive('\n') {
        let ending = if line.ends_with('\n') { "\n" } else { "" };
        let line = line.strip_suffix('\n').unwrap_or(line);
        if measure_text_width(line) <= width || line.contains(COMMAND) {
            out += &format!("{line}{ending}");
            continue;
        }
        // The indentation of the line and its level stay in front of the first word.
        let lead = line.len() - line.trim_start_matches(' ').len();
        out += &line[..lead];
        let indent = lead.max(INDENT);
        let (mut column, mut is_first) = (lead, true);
        for word in line[lead..].split(' ') {
            let room = measure_text_width(word);
            if !is_first && column + 1 + room > width && column > indent {
                out += &format!("\n{}", " ".repeat(indent));
                column = indent;
            } else if !is_first {
                out.push(' ');
                column += 1;
            }
            out += word;
            (column, is_first) = (column + room, false);
        }
        out += ending;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_only() {
        assert_eq!(wrapped(" INFO one two three\n", 16), " INFO one two\n      three\n");
        assert_eq!(wrapped(" INFO short\n", 80), " INFO short\n");
        let path = "/a/long/path/that/is/wider/than/the/terminal";
        assert_eq!(wrapped(&format!(" INFO saved at {path} now"), 20), format!(" INFO saved at\n      {path}\n      now"));
        let command = " INFO next: trainer report outputs/arithmetic\n";
        assert_eq!(wrapped(command, 20), command, "a command can be copied");
        assert_eq!(wrapped(" WARN a 文文文 b\n", 12), " WARN a\n      文文文\n      b\n");
        assert_eq!(wrapped("\u{1b}[32m INFO\u{1b}[0m ab cd\n", 11), "\u{1b}[32m INFO\u{1b}[0m ab cd\n");
    }
}
