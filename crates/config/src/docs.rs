//! `docs/config.md`, rendered from the built-in YAML files: every key with its default and its comment, and a mark for ignored
//! keys.
//!
//! The YAML is the only source; defaults are shown verbatim, with `${…}`. A test keeps the file up to date.

use super::comment::{Comment, above, head};
use super::compat;
use super::kinds::KINDS;
use burnish_hydra::{ConfigError, Node, Origin, Value};

const HEAD: &str = "# Settings

<!-- Rendered from the comments under `config/`; `scripts/bless` writes it. -->

All keys of the YAML under `config/`, with their defaults and meanings. [algorithms.md](algorithms.md) explains the names of
algorithms. `${a.b}` is the value of another key, `${.x}` the value of a key in the same section. A key marked *no effect* is
accepted because verl's configurations have it. If it is changed, the run reports it at start, or refuses it if the change matters.
";

/// Returns the whole page, in Markdown.
///
/// # Errors
/// If a built-in file does not compose; tests exclude this.
pub fn page() -> Result<String, ConfigError> {
    let mut page = HEAD.to_string();
    for known in KINDS {
        let root = known.defaults()?.root;
        page.push_str(&format!("\n## `{}.yaml`\n\n`{}`\n", known.file, known.command));
        section("", &root, &|key| compat::reason(known.kind, key, &root), &mut page);
    }
    Ok(page)
}

/// Writes the section of a mapping: its meaning, its direct keys, then its inner mappings.
fn section(key: &str, node: &Node, reason: &dyn Fn(&str) -> Option<&'static str>, page: &mut String) {
    let Value::Map(entries) = &node.value else { return };
    let full = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
    let (inner, own): (Vec<_>, Vec<_>) = entries.iter().partition(|(_, node)| is_mapping(node));
    let reasons: Vec<_> = own.iter().map(|(name, _)| reason(&full(name))).collect();
    let note = |reason: Option<&str>| reason.map_or(String::new(), |reason| format!(" *No effect: {reason}.*"));
    // A reason for the whole section is written once.
    let common = reasons.first().copied().flatten().filter(|first| reasons.iter().all(|reason| *reason == Some(*first)));
    if !key.is_empty() && !own.is_empty() {
        let name = key.rsplit('.').next().unwrap_or(key);
        page.push_str(&format!("\n### {key}\n\n{}{}\n\n", meaning_of_mapping(name, node), note(common)));
    }
    for ((name, node), own_reason) in own.into_iter().zip(reasons) {
        let (default, meaning) = default_and_meaning(node);
        let note = note(own_reason.filter(|_| common.is_none()));
        let stop = if note.is_empty() || meaning.ends_with('.') { "" } else { "." };
        page.push_str(&format!("- `{}` = `{default}`: {meaning}{stop}{note}\n", full(name)));
    }
    for (name, node) in inner {
        section(&full(name), node, reason, page);
    }
}

/// True if a node is a mapping with entries. An empty mapping is a value, `{}`.
fn is_mapping(node: &Node) -> bool {
    matches!(&node.value, Value::Map(entries) if !entries.is_empty())
}

fn default_and_meaning(node: &Node) -> (String, String) {
    let Origin::File { source, value, .. } = &node.origin else { return (node.value.to_yaml(), String::new()) };
    let line = source.text.lines().nth(value.line - 1).unwrap_or_default();
    let default: String = line.chars().skip(value.column - 1).collect();
    (default.trim().to_string(), Comment::for_node(node).text)
}

/// Returns the comment above the key of the mapping, or the comment at the head of the file with its values.
pub(crate) fn meaning_of_mapping(name: &str, node: &Node) -> String {
    let Value::Map(entries) = &node.value else { return String::new() };
    let own = entries.iter().rev().find(|(_, node)| !is_mapping(node));
    for origin in std::iter::once(&node.origin).chain(own.map(|(_, node)| &node.origin)) {
        let Origin::File { source, key, .. } = origin else { continue };
        let indent = key.column;
        let upwards = source.text.lines().take(key.line).enumerate().collect::<Vec<_>>().into_iter().rev();
        let is_own_key =
            |line: &str| line.trim_start().starts_with(&format!("{name}:")) && line.len() - line.trim_start().len() < indent;
        if let Some((index, _)) = upwards.take_while(|(_, line)| !line.is_empty()).find(|(_, line)| is_own_key(line)) {
            return above(source, index + 1);
        }
    }
    match own.map_or(&node.origin, |(_, node)| &node.origin) {
        Origin::File { source, .. } => head(source),
        Origin::Override(_) => String::new(),
    }
}
