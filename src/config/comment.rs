//! What the comments of the built-in YAML say of a key: its meaning, and the values it takes.
//!
//! A comment is prose. Where it does not end in a full stop, its last sentence lists the values with ` | ` between them: words and
//! numbers as they are written, `null`, `integer > 0`, `number`, `0 to 1`, `path`, `name`, `A list of …`,
//! `One or a list of …`, `A mapping` (`accepts.rs` reads them all). Behind a value may stand what it means (`-1 = all`) and another
//! name for it (`k3 (low_var_kl)`). Numbers that are not listed are refused (`bounds.rs`).

use super::accepts::{self, Accepts};
use crate::hydra::{Node, Origin, Source};

/// The comment of a key.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comment {
    /// All of it.
    pub text: String,
    /// The part that lists values; empty if there is none.
    pub vocabulary: String,
}

impl Comment {
    /// The comment above the place where a value was written in a file.
    pub fn of(node: &Node) -> Self {
        match &node.origin {
            Origin::File { source, key, .. } => Self::new(above(source, key.line)),
            Origin::Override(_) => Self::default(),
        }
    }

    fn new(text: String) -> Self {
        let last = text.rsplit_once(". ").map_or("", |(_, last)| last);
        let vocabulary = if text.ends_with('.') { "" } else { last }.to_string();
        Self { text, vocabulary }
    }

    /// The comment without its list of values.
    pub fn meaning(&self) -> &str {
        self.text.strip_suffix(&self.vocabulary).unwrap_or(&self.text).trim_end()
    }

    /// The values that it lists; `None` if it lists none, or in prose.
    pub fn accepts(&self) -> Option<Vec<Accepts>> {
        if self.vocabulary.is_empty() {
            return None;
        }
        let parts = self.vocabulary.split(" | ").map(accepts::read).collect::<Option<Vec<_>>>()?;
        Some(parts.into_iter().flatten().collect())
    }
}

/// The comment at the head of a file, without what tools read in it.
pub fn head(source: &Source) -> String {
    join(source.text.lines().take_while(|line| line.starts_with('#')))
}

/// The comment that ends just above a line, counted from 1.
pub fn above(source: &Source, line: usize) -> String {
    let above: Vec<&str> = source.text.lines().take(line - 1).collect();
    let start = above.iter().rposition(|line| !line.trim_start().starts_with('#')).map_or(0, |last| last + 1);
    join(above[start..].iter().copied())
}

/// Comment lines for programs rather than people.
const FOR_TOOLS: &[&str] = &["yaml-language-server:", "@package"];

fn join<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let texts = lines.map(|line| line.trim_start().trim_start_matches('#').trim());
    texts.filter(|text| !FOR_TOOLS.iter().any(|tool| text.starts_with(tool))).collect::<Vec<_>>().join(" ")
}
