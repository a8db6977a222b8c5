//! `config/schema/*.json`: JSON Schemas for editors, from the defaults, comments and types of the built-in YAML files.
//!
//! No key is required, since a file may hold any part. Every scalar may be an interpolation, and every mapping of a group file
//! may have a `defaults:` list.

use super::accepts::{Accepts, Range, like};
use super::choices::{ADDING_NAMES, Choices, OPENED};
use super::comment::Comment;
use super::docs::meaning_of_mapping;
use super::kinds::ConfigKind;
use super::show::json_value;
use super::tree::Tree;
use burnish_hydra::{ConfigError, Node, Origin, Value, interpolation};
use serde_json::{Map, Value as Json, json};

/// Returns the schema of one kind of configuration. `choices`: the names in the registries.
///
/// # Errors
/// If its built-in files do not compose; tests exclude this.
pub fn schema(known: &ConfigKind, choices: &Choices) -> Result<Json, ConfigError> {
    let written = known.defaults()?;
    let (resolved, _) = interpolation::resolve(&written.root);
    let packages = packages(&written);
    let writer = Writer { resolved: &resolved, choices, packages: &packages };
    let mut root = writer.mapping("", &written.root);
    let head = [
        ("$schema", json!("http://json-schema.org/draft-07/schema#")),
        ("title", json!(format!("{}.yaml: {}", known.file, known.command))),
    ];
    let mut schema: Map<String, Json> = head.map(|(name, value)| (name.to_string(), value)).into_iter().collect();
    if let Some(Json::Object(properties)) = root.get_mut("properties") {
        properties.insert("defaults".into(), defaults_list());
        properties.insert(
            "hydra".into(),
            json!({ "type": "object", "description": "Hydra's settings; only searchpath has an effect here" }),
        );
    }
    if let Json::Object(root) = root {
        schema.extend(root);
    }
    Ok(schema.into())
}

/// Returns the built-in group files with their keys in a configuration; the first key of a file with several.
pub fn packages(written: &Tree) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = vec![];
    written.root.walk(&mut |key, node| {
        let Origin::File { source, key: place, .. } = &node.origin else { return };
        let Some((parent, _)) = key.rsplit_once('.') else { return };
        let is_mapping = matches!(node.value, Value::Map(_));
        if place.column == 1 && !is_mapping && !found.iter().any(|(file, _)| *file == source.name) {
            found.push((source.name.clone(), parent.to_string()));
        }
    });
    found
}

/// Returns the JSON pointer of a dotted key in a schema.
pub fn pointer(key: &str) -> String {
    key.split('.').map(|part| format!("/properties/{part}")).collect()
}

struct Writer<'a> {
    resolved: &'a Node,
    choices: &'a Choices,
    packages: &'a [(String, String)],
}

impl Writer<'_> {
    fn mapping(&self, key: &str, node: &Node) -> Json {
        let Value::Map(entries) = &node.value else { return json!({}) };
        let full = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
        let mut properties: Map<String, Json> = entries
            .iter()
            .map(|(name, node)| {
                let is_section = matches!(&node.value, Value::Map(entries) if !entries.is_empty());
                let schema = if is_section { self.mapping(&full(name), node) } else { self.value(&full(name), node) };
                (name.clone(), schema)
            })
            .collect();
        if self.packages.iter().any(|(_, package)| package == key) {
            properties.insert("defaults".into(), defaults_list());
        }
        let mut schema = Map::new();
        let name = key.rsplit('.').next().unwrap_or(key);
        let meaning = if key.is_empty() { String::new() } else { meaning_of_mapping(name, node) };
        if !meaning.is_empty() {
            schema.insert("description".into(), meaning.into());
        }
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), properties.into());
        schema.insert("additionalProperties".into(), false.into());
        for (opened, by) in OPENED {
            let (Some(own), Some(by)) = (below(key, opened), below(key, by)) else { continue };
            let Some((_, node)) = entries.iter().find(|(name, _)| *name == own) else { continue };
            schema.insert("if".into(), json!({ "required": [by] }));
            schema.insert("else".into(), json!({ "properties": { own: any_of(self.alternatives(opened, node)) } }));
        }
        schema.into()
    }

    /// Returns the schemas of the values of a setting, without names that a user's file may add.
    fn alternatives(&self, key: &str, node: &Node) -> Vec<Json> {
        let default = self.resolved.get(key).map_or(&node.value, |node| &node.value);
        let mut accepts = Comment::for_node(node).accepts().unwrap_or_else(|| like(default));
        if let Some(names) = self.choices.names(key) {
            registered(&mut accepts, &names, ADDING_NAMES.iter().any(|(open, _)| *open == key));
        }
        let mut any = alternatives(&accepts);
        if !accepts.contains(&Accepts::Text) {
            any.push(json!({ "type": "string", "pattern": "\\$\\{|^\\?\\?\\?$" }));
        }
        any
    }

    fn value(&self, key: &str, node: &Node) -> Json {
        let mut any = self.alternatives(key, node);
        if OPENED.iter().any(|(opened, _)| *opened == key) {
            any.push(json!({ "type": "string" }));
        }
        let head = json!({ "description": Comment::for_node(node).text, "default": json_value(&node.value) });
        let parts =
            [head, any_of(any)].into_iter().filter_map(|part| if let Json::Object(part) = part { Some(part) } else { None });
        parts.flatten().collect::<Map<_, _>>().into()
    }
}

