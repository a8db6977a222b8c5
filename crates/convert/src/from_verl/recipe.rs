//! Writes the recipe of a converted command of verl.

use super::converted::{Blocked, VerlConversion, placeholder};
use crate::shell::Unknown;
use burnish_config::defaults;
use burnish_config::recipe::{Entry, Recipe, Section, numbered};
use burnish_hydra::{Node, Value, below};

/// Returns the text of the recipe: a header, verl's defaults, and the changes by the command.
pub(super) fn write(converted: &VerlConversion) -> String {
    let ignored = converted.ignored.iter().map(|one| format!("{}={}: {}", one.key, one.value, one.reason));
    let unknown_words = converted.unknown_words.iter().map(|unknown| format!("set me: {}", reason(unknown)));
    let defaults = defaults(converted.kind.default_file()).ok();
    let defaults = defaults.as_ref().map(|defaults| defaults.root());
    let recipe = Recipe {
        about: vec![
            "Converted from a command of verl by `trainer from-verl`.".into(),
            format!(
                "`defaults` loads verl's own defaults of {}; the settings below are the command's changes.",
                converted.edition
            ),
        ],
        lists: vec![
            ("ignored, because", ignored.collect()),
            ("not supported, and left out", numbered(converted.blocked.iter().map(Blocked::line))),
            ("further overrides that the script may add", unknown_words.collect()),
        ],
        preset: &converted.preset,
        settings: section("", &converted.settings, converted, defaults),
    };
    recipe.write()
}

/// Returns the settings below a key.
fn section(key: &str, node: &Node, converted: &VerlConversion, defaults: Option<&Node>) -> Section {
    let Value::Map(map) = &node.value else { return Section::default() };
    let entry = |(name, node): (&String, &Node)| {
        let key = below(key, name);
        let default = defaults.and_then(|defaults| defaults.get(&key)).map(|node| &node.value);
        (name.clone(), entry(&key, node, default, converted, defaults))
    };
    map.iter().map(entry).collect()
}

/// Returns a setting. The user must set a value with unknowns; its comment describes them.
fn entry(key: &str, node: &Node, default: Option<&Value>, converted: &VerlConversion, defaults: Option<&Node>) -> Entry {
    match &node.value {
        Value::Map(map) if !map.is_empty() => Entry::Section(section(key, node, converted, defaults)),
        Value::List(items) if items.iter().any(|item| converted.contains_unknown(&item.value)) => {
            Entry::Items(items.iter().map(|item| entry(key, item, None, converted, defaults)).collect())
        }
        Value::Text(text) if converted.contains_unknown(&node.value) => {
            let unknowns = converted.unknowns.iter().enumerate().filter(|(index, _)| text.contains(&placeholder(*index)));
            let reasons: Vec<String> = unknowns.map(|(_, unknown)| reason(unknown)).collect();
            let shown = converted.shown(text);
            let whole = if shown == "…" { String::new() } else { format!("{shown}: ") };
            Entry::to_be_set(key, default, &format!("{whole}{}", reasons.join("; ")))
        }
        value => Entry::Value { value: value.clone(), comment: String::new() },
    }
}

fn reason(unknown: &Unknown) -> String {
    format!("{} (line {})", unknown.message, unknown.line)
}
