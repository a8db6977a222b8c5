//! Checks that names are in their registry, and that no setting is refused by a chosen name.

use super::choices::{ADDING_NAMES, OPENED};
use super::report::Report;
use burnish_hydra::{Node, Problem, Value, suggest};
use burnish_registry::{Refusal, When};

/// Returns the items of a list, or the node itself as the only item.
fn items(node: &Node) -> &[Node] {
    if let Value::List(items) = &node.value { items } else { std::slice::from_ref(node) }
}

/// True if a setting has a refused value; `None` stands for a missing key.
fn holds(when: When, value: Option<&Value>) -> bool {
    let off = matches!(value, None | Some(Value::Null | Value::Bool(false)));
    match when {
        When::On => !off,
        When::Off => off,
        When::Is(text) => value.and_then(Value::plain_text).is_some_and(|value| value == text),
    }
}

impl Report<'_> {
    /// True if a setting is neither `false` nor `null`.
    pub(super) fn is_on(&self, key: &str) -> bool {
        holds(When::On, self.tree.get(key).map(|node| &node.value))
    }

    /// True if a setting has the value of the built-in configuration.
    pub(super) fn is_default(&self, key: &str) -> bool {
        self.tree.get(key).map(|node| node.value.to_yaml()) == self.defaults.get(key).map(|node| node.value.to_yaml())
    }

    /// Checks that values are names in their registry.
    pub(super) fn check_names(&mut self) {
        for key in self.choices.keys() {
            let (Some(node), Some(allowed)) = (self.tree.get(key), self.choices.names(key)) else { continue };
            let opened = OPENED.iter().find(|(to, _)| *to == key).map(|(_, by)| *by);
            if opened.is_some_and(|by| self.is_on(by)) {
                continue;
            }
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
                let why = self.choices.absent(key, name).map(|reason| format!(": {reason}")).unwrap_or_default();
                let message = format!("`{key}` must be one of {}, not `{name}`{why}", allowed.join(", "));
                let problem = Problem::new(key, message).at(&item.origin);
                let suggestion = suggest::did_you_mean(suggest::closest(name, allowed.iter().copied()));
                let own = opened.map(|by| format!("to use your own name, set its file: {by}=FILE"));
                let help: Vec<String> = suggestion.into_iter().chain(own).collect();
                self.problems.push(if help.is_empty() { problem } else { problem.help(help.join(" ")) });
            }
        }
    }

    /// Reports the settings that the chosen names refuse.
    pub(super) fn check_refusals(&mut self) {
        let (choices, tree) = (self.choices, self.tree);
        for key in choices.keys() {
            for item in tree.get(key).map(items).unwrap_or_default() {
                let Some(choice) = item.value.plain_text().and_then(|name| choices.find(key, &name)) else { continue };
                for Refusal { key, when, why, instead } in choice.refuses {
                    if holds(*when, tree.get(key).map(|node| &node.value)) {
                        let filled = |text: &str| text.replace("NAME", &choice.name).replace("KEY", key);
                        self.wrong(key, filled(why), filled(instead));
                    }
                }
            }
        }
    }
}
