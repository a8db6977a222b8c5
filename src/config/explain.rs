//! `config explain KEY`: its value, what it may be, where that was written and over what, and what it means.

use super::comment::Comment;
use super::compat::{self, Verl};
use super::diff::on_one_line;
use super::docs::meaning_of_mapping;
use super::error::{ConfigError, Problem};
use super::hydra::{self, Adapt};
use super::interpolate;
use super::kinds::Known;
use super::overrides::{Operation, Override, unknown_key};
use super::show::source;
use super::tree::{Node, Value};
use super::{Choices, Request};
use std::cell::RefCell;

/// What is to be said about a key, as text for the user.
///
/// # Errors
/// If files or overrides cannot be read, or there is no such key.
pub fn explain(known: &Known, request: &Request, choices: &[Choices], key: &str) -> Result<String, ConfigError> {
    let defaults = known.defaults()?.root;
    let verl = Verl::new(known.kind, &defaults);
    let recorder = Recorder { inner: &verl, key, chain: RefCell::default() };
    let mut written = hydra::compose(request, known.file, &recorder)?;
    if !written.problems.is_empty() {
        return Err(ConfigError { problems: written.problems });
    }
    verl.fill(&mut written.root);
    if let (None, Some(text)) = (defaults.get(key), compat::explain(known.kind, key, &defaults)) {
        return Ok(format!("{text}\n"));
    }
    let Some(node) = written.root.get(key) else { return Err(unknown_key(key, &defaults.keys(), false).into()) };
    let (resolved, unresolved) = interpolate::resolve(&written.root);
    let value = resolved.get(key).unwrap_or(node);
    if let Value::Map(entries) = &node.value
        && !entries.is_empty()
    {
        return Ok(section(key, entries, value, &defaults));
    }
    let default = defaults.get(key);
    let comment = default.map(Comment::of).unwrap_or_default();
    let names = choices.iter().find(|(known, _)| *known == key).map(|(_, names)| *names);
    let mut facts = vec![Fact::new("takes", takes(&comment, names, &value.value), String::new())];
    facts.extend(default.map(|default| Fact::new("default", on_one_line(&default.value), source(&default.origin))));
    let is_default = |place: &String| default.is_some_and(|default| *place == source(&default.origin));
    let chain = recorder.chain.into_inner().into_iter().filter(|(_, place)| !is_default(place));
    facts.extend(chain.map(|(value, place)| Fact::new("then", value, place)));
    facts.extend(
        value
            .through
            .as_deref()
            .and_then(|to| Some((to, resolved.get(to)?)))
            .map(|(to, node)| Fact::new("follows", to.to_string(), source(&node.origin))),
    );
    let problems = unresolved.into_iter().filter(|problem| problem.key == key);
    facts.extend(problems.map(|problem| Fact::new("problem", problem.message, String::new())));
    let meaning = Some(comment.meaning()).filter(|text| !text.is_empty()).map_or(String::new(), |text| format!("{text}\n"));
    Ok(format!("{key} = {}\n{meaning}\n{}", on_one_line(&value.value), table(&facts)))
}

/// One line about a key.
struct Fact {
    name: &'static str,
    value: String,
    place: String,
}

impl Fact {
    fn new(name: &'static str, value: String, place: String) -> Self {
        Self { name, value, place }
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

/// The values that a key takes: the names of a registry, or what its comment lists, or whatever is like its value.
fn takes(comment: &Comment, names: Option<&[&str]>, value: &Value) -> String {
    const MANY: &str = "One or a list of ";
    match (names, &comment.vocabulary) {
        (Some(names), listed) if listed.starts_with(MANY) => format!("{MANY}{}", names.join(", ")),
        (Some(names), _) => names.join(" | "),
        (None, listed) if !listed.is_empty() => listed.clone(),
        (None, _) => match value {
            Value::Null => "any value".into(),
            Value::Float(_) => "number".into(),
            Value::Map(_) => "a mapping with any keys".into(),
            value => value.kind().into(),
        },
    }
}

/// A mapping: its meaning and its keys.
fn section(key: &str, entries: &[(String, Node)], value: &Node, defaults: &Node) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    let meaning = defaults.get(key).map_or(String::new(), |node| meaning_of_mapping(name, node));
    let mut text = format!("{key}\n{meaning}\n\n");
    for (name, node) in entries {
        let is_section = matches!(&node.value, Value::Map(entries) if !entries.is_empty());
        let shown = value.child(name).unwrap_or(node);
        text.push_str(&if is_section {
            format!("  {key}.{name}.…\n")
        } else {
            format!("  {key}.{name} = {}\n", on_one_line(&shown.value))
        });
    }
    text
}

/// Notes everything that is written to one key on the way to the composed tree.
struct Recorder<'a> {
    inner: &'a dyn Adapt,
    key: &'a str,
    /// Values and where they were written, in order.
    chain: RefCell<Vec<(String, String)>>,
}

impl Recorder<'_> {
    fn note(&self, node: &Node, place: String) {
        self.chain.borrow_mut().push((on_one_line(&node.value), place));
    }
}

impl Adapt for Recorder<'_> {
    fn file(&self, body: Node) -> Result<Node, Problem> {
        let body = self.inner.file(body)?;
        if let Some(node) = body.get(self.key) {
            self.note(node, source(&node.origin));
        }
        Ok(body)
    }

    fn overriding(&self, one: Override, root: &Node) -> Result<Option<Override>, Problem> {
        let one = self.inner.overriding(one, root)?;
        if let Some(one) = &one
            && let Some(below) = self.key.strip_prefix(&one.key).filter(|below| below.is_empty() || below.starts_with('.'))
        {
            let deleted = Node::new(Value::Text("(deleted)".into()), one.origin.clone());
            match &one.value {
                Some(value) if one.operation != Operation::Delete => {
                    value.get(below.trim_start_matches('.')).into_iter().for_each(|node| self.note(node, source(&one.origin)));
                }
                _ => self.note(&deleted, source(&one.origin)),
            }
        }
        Ok(one)
    }
}
