//! The names of the registries, as the configuration sees them: the names, the needs of each, and the settings that it refuses.

use super::{Node, Problem, Report, Value};
use crate::hydra::suggest;
use crate::util::choice::{Choice, Need, Refusal, When};

/// Keys whose values are names of a registry, and the settings that add names to them.
pub(super) const ADDING_NAMES: &[(&str, &str)] = &[("reward_model.reward_functions", "custom_reward_function.name")];

/// Every name that the registries of one kind of configuration know; by default none, and then no name is checked.
#[derive(Clone, Debug, Default)]
pub struct Choices(Vec<Choice>);

impl FromIterator<Choice> for Choices {
    fn from_iter<I: IntoIterator<Item = Choice>>(choices: I) -> Self {
        Self(choices.into_iter().collect())
    }
}

impl Choices {
    /// Returns all choices, grouped by key.
    pub fn iter(&self) -> impl Iterator<Item = &Choice> {
        self.0.iter()
    }

    /// Returns the choices of a key.
    pub fn of(&self, key: &str) -> impl Iterator<Item = &Choice> {
        self.0.iter().filter(move |choice| choice.key == key)
    }

    /// Returns the names that a key may hold; `None` if no registry knows its names.
    pub fn names(&self, key: &str) -> Option<Vec<&str>> {
        Some(self.of(key).map(|choice| choice.name.as_ref()).collect()).filter(|names: &Vec<_>| !names.is_empty())
    }

    /// Returns the choice of a key with this name.
    pub fn find(&self, key: &str, name: &str) -> Option<&Choice> {
        self.of(key).find(|choice| choice.name == name)
    }

    /// Says whether this name, as the value of this key, has this need.
    pub fn needs(&self, key: &str, name: &str, need: Need) -> bool {
        self.find(key, name).is_some_and(|choice| choice.needs.contains(&need))
    }

    /// Returns the keys that hold a name, each once.
    fn keys(&self) -> Vec<&'static str> {
        let mut keys: Vec<&str> = self.0.iter().map(|choice| choice.key).collect();
        keys.dedup();
        keys
    }
}

/// Returns the items of a list, or the node itself as the only item.
fn items(node: &Node) -> &[Node] {
    if let Value::List(items) = &node.value { items } else { std::slice::from_ref(node) }
}

impl When {
    /// Says whether a setting, `None` if there is no such key, has such a value.
    fn holds(self, value: Option<&Value>) -> bool {
        let off = matches!(value, None | Some(Value::Null | Value::Bool(false)));
        match self {
            Self::On => !off,
            Self::Off => off,
            Self::Is(text) => value.and_then(Value::plain_text).is_some_and(|value| value == text),
        }
    }
}

impl Report<'_> {
    /// Says whether a setting is neither `false` nor `null`.
    pub(super) fn is_on(&self, key: &str) -> bool {
        When::On.holds(self.tree.get(key).map(|node| &node.value))
    }

    /// Says whether a setting has the value of the built-in configuration.
    pub(super) fn is_default(&self, key: &str) -> bool {
        self.tree.get(key).map(|node| node.value.to_yaml()) == self.defaults.get(key).map(|node| node.value.to_yaml())
    }

    /// Checks that values are names of their registry.
    pub(super) fn check_names(&mut self) {
        for key in self.choices.keys() {
            let (Some(node), Some(allowed)) = (self.tree.get(key), self.choices.names(key)) else { continue };
            let own = ADDING_NAMES.iter().find(|(to, _)| *to == key).and_then(|(_, by)| self.tree.get(by));
            let own: Vec<&Value> = own.map(items).unwrap_or_default().iter().map(|item| &item.value).collect();
            for item in items(node) {
                let Value::Text(name) = &item.value else { continue };
                if allowed.contains(&name.as_str())
                    || own.contains(&&item.value)
                    || self.problems.iter().any(|problem| problem.key == *key)
                {
                    continue;
                }
                let problem =
                    Problem::new(key, format!("`{key}` must be one of {}, not `{name}`", allowed.join(", "))).at(&item.origin);
                let meant = suggest::did_you_mean(suggest::closest(name, allowed.iter().copied()));
                self.problems.push(meant.into_iter().fold(problem, Problem::help));
            }
        }
    }

    /// Checks what the chosen names refuse.
    pub(super) fn check_refusals(&mut self) {
        let (choices, tree) = (self.choices, self.tree);
        for key in choices.keys() {
            for item in tree.get(key).map(items).unwrap_or_default() {
                let Some(choice) = item.value.plain_text().and_then(|name| choices.find(key, &name)) else { continue };
                for Refusal { key, when, why, instead } in choice.refuses {
                    if when.holds(tree.get(key).map(|node| &node.value)) {
                        let said = |text: &str| text.replace("NAME", &choice.name).replace("KEY", key);
                        self.wrong(key, said(why), said(instead));
                    }
                }
            }
        }
    }
}
