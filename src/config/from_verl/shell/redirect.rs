//! `>file`, `<file` and here-documents, which are skipped.

use super::{Reader, ShellError, short};

impl Reader<'_> {
    /// Reads past a redirection.
    pub(super) fn redirection(&mut self, words: &mut Vec<String>) -> Result<(), ShellError> {
        let mut operator = String::new();
        while let Some(c) = self.chars.next_if(|c| "<>&|".contains(*c)) {
            operator.push(c);
        }
        let strips = operator == "<<" && self.eat('-');
        self.skip_blanks();
        if self.chars.peek() == Some(&'(') {
            let inside = short(&self.parenthesised()?);
            words.push(self.unreadable(&format!("`{operator}({inside})` is not run"), "write the value itself"));
            return Ok(());
        }
        let mut target = vec![];
        self.word(&mut target)?;
        if operator == "<<" {
            self.heredocs.push((target.concat(), strips));
        }
        Ok(())
    }

    /// Skips the here-documents that the line before opened.
    pub(super) fn skip_heredocs(&mut self) -> Result<(), ShellError> {
        for (end, strips) in std::mem::take(&mut self.heredocs) {
            let start = self.line;
            loop {
                if self.chars.peek().is_none() {
                    return self.error(start, &format!("a here-document has no line `{end}` at its end"));
                }
                let mut text = String::new();
                while let Some(c) = self.next().filter(|c| *c != '\n') {
                    text.push(c);
                }
                if end == if strips { text.trim_start_matches('\t') } else { &text } {
                    break;
                }
            }
        }
        Ok(())
    }
}
