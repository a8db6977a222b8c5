//! Hides the thinking of a turn, such as the text inside `<think>…</think>`, from formats that would run the calls drafted there.

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

/// The tags around thinking.
const THOUGHTS: &[[&str; 2]] = &[["<think>", "</think>"], ["[THINK]", "[/THINK]"], ["<seed:think>", "</seed:think>"]];

/// The marks of calls: their opening and closing; without a closing, the calls extend to the end of the turn.
const CALLS: &[[&str; 2]] = &[
    ["<tool_call>", "</tool_call>"],
    ["<seed:tool_call>", "</seed:tool_call>"],
    ["<minimax:tool_call>", "</minimax:tool_call>"],
    ["<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"],
    ["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"],
    ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
    ["<|tool_call>", "<tool_call|>"],
    ["<|tool_call_start|>", "<|tool_call_end|>"],
    ["<function_calls>", "</function_calls>"],
    ["<start_function_call>", "<end_function_call>"],
    ["[TOOL_CALLS]", ""],
    ["<|tool_call|>", ""],
    ["<|python_tag|>", ""],
];

/// Hides the thinking of a turn: between `<think>` and `</think>` (or other tags of thinking) or the end of the turn, and before
/// a first `</think>` whose opening tag was in the prompt. A tag inside a call is not thinking.
pub fn ignore_in_thinking(text: &str) -> HiddenThinking {
    static MARKERS: LazyLock<Regex> = LazyLock::new(|| {
        let opens = THOUGHTS.iter().chain(CALLS).map(|[open, _]| regex::escape(open));
        Regex::new(&opens.collect::<Vec<_>>().join("|")).expect("a constant pattern")
    });
    let private = (0xf0000..=0xffffd).filter_map(char::from_u32);
    let mark = private.clone().find(|mark| !text.contains(*mark)).unwrap_or('\u{f0000}');
    let mut hidden = HiddenThinking { text: String::new(), thoughts: Vec::new(), mark };
    // Thinking that began in the prompt ends before any other thinking begins.
    let opened = THOUGHTS.iter().filter_map(|[open, _]| text.find(open)).min().unwrap_or(text.len());
    let mut rest = text;
    if let Some(end) = THOUGHTS.iter().filter_map(|[_, close]| text[..opened].find(close)).min() {
        hidden.hide(&text[..end]);
        rest = &text[end..];
    }
    let mut at = 0;
    while let Some(found) = MARKERS.find_at(rest, at) {
        at = found.end();
        let is_found = |[open, _]: &&[&str; 2]| *open == found.as_str();
        if let Some([_, close]) = THOUGHTS.iter().find(is_found) {
            hidden.text.push_str(&rest[..at]);
            rest = &rest[at..];
            let end = rest.find(close).unwrap_or(rest.len());
            hidden.hide(&rest[..end]);
            (rest, at) = (&rest[end..], 0);
            continue;
        }
        let close = CALLS.iter().find(is_found).map_or("", |[_, close]| close);
        match rest[at..].find(close).filter(|_| !close.is_empty()) {
            Some(end) => at += end + close.len(),
            None => break,
        }
    }
    hidden.text.push_str(rest);
    hidden
}

/// Returns true if the text may have thinking: if a tag closes or opens some.
pub(super) fn may_think(text: &str) -> bool {
    THOUGHTS.iter().flatten().any(|tag| text.contains(tag))
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
            ("[THINK]a</think>[/THINK]b[TOOL_CALLS]f{}[THINK]", "[THINK]#0#[/THINK]b[TOOL_CALLS]f{}[THINK]"),
            ("a</seed:think>b<seed:think>c", "#0#</seed:think>b<seed:think>#1#"),
            ("<function_calls>f(x='<think>')</function_calls>", "<function_calls>f(x='<think>')</function_calls>"),
            ("plain", "plain"),
        ] {
            let found = ignore_in_thinking(text);
            assert_eq!(found.text.replace(found.mark, "#"), hidden);
            assert_eq!(found.shown(&found.text), text);
        }
    }
}
