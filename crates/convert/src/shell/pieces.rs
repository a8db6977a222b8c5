//! The words that one word of a script becomes.

/// Words while they are put together.
#[derive(Default)]
pub struct Fields {
    done: Vec<String>,
    current: Option<String>,
    /// Variables without quotes that are not set: they make no word, and belong to the word that follows.
    nothing: String,
}

impl Fields {
    /// Appends to the present word, which exists from now on even if it is empty.
    pub fn push(&mut self, text: &str) {
        let nothing = std::mem::take(&mut self.nothing);
        let current = self.current.get_or_insert_default();
        current.push_str(&nothing);
        current.push_str(text);
    }

    /// Appends an unquoted variable that is not set.
    pub fn push_nothing(&mut self, mark: &str) {
        self.current.as_mut().unwrap_or(&mut self.nothing).push_str(mark);
    }

    /// Ends the present word.
    pub fn end(&mut self) {
        self.done.extend(self.current.take());
        self.nothing.clear();
    }

    /// Appends an unquoted value, which is split at the characters of `IFS`: runs of blanks, and each other one.
    pub fn split(&mut self, text: &str, separators: &str) {
        let mut rest = text;
        while let Some(at) = rest.find(|c| separators.contains(c)) {
            if at > 0 {
                self.push(&rest[..at]);
            }
            rest = &rest[at..];
            let blanks = |rest: &str| rest.len() - rest.trim_start_matches(|c| is_blank(c) && separators.contains(c)).len();
            let skipped = blanks(rest);
            rest = &rest[skipped..];
            if let Some(c) = rest.chars().next().filter(|c| separators.contains(*c)) {
                if skipped == 0 {
                    self.push("");
                }
                rest = &rest[c.len_utf8()..];
                rest = &rest[blanks(rest)..];
            }
            self.end();
        }
        if !rest.is_empty() {
            self.push(rest);
        }
    }

    pub fn finish(mut self) -> Vec<String> {
        self.end();
        self.done
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// How the values in a word are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpansionMode {
    /// Split into words.
    Split,
    /// In double quotes: `"$@"` alone becomes several words.
    Quoted,
    /// Not split, as after `NAME=`.
    Whole,
}
