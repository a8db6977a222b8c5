//! Hides the text inside `<think>…</think>` from formats that would run the calls drafted there.

use std::sync::LazyLock;

use regex::Regex;

/// A text with short marks in place of its thinking.
pub struct HiddenThinking {
    /// The text to parse, including the tags of the thinking.
    pub text: String,
    /// The hidden texts between the tags, in order.
    thoughts: Vec<String>,
    /// A character that does not occur in the text, on both sides of each mark.
    mark: char,
}

/// Hides the thinking of a turn: between `<think>` and `</think>` or the end of the turn, and before a first `</think>` whose
/// opening tag was in the prompt. A tag inside a call is not thinking.
pub fn ignore_in_thinking(text: &str) -> HiddenThinking {
    static MARKERS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"</?think>|<tool_call>|<seed:tool_call>|<minimax:tool_call>|<｜DSML｜tool_calls>|<\|tool_calls_section_begin\|>|\[TOOL_CALLS\]|<｜tool▁calls▁begin｜>|<\|tool_call>|<\|tool_call\|>|<\|python_tag\|>").expect("a constant pattern")
    });
    let private = (0xf0000..=0xffffd).filter_map(char::from_u32);
    let mark = private.clone().find(|mark| !text.contains(*mark)).unwrap_or('\u{f0000}');
    let mut hidden = HiddenThinking { text: String::new(), thoughts: Vec::new(), mark };
    // Thinking that began in the prompt ends before any other thinking begins.
    let opened = text.find("<think>").unwrap_or(text.len());
    let mut rest = text;
    if let Some(end) = text[..opened].find("</think>") {
        hidden.hide(&text[..end]);
        rest = &text[end..];
    }
    let mut at = 0;
    while let Some(found) = MARKERS.find_at(rest, at) {
        at = found.end();
        let close = match found.as_str() {
            "</think>" => continue,
            "<think>" => {
                hidden.text.push_str(&rest[..at]);
                rest = &rest[at..];
                let end = rest.find("</think>").unwrap_or(rest.len());
                hidden.hide(&rest[..end]);
                (rest, at) = (&rest[end..], 0);
                continue;
            }
            "<tool_call>" => "</tool_call>",
            "<seed:tool_call>" => "</seed:tool_call>",
            "<minimax:tool_call>" => "</minimax:tool_call>",
            "<｜DSML｜tool_calls>" => "</｜DSML｜tool_calls>",
            "<|tool_calls_section_begin|>" => "<|tool_calls_section_end|>",
            "<｜tool▁calls▁begin｜>" => "<｜tool▁calls▁end｜>",
            "<|tool_call>" => "<tool_call|>",
            _ => break,
        };
        match rest[at..].find(close) {
            Some(end) => at += end + close.len(),
            None => break,
        }
    }
    hidden.text.push_str(rest);
    hidden
}

impl HiddenThinking {
    fn hide(&mut self, thought: &str) {
        if !thought.is_empty() {
            self.text.push_str(&format!("{0}{1}{0}", self.mark, self.thoughts.len()));
            self.thoughts.push(thought.to_owned());
        }
    }

    /// Puts the thinking back into a parsed text.
    pub fn shown(&self, text: &str) -> String {
        let thought = |(i, piece): (usize, &str)| {
            let thought = (i % 2 == 1).then(|| piece.parse::<usize>().ok().and_then(|at| self.thoughts.get(at)));
            thought.flatten().cloned().unwrap_or_else(|| piece.to_owned())
        };
        text.split(self.mark).enumerate().map(thought).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_hidden_and_shown() {
        for (text, hidden) in [
            ("<think>a</think>b<think>c", "<think>#0#</think>b<think>#1#"),
            ("a</think>b", "#0#</think>b"),
            (
                "<tool_call><think>x</think></tool_call><think>y</think>",
                "<tool_call><think>x</think></tool_call><think>#0#</think>",
            ),
            ("<think></think>", "<think></think>"),
            ("plain", "plain"),
        ] {
            let found = ignore_in_thinking(text);
            assert_eq!(found.text.replace(found.mark, "#"), hidden);
            assert_eq!(found.shown(&found.text), text);
        }
    }
}
