//! The recipe file of a converted command.

use super::converted::Converted;
use super::draft::Draft;
use super::peer::Peer;
use crate::config::compat::alike;
use crate::config::hole::to_be_set;
use crate::hydra::{Node, Value, segments};
use indexmap::IndexMap;

/// A mapping of the recipe, in the order of the built-in configuration.
#[derive(Default)]
struct Section {
    entries: IndexMap<String, Entry>,
}

enum Entry {
    Section(Section),
    /// The YAML of a value, and the comment behind it.
    Value(Value, String),
}

/// Returns the text of the recipe.
pub fn write(peer: &Peer, converted: &Converted, draft: &Draft) -> String {
    let mut text = format!(
        "# Converted from a command of {} {} ({}) by `trainer {}`.\n# It runs as: trainer {}--config FILE\n",
        peer.name,
        converted.edition,
        converted.trainer,
        peer.command,
        if converted.subcommand.is_empty() { String::new() } else { format!("{} ", converted.subcommand) },
    );
    let ignored = converted.ignored.iter().map(|one| format!("--{} {}: {}", one.key, one.value, one.reason)).collect();
    let refused = converted.refused.iter().map(|one| format!("{}: {}", one.option, one.reason));
    let refused = refused.enumerate().map(|(index, line)| format!("{}. {line}", index + 1)).collect();
    let blocks = [("ignored, because", ignored), ("not here", refused), ("to know", draft.notes.clone())];
    for (title, list) in blocks as [(&str, Vec<String>); 3] {
        if !list.is_empty() {
            let lines: String = list.iter().map(|line| format!("#   {line}\n")).collect();
            text.push_str(&format!("#\n# {title}\n{lines}"));
        }
    }
    text.push_str(&format!("defaults:\n  - /{}\n  - _self_\n", converted.preset));
    let mut root = Section::default();
    for key in ordered(draft) {
        let hole = draft.holes.iter().find(|hole| hole.key == key);
        let entry = match (hole, draft.settings.get(&key)) {
            (Some(hole), _) => {
                let default = draft.defaults.get(&key).map(|node| &node.value);
                (Value::Text(to_be_set(&key, default)), format!("set me: {}", hole.message))
            }
            (None, Some(setting)) => (setting.value.clone(), setting.why.clone()),
            (None, None) => continue,
        };
        root.put(&key, entry);
    }
    for (name, entry) in &root.entries {
        text.push('\n');
        entry.write(name, 0, &mut text);
    }
    text
}

/// Returns the keys of the settings that the command gives or that differ from the built-in ones, in the order of those.
fn ordered(draft: &Draft) -> Vec<String> {
    let given = draft.settings.iter().filter(|(key, setting)| {
        setting.is_given || draft.defaults.get(key).is_none_or(|node| !alike(&node.value, &setting.value))
    });
    let mut keys: Vec<String> =
        given.map(|(key, _)| key.clone()).chain(draft.holes.iter().map(|hole| hole.key.clone())).collect();
    keys.sort_by_cached_key(|key| place(draft.defaults, key));
    keys.dedup();
    keys
}

/// Returns the settings that [`write`] writes, as overrides.
pub fn overrides(draft: &Draft) -> Vec<String> {
    let is_hole = |key: &str| draft.holes.iter().any(|hole| hole.key == key);
    let keys = ordered(draft).into_iter().filter(|key| !is_hole(key));
    keys.filter_map(|key| Some(format!("{key}={}", super::value::word(&draft.settings.get(&key)?.value)))).collect()
}

/// Returns the index of each part of a key in the built-in configuration.
fn place(defaults: &Node, key: &str) -> Vec<usize> {
    let mut at = Some(defaults);
    let index = |part: &str| {
        let index = at.and_then(|node| if let Value::Map(map) = &node.value { map.get_index_of(part) } else { None });
        at = at.and_then(|node| node.child(part));
        index.unwrap_or(usize::MAX)
    };
    segments(key).map(index).collect()
}

impl Section {
    fn put(&mut self, key: &str, (value, why): (Value, String)) {
        match key.split_once('.') {
            None => _ = self.entries.insert(key.to_string(), Entry::Value(value, why)),
            Some((first, rest)) => {
                let section = self.entries.entry(first.to_string()).or_insert_with(|| Entry::Section(Self::default()));
                if let Entry::Section(section) = section {
                    section.put(rest, (value, why));
                }
            }
        }
    }
}

impl Entry {
    fn write(&self, name: &str, indent: usize, text: &mut String) {
        let name = Value::Text(name.to_string()).to_yaml();
        let margin = " ".repeat(indent);
        match self {
            Self::Section(section) => {
                text.push_str(&format!("{margin}{name}:\n"));
                section.entries.iter().for_each(|(name, entry)| entry.write(name, indent + 2, text));
            }
            Self::Value(value, why) => {
                let comment = if why.is_empty() { String::new() } else { format!("  # {}", why.replace('\n', " ")) };
                let is_block = match value {
                    Value::List(items) => !items.is_empty(),
                    Value::Map(entries) => !entries.is_empty(),
                    _ => false,
                };
                if !is_block {
                    return text.push_str(&format!("{margin}{name}: {}{comment}\n", value.to_yaml()));
                }
                text.push_str(&format!("{margin}{name}:{comment}\n"));
                value.to_yaml().lines().for_each(|line| text.push_str(&format!("{margin}  {line}\n")));
            }
        }
    }
}
