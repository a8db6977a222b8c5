//! `config explain KEY`: the value of a key, its allowed values, every place that sets it, and its meaning.

use super::choices::Choices;
use super::comment::Comment;
use super::compat::{self, Ignored, Renamed, VerlAdapter, inline};
use super::docs::meaning_of_mapping;
use super::first_run;
use super::key_row::{explained_row, row, takes};
use super::kinds::ConfigKind;
use super::library::LIBRARY;
use super::resolve::{ResolvedConfig, resolve};
use super::show::source;
use super::tree::Tree;
use burnish_hydra::overrides::{Operation, Override};
use burnish_hydra::suggest::{Addition, unknown_key};
use burnish_hydra::{Adapt, ConfigError, Node, Problem, Request, Value, compose_with};
use serde_json::Value as Json;
use std::cell::RefCell;

/// The explanation of a key, and the notes on its configuration.
pub struct Explained {
    pub text: String,
    /// A JSON object for the key, or for each key below it.
    pub rows: Vec<Json>,
    pub ignored: Vec<Ignored>,
    pub renamed: Vec<Renamed>,
}

/// Returns the explanation of a key for the user.
///
/// # Errors
/// If files or overrides cannot be read, or the key does not exist.
pub fn explain(known: &ConfigKind, request: &Request, choices: &Choices, key: &str) -> Result<Explained, ConfigError> {
    if key.split('.').any(str::is_empty) {
        let help = "write a key as names with single dots between them, such as trainer.total_epochs";
        return Err(Problem::new(key, format!("`{key}` is not a key: a part of it is empty")).help(help).into());
    }
    let defaults = known.defaults()?.root;
    let verl = VerlAdapter::new(known.kind, &defaults);
    let recorder = Recorder { inner: &verl, key, chain: RefCell::default() };
    let inserted = first_run::recipe(known.kind, request, &defaults)?;
    let written = compose_with(request, known.file, &LIBRARY, &recorder, inserted)?;
    if !written.problems.is_empty() {
        return Err(ConfigError { problems: written.problems });
    }
    let mut chain = recorder.chain.into_inner();
    if let Some(node) = written.root.get(key) {
        // The value may come from another key, for example if a parent mapping is an interpolation.
        let place = source(&node.origin);
        if chain.last().is_some_and(|(_, last)| *last != place) {
            chain.push((inline(&node.value), place));
        }
    }
    let resolved = resolve(known.kind, request)?;
    let text = text(known, &resolved, &chain, choices, key)?;
    let rows = rows(&resolved, choices, key, &text);
    Ok(Explained { text, rows, ignored: resolved.ignored, renamed: resolved.renamed })
}

/// Returns the rows of a key. A key of verl that is not a setting here has only its explanation.
fn rows(resolved: &ResolvedConfig, choices: &Choices, key: &str, text: &str) -> Vec<Json> {
    let Some(node) = resolved.tree.root.get(key) else { return vec![explained_row(key, text.trim_end())] };
    let mut rows = vec![];
    let of = |key: &str, node: &Node| row(key, node, resolved.defaults.get(key), choices);
    node.walk(&mut |below, node| {
        if !matches!(&node.value, Value::Map(entries) if !entries.is_empty()) {
            rows.push(of(&format!("{key}.{below}"), node));
        }
    });
    if rows.is_empty() || !matches!(node.value, Value::Map(_)) { vec![of(key, node)] } else { rows }
}

