//! The comments of the built-in YAML: the meaning of each key, and its allowed values.
//!
//! A comment is prose. If it does not end in a full stop, its last sentence lists the values with ` | ` between them: literal
//! words and numbers, `null`, `integer > 0`, `number`, `0 to 1`, `path`, `name`, `A list of …`, `One or a list of …`, `A mapping`
//! (`accepts.rs` parses them all). A value may be followed by its meaning (`-1 = all`) and by another name for it
//! (`k3 (low_var_kl)`). Numbers that are not listed are refused (`bounds.rs`).

use super::accepts::{self, Accepts};
use burnish_hydra::{Node, Origin, YamlSource};

/// The comment of a key.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Comment {
    /// The whole comment.
    pub text: String,
    /// The list of values; empty if the comment has no list.
    pub vocabulary: String,
}

impl Comment {
    /// Returns the comment above a value in its file.
    pub(crate) fn for_node(node: &Node) -> Self {
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

    /// Returns the comment without its list of values.
    pub(crate) fn meaning(&self) -> &str {
        self.text.strip_suffix(&self.vocabulary).unwrap_or(&self.text).trim_end()
    }

    /// Returns the listed values; `None` if the comment has no list, or describes the values in prose.
    pub(crate) fn accepts(&self) -> Option<Vec<Accepts>> {
        if self.vocabulary.is_empty() {
            return None;
        }
        let parts = self.vocabulary.split(" | ").map(accepts::read).collect::<Option<Vec<_>>>()?;
        Some(parts.into_iter().flatten().collect())
    }
}

/// Returns the comment at the head of a file, without the lines for tools.
pub(crate) fn head(source: &YamlSource) -> String {
    join(source.text.lines().take_while(|line| line.starts_with('#')))
}

/// Returns the comment directly above a line; lines count from 1.
pub(crate) fn above(source: &YamlSource, line: usize) -> String {
    let above: Vec<&str> = source.text.lines().take(line - 1).collect();
    let start = above.iter().rposition(|line| !line.trim_start().starts_with('#')).map_or(0, |last| last + 1);
    join(above[start..].iter().copied())
}

/// The beginnings of comment lines that are for tools rather than people.
const FOR_TOOLS: &[&str] = &["yaml-language-server:", "@package"];

fn join<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let texts = lines.map(|line| line.trim_start().trim_start_matches('#').trim());
    texts.filter(|text| !FOR_TOOLS.iter().any(|tool| text.starts_with(tool))).collect::<Vec<_>>().join(" ")
}
