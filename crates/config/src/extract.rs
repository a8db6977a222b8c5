//! Extracts the resolved tree into typed structs with figment, and adds the places of values to figment's errors.

use super::comment::Comment;
use burnish_hydra::scalar;
use burnish_hydra::suggest::{self, Addition, unknown_key};
use burnish_hydra::{Node, Origin, Problem, Value, below};
use figment::error::Kind;
use figment::value::{Dict, Map, Value as FigmentValue};
use figment::{Error, Figment, Metadata, Profile, Provider};
use serde::de::DeserializeOwned;

/// Mappings whose entries are passed on as JSON. JSON would turn infinity and NaN into null.
const PASSED_AS_JSON: &[&str] = &[
    "custom_reward_function.reward_kwargs",
    "data.apply_chat_template_kwargs",
    "actor_rollout_ref.model.override_config",
    "critic.model.override_config",
    "model.override_config",
    "actor_rollout_ref.actor.optim.override_optimizer_config",
    "critic.optim.override_optimizer_config",
    "optim.override_optimizer_config",
];

fn not_in_json(resolved: &Node) -> Vec<Problem> {
    let mut problems = vec![];
    for mapping in PASSED_AS_JSON {
        let Some(node) = resolved.get(mapping) else { continue };
        node.walk(&mut |name, node| {
            if matches!(node.value, Value::Float(value) if !value.is_finite()) {
                let key = format!("{mapping}.{name}");
                let message = format!("`{key}` is {}, which JSON does not have as a number", node.value.to_yaml());
                problems.push(Problem::new(&key, message).at(&node.origin).help("write it as text, in quotes"));
            }
        });
    }
    problems
}

/// Extracts `T`. To report all problems and not only the first, each value that does not fit is reported and replaced by its
/// default until the rest fits.
pub(crate) fn extract<T: DeserializeOwned>(resolved: &Node, defaults: &Node) -> Result<T, Vec<Problem>> {
    let mut tree = resolved.clone();
    let mut problems = not_in_json(resolved);
    loop {
        let error = match Figment::from(TreeProvider(&tree)).extract::<T>() {
            Ok(config) if problems.is_empty() => return Ok(config),
            Ok(_) => return Err(without_followers(problems, resolved)),
            Err(error) => error,
        };
        let key = error.path.join(".");
        if let Kind::UnknownField(_, expected) = &error.kind {
            let parent = key.rsplit_once('.').map_or("", |(parent, _)| parent);
            // All unknown keys of this mapping are reported at once, since a file may have many of them.
            let unknown = unknown_below(&tree, parent, expected);
            for name in unknown.iter().take(MAX_UNKNOWN) {
                problems.push(explain(&error, name, &tree, defaults));
            }
            if let Some(name) = unknown.get(MAX_UNKNOWN) {
                let message = format!("no such key `{name}`, and {} more unknown keys", unknown.len() - MAX_UNKNOWN - 1);
                problems.extend(tree.get(name).map(|node| Problem::new(name, message).at(&node.origin.at_key())));
            }
            match tree.get_mut(parent).map(|node| &mut node.value) {
                Some(Value::Map(entries)) if !unknown.is_empty() => entries.retain(|name, _| expected.contains(&name.as_str())),
                _ => return Err(without_followers(problems, resolved)),
            }
            continue;
        }
        problems.push(explain(&error, &key, &tree, defaults));
        let repaired = match (&error.kind, defaults.get(&key)) {
            (_, Some(default)) if tree.get(&key) != Some(default) => tree.put(&key, default.clone()).is_some(),
            _ => replace_list(&mut tree, &key, defaults),
        };
        if !repaired {
            return Err(without_followers(problems, resolved));
        }
    }
}

/// Maximum number of unknown keys of a mapping that are reported one by one.
const MAX_UNKNOWN: usize = 50;

/// Returns the unexpected keys of a mapping, in the order of extraction.
fn unknown_below(tree: &Node, parent: &str, expected: &[&str]) -> Vec<String> {
    let Some(Value::Map(entries)) = tree.get(parent).map(|node| &node.value) else { return vec![] };
    let mut unknown: Vec<&String> = entries.keys().filter(|name| !expected.contains(&name.as_str())).collect();
    unknown.sort();
    unknown.into_iter().map(|name| below(parent, name)).collect()
}

/// Removes the problems of keys that only refer to another key, if the problem of the other key is reported too.
pub(crate) fn without_followers(problems: Vec<Problem>, resolved: &Node) -> Vec<Problem> {
    let reported: Vec<String> = problems.iter().map(|problem| problem.key.clone()).collect();
    let follows = |key: &str| {
        let ancestors = std::iter::successors(Some(key), |key| key.rsplit_once('.').map(|(parent, _)| parent));
        ancestors.filter_map(|own| Some((own, resolved.get(own)?.through.as_ref()?))).any(|(own, through)| {
            let source = format!("{through}{}", &key[own.len()..]);
            reported.contains(&source)
        })
    };
    problems.into_iter().filter(|problem| !follows(&problem.key)).collect()
}

/// Replaces the whole list by its default, since an item of a list has no default.
fn replace_list(tree: &mut Node, key: &str, defaults: &Node) -> bool {
    let parents = std::iter::successors(Some(key), |key| key.rsplit_once('.').map(|(parent, _)| parent));
    for parent in parents.skip(1) {
        if let Some(default) = defaults.get(parent) {
            return tree.get(parent) != Some(default) && tree.put(parent, default.clone()).is_some();
        }
    }
    false
}

