//! Writes answers and notes. On a terminal, thinking, calls and notes are dim; in a pipe there are no terminal codes.

use anyhow::Result;

use super::thinking::ThinkingSplit;
use burnish_util::printable::printable;
use burnish_util::terminal;

/// Writes the text of an answer while it arrives.
pub(super) struct AnswerWriter {
    thinking: ThinkingSplit,
    /// True if nothing was written yet, or the last character was a line feed.
    at_start: bool,
}

impl AnswerWriter {
    pub(super) fn new(opened_thinking: bool) -> Self {
        Self { thinking: ThinkingSplit::new(opened_thinking), at_start: true }
    }

    pub(super) fn write(&mut self, text: &str) -> Result<()> {
        for (is_thinking, part) in self.thinking.push(text) {
            self.part(is_thinking, &part)?;
        }
        Ok(())
    }

    /// Writes the rest, and ends the line.
    pub(super) fn finish(&mut self) -> Result<()> {
        let (is_thinking, rest) = self.thinking.finish();
        self.part(is_thinking, &rest)?;
        if !self.at_start {
            terminal::print("\n")?;
        }
        Ok(())
    }

    fn part(&mut self, is_thinking: bool, text: &str) -> Result<()> {
        if let Some(last) = text.chars().last() {
            self.at_start = last == '\n';
            if is_thinking { dim(text)? } else { terminal::print(text)? }
        }
        Ok(())
    }
}

/// Writes a line that belongs to the chat and not to the answer.
pub(super) fn note(line: &str) -> Result<()> {
    dim(line)?;
    Ok(terminal::print("\n")?)
}

fn dim(text: &str) -> Result<()> {
    if terminal::colours_on_stdout() {
        return Ok(terminal::print_styled(&format!("\u{1b}[2m{}\u{1b}[0m", printable(text)))?);
    }
    Ok(terminal::print(text)?)
}