fn text(known: &ConfigKind, resolved: &ResolvedConfig, chain: &Chain, choices: &Choices, key: &str) -> Result<String, Problem> {
    let ResolvedConfig { tree: Tree { root, .. }, defaults, problems, .. } = resolved;
    if let (None, Some(text)) = (defaults.get(key), compat::explain(known.kind, key, defaults)) {
        return Ok(format!("{text}\n"));
    }
    let Some(node) = root.get(key) else { return Err(unknown_key(key, &defaults.keys(), Addition::No)) };
    if let (Value::Map(entries), None) = (&node.value, &node.through)
        && !entries.is_empty()
    {
        return Ok(section(key, entries, defaults));
    }
    let default = defaults.get(key);
    let comment = default.map(Comment::for_node).unwrap_or_default();
    let names = choices.names(key);
    let mut facts = vec![Fact::new("takes", takes(&comment, names.as_deref(), &node.value), "")];
    facts.extend(default.map(|default| Fact::new("default", inline(&default.value), source(&default.origin))));
    // Values before the default are left out, because the default replaced them.
    let of_default = |(_, place): &(String, String)| default.is_some_and(|default| *place == source(&default.origin));
    let after_default = chain.iter().rposition(of_default).map_or(0, |index| index + 1);
    facts.extend(chain[after_default..].iter().map(|(value, place)| Fact::new("then", value, place)));
    let followed = node.through.as_deref().and_then(|to| Some((to, root.get(to)?)));
    facts.extend(followed.map(|(to, node)| Fact::new("follows", to, source(&node.origin))));
    let problems = problems.iter().filter(|problem| problem.key == key);
    facts.extend(problems.map(|problem| Fact::new("problem", &problem.message, "")));
    let meaning = Some(comment.meaning()).filter(|text| !text.is_empty()).map_or(String::new(), |text| format!("{text}\n"));
    Ok(format!("{key} = {}\n{meaning}\n{}", inline(&node.value), table(&facts)))
}

/// One line about a key.
struct Fact {
    name: &'static str,
    value: String,
    place: String,
}

impl Fact {
    fn new(name: &'static str, value: impl Into<String>, place: impl Into<String>) -> Self {
        Self { name, value: value.into(), place: place.into() }
    }
}

fn table(facts: &[Fact]) -> String {
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let names = longest(&mut facts.iter().map(|fact| fact.name.len()));
    let placed = facts.iter().filter(|fact| !fact.place.is_empty());
    let values = longest(&mut placed.map(|fact| fact.value.chars().count())).min(40);
    let lines = facts.iter().map(|Fact { name, value, place }| format!("  {name:names$}  {value:values$}  {place}"));
    lines.map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Returns the explanation of a mapping: its meaning and its keys.
fn section<'a>(key: &str, entries: impl IntoIterator<Item = (&'a String, &'a Node)>, defaults: &Node) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    let meaning = defaults.get(key).map_or(String::new(), |node| meaning_of_mapping(name, node));
    let mut text = format!("{key}\n{meaning}\n\n");
    for (name, node) in entries {
        let is_section = matches!(&node.value, Value::Map(entries) if !entries.is_empty());
        text.push_str(&if is_section {
            format!("  {key}.{name}.…\n")
        } else {
            format!("  {key}.{name} = {}\n", inline(&node.value))
        });
    }
    text
}

/// Values with their places, in the order in which they were merged.
type Chain = Vec<(String, String)>;

/// Records every value that files and overrides give to one key.
struct Recorder<'a> {
    inner: &'a dyn Adapt,
    key: &'a str,
    chain: RefCell<Chain>,
}

impl Recorder<'_> {
    fn note(&self, node: &Node, place: String) {
        self.chain.borrow_mut().push((inline(&node.value), place));
    }
}

impl Recorder<'_> {
    fn note_override(&self, one: &Override) {
        let Some(below) = self.key.strip_prefix(&one.key).filter(|below| below.is_empty() || below.starts_with('.')) else {
            return;
        };
        match &one.value {
            Some(value) if one.operation != Operation::Delete => {
                value.get(below.trim_start_matches('.')).into_iter().for_each(|node| self.note(node, source(&one.origin)));
            }
            _ => self.note(&Node::new(Value::Text("(deleted)".into()), one.origin.clone()), source(&one.origin)),
        }
    }
}

impl Adapt for Recorder<'_> {
    fn file(&self, body: Node) -> Result<Node, Problem> {
        let body = self.inner.file(body)?;
        // `???` keeps the present value.
        if let Some(node) = body.get(self.key).filter(|node| !matches!(&node.value, Value::Text(text) if text == "???")) {
            self.note(node, source(&node.origin));
        }
        Ok(body)
    }

    fn overriding(&self, one: Override, root: &Node) -> Result<Vec<Override>, Problem> {
        let adapted = self.inner.overriding(one, root)?;
        adapted.iter().for_each(|one| self.note_override(one));
        Ok(adapted)
    }
}
