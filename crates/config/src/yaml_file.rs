//! YAML files that settings name, such as a list of tools: plain values for their readers, and positions for error messages.

use std::path::Path;
use std::sync::Arc;

use burnish_hydra::{ConfigError, Node, Origin, Problem, Value, YamlSource, interpolation, yaml};
use burnish_util::foreign;

/// Maximum size of a file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// A YAML file, read by OmegaConf's rules, with `${…}` resolved.
#[derive(Debug)]
pub struct YamlFile {
    root: Node,
    value: serde_json::Value,
}

impl YamlFile {
    /// Reads a file. `setting`: the key that names the file.
    ///
    /// # Errors
    /// If the file cannot be read or is not YAML, a `${…}` has no value, or a number is not finite; each error has its position.
    pub fn read(setting: &str, path: &Path) -> Result<Self, ConfigError> {
        let text = foreign::read_text(path, MAX_BYTES)
            .map_err(|error| ConfigError { problems: vec![Problem::new(setting, format!("`{setting}`: {error:#}"))] })?;
        Self::parse(&path.display().to_string(), text)
    }

    /// Parses a text; `name` is its name in messages.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn parse(name: &str, text: String) -> Result<Self, ConfigError> {
        let source = Arc::new(YamlSource { name: name.to_owned(), text });
        let written = yaml::parse(&source).map_err(|problem| ConfigError { problems: vec![problem] })?;
        let (root, problems) = interpolation::resolve(&written);
        if !problems.is_empty() {
            return Err(ConfigError { problems });
        }
        let value = plain(&root).map_err(|(key, node)| {
            let problem = Problem::new(&key, format!("`{key}` is not a finite number")).at(&node.origin);
            ConfigError { problems: vec![problem] }
        })?;
        Ok(Self { root, value })
    }

    /// Returns the content of the file. An empty file is an empty mapping.
    pub fn value(&self) -> &serde_json::Value {
        &self.value
    }

    /// Returns the error of a value at a dotted key, with its position in the file.
    pub fn wrong(&self, key: &str, message: impl Into<String>) -> ConfigError {
        let node = self.root.get(key).unwrap_or(&self.root);
        ConfigError { problems: vec![Problem::new(key, message).at(&position(key, &node.origin))] }
    }
}

/// Returns the position for a message: the value, or the beginning of the file if the key is empty.
fn position(key: &str, origin: &Origin) -> Origin {
    if key.is_empty() { origin.at_key() } else { origin.clone() }
}

/// Returns a value without positions.
///
/// # Errors
/// The key and the node of a number that is not finite.
fn plain(node: &Node) -> Result<serde_json::Value, (String, &Node)> {
    // The key is built only for an error, on the way back, since keys may be long and many.
    let below =
        |name: &str, (key, node): (String, _)| (if key.is_empty() { name.to_owned() } else { format!("{name}.{key}") }, node);
    Ok(match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => serde_json::Number::from_f64(*value).ok_or((String::new(), node))?.into(),
        Value::Text(text) => text.clone().into(),
        Value::List(items) => {
            let items = items.iter().enumerate().map(|(at, item)| plain(item).map_err(|wrong| below(&at.to_string(), wrong)));
            serde_json::Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Map(entries) => {
            let plain = |(name, node)| Ok((String::clone(name), plain(node).map_err(|wrong| below(name, wrong))?));
            serde_json::Value::Object(entries.iter().map(plain).collect::<Result<_, _>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_plain_and_mistakes_have_places() {
        let text = "tools:\n  - class_name: m.T\n    config: {rate: 1e-3, flag: yes, like: '${tools.0.class_name}'}\n";
        let file = YamlFile::parse("tools.yaml", text.into()).unwrap();
        let expected =
            serde_json::json!({"tools": [{"class_name": "m.T", "config": {"rate": 0.001, "flag": true, "like": "m.T"}}]});
        assert_eq!(file.value(), &expected);
        let message = file.wrong("tools.0.class_name", "no such class").to_string();
        assert!(message.contains("no such class") && message.contains("tools.yaml:2:17"), "{message}");
        assert_eq!(YamlFile::parse("e", "- a\n- {b: 1}".into()).unwrap().value(), &serde_json::json!(["a", {"b": 1}]));
        assert_eq!(YamlFile::parse("e", String::new()).unwrap().value(), &serde_json::json!({}));
        for (text, part) in
            [("a: [", "bad.yaml:"), ("a: .nan", "not a finite number"), ("a: ${b}", "b"), ("a: 1\na: 2", "bad.yaml:2")]
        {
            let message = YamlFile::parse("bad.yaml", text.into()).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