/// Converts figment's error to a problem in terms of settings.
fn explain(error: &Error, key: &str, tree: &Node, defaults: &Node) -> Problem {
    let node = tree.get(key);
    let written = node.map_or(String::new(), |node| format!(", not {}", shown(&node.value)));
    let problem = match &error.kind {
        Kind::UnknownField(_, expected) => {
            let parent = key.rsplit_once('.').map_or(String::new(), |(parent, _)| format!("{parent}."));
            let known: Vec<String> = expected.iter().map(|name| format!("{parent}{name}")).chain(defaults.keys()).collect();
            return node.iter().fold(unknown_key(key, &known, Addition::No), |problem, node| problem.at(&node.origin.at_key()));
        }
        Kind::UnknownVariant(_, expected) => {
            let text = node.and_then(|node| node.value.plain_text()).unwrap_or_default();
            let suggestion = suggest::closest(&text, expected.iter().copied());
            let problem = Problem::new(key, format!("`{key}` must be one of {}{written}", expected.join(", ")));
            suggest::did_you_mean(suggestion).into_iter().fold(problem, Problem::help)
        }
        Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) => {
            let problem = Problem::new(key, format!("`{key}` must be {}{written}", readable(expected)));
            let advice = advice(expected, node).map(|advice| advice.replace("KEY", key));
            advice.or_else(|| takes(defaults.get(key)?)).into_iter().fold(problem, Problem::help)
        }
        Kind::InvalidLength(length, expected) => Problem::new(
            key,
            format!("`{key}` must have {}, not {length}", expected.replace("an array of length", "this many items:")),
        ),
        Kind::MissingField(name) => {
            let key = if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
            Problem::new(&key, format!("`{key}` is missing"))
        }
        other => Problem::new(key, format!("`{key}`: {other}")),
    };
    node.into_iter().fold(problem, Problem::with_value)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Map(_) | Value::List(_) => format!("a {}", value.kind()),
        Value::Text(text) if text.is_empty() => "empty".into(),
        Value::Text(text) => format!("the string `{text}`"),
        scalar => format!("the {} `{}`", value.kind(), scalar.to_yaml()),
    }
}

/// Returns serde's name of a type in plain words.
fn readable(expected: &str) -> &str {
    match expected {
        "usize" | "u64" | "u32" => "an integer of at least 0",
        "i64" => "an integer",
        "f64" => "a number",
        "a boolean" => "a bool",
        name if name.starts_with("struct ") || name == "a map" => "a mapping",
        "a sequence" => "a list",
        other => other,
    }
}

/// Returns the allowed values from the comment in the built-in file.
fn takes(default: &Node) -> Option<String> {
    let comment = Comment::for_node(default);
    (!comment.vocabulary.is_empty()).then(|| format!("it takes {}", comment.vocabulary))
}

fn advice(expected: &str, node: Option<&Node>) -> Option<String> {
    let value = &node?.value;
    let is_number = matches!(expected, "usize" | "u64" | "i64" | "f64");
    match (expected, value) {
        ("a boolean", Value::Text(text)) => Some(match text.to_ascii_lowercase().as_str() {
            "yes" | "on" | "y" => format!("`{text}` is a string in an override: write true"),
            "no" | "off" | "n" => format!("`{text}` is a string in an override: write false"),
            _ => "write true or false".into(),
        }),
        ("a boolean", _) => Some("write true or false".into()),
        ("a string", Value::Bool(means)) => {
            let written = literal(node?).unwrap_or_else(|| value.to_yaml());
            Some(format!(
                "`{written}` means {means} in YAML; for the text write KEY: \"{written}\", or 'KEY=\"{written}\"' as an override"
            ))
        }
        ("a string", Value::Int(_) | Value::Float(_)) => {
            Some(format!("to make it a string, put it in quotes: 'KEY=\"{}\"'", value.to_yaml()))
        }
        ("usize" | "u64" | "i64", Value::Float(value)) if value.fract() == 0.0 => Some(format!("write {}", *value as i64)),
        (_, Value::Text(text)) if is_number => {
            let longest = (1..text.len()).rev().filter_map(|end| text.get(..end));
            let number = longest.map(scalar::from_yaml).find(|value| matches!(value, Value::Int(_) | Value::Float(_)))?;
            Some(format!("`{text}` is a string: write the number alone, such as {}", number.to_yaml()))
        }
        _ => None,
    }
}

/// Returns the word in the file, verbatim.
fn literal(node: &Node) -> Option<String> {
    let Origin::File { source, value, .. } = &node.origin else { return None };
    let rest = source.text.lines().nth(value.line - 1)?.chars().skip(value.column - 1);
    Some(rest.take_while(|c| c.is_ascii_alphanumeric()).collect()).filter(|word: &String| !word.is_empty())
}

struct TreeProvider<'a>(&'a Node);

impl Provider for TreeProvider<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::named("configuration")
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        let dict = to_figment(self.0).into_dict().unwrap_or_default();
        Ok(Profile::Default.collect(dict))
    }
}

fn to_figment(node: &Node) -> FigmentValue {
    match &node.value {
        Value::Null => FigmentValue::from(figment::value::Empty::None),
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Text(value) => value.as_str().into(),
        Value::List(items) => items.iter().map(to_figment).collect::<Vec<_>>().into(),
        Value::Map(map) => map.iter().map(|(key, node)| (key.clone(), to_figment(node))).collect::<Dict>().into(),
    }
}