/// Returns the first word of a key below the mapping `parent`.
fn below<'a>(parent: &str, key: &'a str) -> Option<&'a str> {
    key.strip_prefix(parent)?.strip_prefix('.')?.split('.').next()
}

/// Replaces the listed names by the names in a registry; `open`: by any name, because another setting adds names.
fn registered(accepts: &mut Vec<Accepts>, names: &[&str], open: bool) {
    let names = names.iter().map(|name| Accepts::One(Value::Text(name.to_string())));
    let names: Vec<Accepts> = if open { vec![Accepts::Text] } else { names.collect() };
    accepts.retain(|accepts| !matches!(accepts, Accepts::One(Value::Text(_)) | Accepts::Text));
    for list in accepts.iter_mut() {
        if let Accepts::List(_, items) = list {
            *items = names.clone();
        }
    }
    accepts.extend(names);
}

/// Returns a schema that accepts every value that one of the given schemas accepts.
fn any_of(mut schemas: Vec<Json>) -> Json {
    if schemas.len() == 1 { schemas.remove(0) } else { json!({ "anyOf": schemas }) }
}

/// Returns the schemas of alternatives: literals as one `enum`, then all others.
fn alternatives(accepts: &[Accepts]) -> Vec<Json> {
    // JSON has no infinity; for an editor, `.inf` is a number.
    let is_infinite = |value: &Value| matches!(value, Value::Float(value) if value.is_infinite());
    let literals: Vec<Json> = accepts
        .iter()
        .filter_map(|one| if let Accepts::One(value) = one { Some(value) } else { None })
        .filter(|value| !is_infinite(value))
        .map(json_value)
        .collect();
    let others = accepts.iter().filter_map(|accepts| match accepts {
        Accepts::One(_) => None,
        Accepts::Prefix(start) => Some(json!({ "type": "string", "pattern": format!("^{start}") })),
        Accepts::Integer(range) => Some(bounded("integer", range)),
        Accepts::Number(range) => Some(bounded("number", range)),
        Accepts::Text => Some(json!({ "type": "string" })),
        Accepts::Mapping => Some(json!({ "type": "object" })),
        Accepts::List(length, items) => {
            let mut list = json!({ "type": "array", "items": any_of(alternatives(items)) });
            if let (Some(length), Json::Object(list)) = (length, &mut list) {
                list.insert("minItems".into(), (*length).into());
                list.insert("maxItems".into(), (*length).into());
            }
            Some(list)
        }
    });
    let others: Vec<Json> = others.collect();
    (!literals.is_empty()).then(|| json!({ "enum": literals })).into_iter().chain(others).collect()
}

fn bounded(kind: &str, range: &Range) -> Json {
    let bounds =
        [("exclusiveMinimum", range.above), ("minimum", range.min), ("exclusiveMaximum", range.below), ("maximum", range.max)];
    let number = |bound: f64| if bound.fract() == 0.0 { json!(bound as i64) } else { json!(bound) };
    let bounds = bounds.into_iter().filter_map(|(name, bound)| Some((name.to_string(), number(bound?))));
    std::iter::once(("type".to_string(), json!(kind))).chain(bounds).collect::<Map<_, _>>().into()
}

fn defaults_list() -> Json {
    json!({
        "type": "array",
        "description": "The files that this file is composed from (Hydra's defaults list)",
        "items": { "anyOf": [{ "type": "string" }, { "type": "object" }] }
    })
}
