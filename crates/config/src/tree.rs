//! The resolved configuration.

use super::library::LIBRARY;
use burnish_hydra::{ConfigError, Node, Origin, Value, YamlSource, yaml};
use std::sync::Arc;

/// The resolved configuration in the order of the built-in files, with the origin of every value.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    pub(super) root: Node,
    /// The same tree with unresolved `${oc.env:…}`, if the two differ.
    pub(super) written: Option<Node>,
}

impl Tree {
    /// Returns the root of the tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns the whole resolved configuration as YAML, which can be loaded again.
    pub fn to_yaml(&self) -> String {
        format!("{}\n", self.root.value.to_yaml())
    }

    /// Reads the output of [`Tree::to_yaml`]; `name` is for messages.
    ///
    /// # Errors
    /// If the text is not YAML.
    pub fn parse(name: &str, text: String) -> Result<Self, ConfigError> {
        let source = Arc::new(YamlSource { name: name.to_owned(), text });
        let root = yaml::parse(&source).map_err(|problem| ConfigError { problems: vec![problem] })?;
        Ok(Self { root, written: None })
    }

    /// Returns the origin of the value of a dotted key.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.root.get(key).map(|node| &node.origin)
    }

    /// True if the value of the key comes from a built-in file and not from the user.
    pub fn is_built_in(&self, key: &str) -> bool {
        let ours = |source: &YamlSource| LIBRARY.is_built_in(source) || LIBRARY.is_copy_of_built_in(source);
        self.origin(key).is_none_or(|origin| matches!(origin, Origin::File { source, .. } if ours(source)))
    }

    /// Returns the value of a dotted key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.root.get(key).map(|node| &node.value)
    }

    /// Replaces the value of an existing key, for values that are known only when a run starts.
    pub fn set(&mut self, key: &str, value: Value) {
        for root in self.written.iter_mut().chain([&mut self.root]) {
            if let Some(node) = root.get_mut(key) {
                node.value = value.clone();
            }
        }
    }

    /// Returns all dotted keys, mappings before their entries.
    pub fn keys(&self) -> Vec<String> {
        self.root.keys()
    }
}
