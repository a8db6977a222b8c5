//! The values of a call's options: given values, and the defaults of the edition.

use super::options::PeerOptions;
use super::value;
use burnish_hydra::{Value, inline};
use indexmap::IndexMap;

/// The values of a call's options.
#[derive(Clone)]
pub struct OptionValues {
    pub trainer: &'static str,
    /// Index of the edition.
    pub edition: usize,
    options: &'static PeerOptions,
    pub set_options: IndexMap<&'static str, Value>,
}

impl OptionValues {
    pub fn new(
        options: &'static PeerOptions,
        trainer: &'static str,
        edition: usize,
        set_options: IndexMap<&'static str, Value>,
    ) -> Self {
        Self { trainer, edition, options, set_options }
    }

    /// Returns the default of the first option that the edition has; names are separated by spaces.
    pub fn default(&self, names: &str) -> Value {
        let default = |name| self.options.find(self.trainer, name)?.default(self.edition);
        names.split(' ').find_map(default).unwrap_or(Value::Null)
    }

    /// Returns the given value of one of these options, else the default.
    pub fn get(&self, names: &str) -> Value {
        let value = names.split(' ').find_map(|name| self.set_options.get(name));
        value.cloned().unwrap_or_else(|| self.default(names))
    }

    /// Returns true if the call sets one of these options.
    pub fn is_set(&self, names: &str) -> bool {
        names.split(' ').any(|name| self.set_options.contains_key(name))
    }

    /// Returns true if the call sets one of these options, or the edition has one.
    pub fn has(&self, names: &str) -> bool {
        self.is_set(names) || names.split(' ').any(|name| self.edition_has(name))
    }

    /// Returns true if the edition is older than a release.
    pub(crate) fn is_before(&self, release: &str) -> bool {
        self.options.edition_of(release).is_some_and(|edition| self.edition < edition)
    }

    fn edition_has(&self, name: &str) -> bool {
        self.options.find(self.trainer, name).is_some_and(|option| option.has(self.edition))
    }

    pub fn number(&self, names: &str) -> Option<f64> {
        value::number(&self.get(names))
    }

    /// Returns a count; `None` for a value below 1.
    pub fn count(&self, names: &str) -> Option<usize> {
        self.number(names).filter(|number| *number >= 1.0).map(|number| number as usize)
    }

    pub fn flag(&self, names: &str) -> bool {
        value::flag(&self.get(names)).unwrap_or(false)
    }

    /// Returns a text, even from a number of a file; `None` for an empty one.
    pub fn text(&self, names: &str) -> Option<String> {
        match self.get(names) {
            Value::Text(text) if !text.is_empty() => Some(text),
            Value::Int(_) | Value::Float(_) => Some(inline(&self.get(names))),
            _ => None,
        }
    }

    /// Returns the items of a list; a single value is a list of one.
    pub fn items(&self, names: &str) -> Vec<Value> {
        match self.get(names) {
            Value::List(items) => items.into_iter().map(|item| item.value).collect(),
            Value::Null => vec![],
            one => vec![one],
        }
    }

    /// Returns the origin of a value for a comment: the given options, else the first option that the edition has.
    pub fn source(&self, names: &str) -> String {
        let set: Vec<String> =
            names.split(' ').filter(|name| self.set_options.contains_key(name)).map(|name| format!("--{name}")).collect();
        let known =
            || names.split(' ').find(|name| self.edition_has(name)).map_or(String::new(), |name| format!("default of --{name}"));
        if set.is_empty() { known() } else { set.join(" ") }
    }
}
