//! `docs/config.md`, rendered from the built-in YAML files: every key with its default, its comment, and what is ignored.
//!
//! The YAML is the only source: defaults appear as they are written, `${…}` included. A test keeps the file up to date.

use super::error::ConfigError;
use super::hydra::{self, Plain};
use super::provenance::{Origin, Source};
use super::tree::{Node, Value};
use super::{Request, ignored};

/// A built-in configuration and the command that reads it.
const FILES: &[(&str, &str)] = &[("ppo_trainer", "trainer --config ppo_trainer.yaml"), ("sft_trainer", "trainer sft")];

const HEAD: &str = "# Settings

<!-- Rendered from the comments under `config/`; `BURNISH_BLESS=1 cargo test --release --test docs` writes it. -->

Every key, its default as the YAML under `config/` has it, and what it means. [algorithms.md](algorithms.md) explains the names that
some of them take. `${a.b}` takes the value of another key, `${.x}` that of a neighbour. A key marked *no effect* is accepted because
configurations written for verl have it; a run that changes it is told so at start, or refused where the change would matter.
";

/// The whole page, in Markdown.
///
/// # Errors
/// If a built-in file does not compose, which its tests exclude.
pub fn page() -> Result<String, ConfigError> {
    let mut page = HEAD.to_string();
    for (name, command) in FILES {
        let root = hydra::compose(&Request::default().built_in(name), name, &Plain)?.root;
        page.push_str(&format!("\n## `{name}.yaml`\n\n`{command}`\n"));
        section("", &root, &mut page);
    }
    Ok(page)
}

/// A mapping: its meaning, its own keys, then the mappings in it.
fn section(key: &str, node: &Node, page: &mut String) {
    let Value::Map(entries) = &node.value else { return };
    let full = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
    let (inner, own): (Vec<_>, Vec<_>) = entries.iter().partition(|(_, node)| is_mapping(node));
    let reasons: Vec<_> = own.iter().map(|(name, _)| ignored::reason(&full(name))).collect();
    let note = |reason: Option<&str>| reason.map_or(String::new(), |reason| format!(" *No effect: {reason}.*"));
    // One reason for the whole section is said once.
    let common = reasons.first().copied().flatten().filter(|first| reasons.iter().all(|reason| *reason == Some(*first)));
    if !key.is_empty() && !own.is_empty() {
        let name = key.rsplit('.').next().unwrap_or(key);
        page.push_str(&format!("\n### {key}\n\n{}{}\n\n", meaning_of_mapping(name, node), note(common)));
    }
    for ((name, node), reason) in own.into_iter().zip(reasons) {
        let (default, meaning) = default_and_meaning(node);
        let note = note(reason.filter(|_| common.is_none()));
        let stop = if note.is_empty() || meaning.ends_with('.') { "" } else { "." };
        page.push_str(&format!("- `{}` = `{default}`: {meaning}{stop}{note}\n", full(name)));
    }
    for (name, node) in inner {
        section(&full(name), node, page);
    }
}

/// An empty mapping is a value, `{}`.
fn is_mapping(node: &Node) -> bool {
    matches!(&node.value, Value::Map(entries) if !entries.is_empty())
}

fn default_and_meaning(node: &Node) -> (String, String) {
    let Origin::File { source, key, value } = &node.origin else { return (node.value.to_yaml(), String::new()) };
    let line = source.text.lines().nth(value.line - 1).unwrap_or_default();
    let default: String = line.chars().skip(value.column - 1).collect();
    (default.trim().to_string(), comment_above(source, key.line))
}

/// The comment above the mapping's own key, or the head of the file that was laid at its place.
fn meaning_of_mapping(name: &str, node: &Node) -> String {
    let Value::Map(entries) = &node.value else { return String::new() };
    let own = entries.iter().rev().find(|(_, node)| !is_mapping(node));
    for origin in std::iter::once(&node.origin).chain(own.map(|(_, node)| &node.origin)) {
        let Origin::File { source, key, .. } = origin else { continue };
        let indent = key.column;
        let upwards = source.text.lines().take(key.line).enumerate().collect::<Vec<_>>().into_iter().rev();
        let is_own_key =
            |line: &str| line.trim_start().starts_with(&format!("{name}:")) && line.len() - line.trim_start().len() < indent;
        if let Some((index, _)) = upwards.take_while(|(_, line)| !line.is_empty()).find(|(_, line)| is_own_key(line)) {
            return comment_above(source, index + 1);
        }
    }
    match own.map_or(&node.origin, |(_, node)| &node.origin) {
        Origin::File { source, .. } => comment(source.text.lines().take_while(|line| line.starts_with('#'))),
        Origin::Override(_) => String::new(),
    }
}

/// The comment that ends just above a line, counted from 1.
fn comment_above(source: &Source, line: usize) -> String {
    let above: Vec<&str> = source.text.lines().take(line - 1).collect();
    let start = above.iter().rposition(|line| !line.trim_start().starts_with('#')).map_or(0, |last| last + 1);
    comment(above[start..].iter().copied())
}

fn comment<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(|line| line.trim_start().trim_start_matches('#').trim()).collect::<Vec<_>>().join(" ")
}
