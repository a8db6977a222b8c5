//! Removal of settings that a run would refuse.

use super::converted::{Blocked, MEANT, VerlConversion, placeholder};
use super::recipe;
use burnish_config::compat::{inline, row};
use burnish_hydra::{Node, Problem, Value, overrides};

impl VerlConversion {
    /// Returns true if the value of a key depends on a real run of the script.
    pub fn has_unknown(&self, key: &str) -> bool {
        self.settings.get(key).is_some_and(|node| self.contains_unknown(&node.value))
    }

    /// Returns the keys whose values contain unknowns, each with a description of the unknowns.
    pub fn open_keys(&self) -> Vec<(String, String)> {
        let mut keys = vec![];
        self.settings.walk(&mut |key, node| {
            if matches!(&node.value, Value::Map(map) if !map.is_empty()) {
                return;
            }
            let text = inline(&node.value);
            let unknowns = self.unknowns.iter().enumerate().filter(|(index, _)| text.contains(&placeholder(*index)));
            let reasons: Vec<String> =
                unknowns.map(|(_, unknown)| format!("{}, in line {}", unknown.message, unknown.line)).collect();
            if !reasons.is_empty() {
                keys.push((key.to_owned(), reasons.join("; ")));
            }
        });
        keys
    }

    /// Returns true if a value contains an unknown.
    pub(super) fn contains_unknown(&self, value: &Value) -> bool {
        let text = inline(value);
        (0..self.unknowns.len()).any(|unknown| text.contains(&placeholder(unknown)))
    }

    /// Comments out the setting that a problem names. Returns false if the command does not set this key.
    pub fn block(&mut self, problem: &Problem) -> bool {
        let Some(node) = self.settings.get(&problem.key).cloned() else { return false };
        if problem.key.is_empty() || self.has_unknown(&problem.key) {
            return false;
        }
        self.settings.remove(&problem.key);
        let is_empty = |node: &Node| matches!(&node.value, Value::Map(map) if map.is_empty());
        let mut key = problem.key.as_str();
        while let Some((section, _)) =
            key.rsplit_once('.').filter(|(section, _)| self.settings.get(section).is_some_and(is_empty))
        {
            self.settings.remove(section);
            key = section;
        }
        self.blocked.push(Blocked { key: problem.key.clone(), value: inline(&node.value), reason: problem.message.clone() });
        self.drop_blocked();
        self.drop_advice();
        self.recipe = recipe::write(self);
        true
    }

    /// Returns the words of the command, with `???` in place of unknowns.
    pub fn words(&self) -> Vec<String> {
        let filled = |word: &String| {
            (0..self.unknowns.len()).fold(word.clone(), |word, unknown| word.replace(&placeholder(unknown), "???"))
        };
        self.overrides.iter().map(filled).collect()
    }

    /// Replaces the unknowns in a text by `…`.
    pub(super) fn shown(&self, text: &str) -> String {
        (0..self.unknowns.len()).fold(text.to_string(), |text, unknown| text.replace(&placeholder(unknown), "…"))
    }

    /// Replaces the unknowns in ignored and blocked settings by `…`.
    pub(super) fn show_unknowns(&mut self) {
        let (mut ignored, mut blocked) = (std::mem::take(&mut self.ignored), std::mem::take(&mut self.blocked));
        ignored.iter_mut().for_each(|one| one.value = self.shown(&one.value));
        blocked.iter_mut().for_each(|one| one.value = self.shown(&one.value));
        (self.ignored, self.blocked) = (ignored, blocked);
    }

    /// Removes advice to write a key that is left out or has no effect here.
    pub(super) fn drop_advice(&mut self) {
        let Ok(defaults) = burnish_config::defaults(self.kind.default_file()) else { return };
        let keys: Vec<String> = self.blocked.iter().map(|one| one.key.clone()).collect();
        for one in &mut self.blocked {
            let Some((reason, advice)) = one.reason.split_once(&format!("; {MEANT}`")) else { continue };
            let key = advice.split('`').next().unwrap_or_default();
            let has_effect =
                row(self.kind, key, defaults.root()).map_or(defaults.value(key).is_some(), |row| row.target.is_some());
            if !has_effect || keys.iter().any(|blocked| blocked == key) {
                one.reason = reason.to_string();
            }
        }
    }

    /// Removes blocked settings from the words of the command.
    pub(super) fn drop_blocked(&mut self) {
        let (renamed, blocked) = (&self.renamed, &self.blocked);
        self.overrides.retain(|word| {
            let Ok(one) = overrides::parse(word) else { return true };
            let name = renamed.iter().find(|renamed| renamed.from == one.key).map_or(one.key.as_str(), |renamed| &renamed.to);
            !blocked.iter().any(|blocked| blocked.key == name)
        });
    }
}
