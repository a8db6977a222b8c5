//! Writes answers and notes. On a terminal, thinking, calls and notes are dim. In a pipe there are no terminal codes, and notes go
//! to standard error.

use std::io::{self, IsTerminal};

use anyhow::Result;

use super::thinking::ThinkingSplit;
use burnish_util::printable::printable;
use burnish_util::terminal;

/// Writes the text of an answer while it arrives.
pub(super) struct AnswerWriter {
    thinking: ThinkingSplit,
    /// True if nothing was written yet, or the last character was a line feed.
    at_start: bool,
    /// The text so far, if it is written only after it is known to be the answer.
    held: Option<String>,
}

impl AnswerWriter {
    /// `holds`: true if the text is written only once it is known to be the answer.
    pub(super) fn new(holds: bool) -> Self {
        Self { thinking: ThinkingSplit::default(), at_start: true, held: holds.then(String::new) }
    }

    /// Begins another text; `opened_thinking` is true if its prompt has opened the thinking already.
    pub(super) fn restart(&mut self, opened_thinking: bool) {
        (self.thinking, self.at_start) = (ThinkingSplit::new(opened_thinking), true);
    }

    pub(super) fn write(&mut self, text: &str) -> Result<()> {
        for (is_thinking, part) in self.thinking.push(text) {
            self.part(is_thinking, &part)?;
        }
        Ok(())
    }

    /// Writes the rest, and ends the line. A held text that is not the answer becomes a note.
    pub(super) fn finish(&mut self, is_answer: bool) -> Result<()> {
        let (is_thinking, rest) = self.thinking.finish();
        self.part(is_thinking, &rest)?;
        if let Some(held) = self.held.as_mut().map(std::mem::take).filter(|held| !held.is_empty()) {
            if !is_answer {
                return note(&held);
            }
            terminal::print(&held)?;
        }
        if !self.at_start {
            terminal::print("\n")?;
        }
        Ok(())
    }

    fn part(&mut self, is_thinking: bool, text: &str) -> Result<()> {
        if let Some(last) = text.chars().last() {
            self.at_start = last == '\n';
            if let Some(held) = &mut self.held {
                held.push_str(text);
                return Ok(());
            }
            if is_thinking { dim(text)? } else { terminal::print(text)? }
        }
        Ok(())
    }
}

/// Writes a line that belongs to the chat and not to the answer.
pub(super) fn note(line: &str) -> Result<()> {
    if !is_dialogue() {
        terminal::say(&format!("{line}\n"));
        return Ok(());
    }
    dim(line)?;
    Ok(terminal::print("\n")?)
}

/// Returns true if messages come from a terminal.
pub(crate) fn is_dialogue() -> bool {
    io::stdin().is_terminal()
}

fn dim(text: &str) -> Result<()> {
    if terminal::colours_on_stdout() {
        return Ok(terminal::print_styled(&format!("\u{1b}[2m{}\u{1b}[0m", printable(text)))?);
    }
    Ok(terminal::print(text)?)
}
