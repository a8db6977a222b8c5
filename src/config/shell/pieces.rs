//! The words that one word of a script becomes.

/// Words while they are put together.
#[derive(Default)]
pub struct Fields {
    done: Vec<String>,
    current: Option<String>,
}

impl Fields {
    /// Appends to the present word, which exists from now on even if it is empty.
    pub fn push(&mut self, text: &str) {
        self.current.get_or_insert_default().push_str(text);
    }

    /// Ends the present word.
    pub fn end(&mut self) {
        self.done.extend(self.current.take());
    }

    /// Appends an unquoted value, which is split at its spaces.
    pub fn split(&mut self, text: &str) {
        if text.starts_with([' ', '\t', '\n']) {
            self.end();
        }
        for (index, part) in text.split([' ', '\t', '\n']).filter(|part| !part.is_empty()).enumerate() {
            if index > 0 {
                self.end();
            }
            self.push(part);
        }
        if text.ends_with([' ', '\t', '\n']) {
            self.end();
        }
    }

    pub fn finish(mut self) -> Vec<String> {
        self.end();
        self.done
    }
}

/// How the values in a word are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Split into words.
    Split,
    /// In double quotes: `"$@"` alone becomes several words.
    Quoted,
    /// Not split, as after `NAME=`.
    Whole,
}
