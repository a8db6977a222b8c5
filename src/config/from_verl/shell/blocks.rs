//! The blocks of a script: a command inside `if`, a loop, `case` or a function may or may not run.

/// The blocks that are open, outermost first.
#[derive(Default)]
pub struct Blocks {
    open: Vec<String>,
    /// The `&&` or `||` that decides whether the present command runs.
    behind: Option<&'static str>,
}

impl Blocks {
    /// Reads the words at the start of a command that open, continue or close a block, and returns their number.
    pub fn enter(&mut self, words: &[String]) -> usize {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += match word.as_str() {
                "if" | "while" | "until" | "{" => self.opened(word, 1),
                "for" | "select" => {
                    self.opened(word, 0);
                    return at;
                }
                "case" => {
                    let pattern = words[at..].iter().position(|word| word == "in");
                    self.opened(word, pattern.map_or(words.len() - at, |index| index + 1))
                }
                "fi" | "done" | "esac" | "}" => {
                    self.open.pop();
                    return words.len();
                }
                "then" | "else" | "elif" | "do" | "!" => 1,
                "function" => 2,
                name if name.ends_with("()") => 1,
                pattern if pattern.ends_with(')') && self.open.last().is_some_and(|open| open == "case") => 1,
                _ if words.get(at + 1).is_some_and(|next| next == "()") => 2,
                _ => break,
            };
        }
        at.min(words.len())
    }

    fn opened(&mut self, word: &str, words: usize) -> usize {
        self.open.push(word.to_string());
        words
    }

    /// Returns the block of the present command, if it may not run.
    pub fn place(&self) -> Option<String> {
        let inside = self.open.last().map(|word| format!("inside `{word}`"));
        inside.or_else(|| self.behind.map(|operator| format!("after `{operator}`")))
    }

    /// Notes the terminator of a command. After an assignment, which always succeeds, `&&` decides nothing.
    pub fn leave(&mut self, end: &'static str, only_assigns: bool) {
        self.behind = match end {
            "&&" if only_assigns && self.behind.is_none() => None,
            "&&" | "||" => Some(end),
            _ => None,
        };
    }
}
