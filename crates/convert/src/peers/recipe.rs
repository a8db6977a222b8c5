//! Writes the recipe of a converted command of another library.

use super::converted::{PeerConversion, RefusedOption};
use super::draft::{Draft, Setting};
use super::peer::Peer;
use burnish_config::compat::alike;
use burnish_config::recipe::{Entry, Recipe, Section, numbered};
use burnish_hydra::{Node, Value, segments};

/// Returns the text of the recipe.
pub(super) fn write(peer: &Peer, converted: &PeerConversion, draft: &Draft) -> String {
    let subcommand = if converted.subcommand.is_empty() { String::new() } else { format!("{} ", converted.subcommand) };
    let ignored = converted.ignored.iter().map(|one| format!("--{} {}: {}", one.key, one.value, one.reason));
    let mut settings = Section::default();
    for key in ordered(draft) {
        let missing = draft.missing.iter().find(|missing| missing.key == key);
        let default = draft.defaults.get(&key).map(|node| &node.value);
        match (missing, draft.settings.get(&key)) {
            (Some(missing), _) => settings.put(&key, Entry::to_be_set(&key, default, &missing.message)),
            (None, Some(Setting { value, why, .. })) => {
                settings.put(&key, Entry::Value { value: value.clone(), comment: why.clone() });
            }
            (None, None) => {}
        }
    }
    let recipe = Recipe {
        about: vec![
            format!(
                "Converted from a command of {} {} ({}) by `trainer {}`.",
                peer.name, converted.edition, converted.trainer, peer.command
            ),
            format!("Defaults are those of {} {}, {}.", peer.name, converted.edition, converted.why),
            format!("Run it with: trainer {subcommand}--config FILE"),
        ],
        lists: vec![
            ("ignored, because", ignored.collect()),
            ("not supported, and left out", numbered(converted.refused.iter().map(RefusedOption::line))),
            ("different here", draft.differences.clone()),
            ("notes", draft.notes.clone()),
        ],
        preset: converted.preset,
        settings,
    };
    recipe.write()
}

/// Returns the keys that the command gives or that differ from the built-in defaults, in the order of the defaults.
pub(super) fn ordered(draft: &Draft) -> Vec<String> {
    let changed = draft.settings.iter().filter(|(key, setting)| {
        setting.is_set || draft.defaults.get(key).is_none_or(|node| !alike(&node.value, &setting.value))
    });
    let mut keys: Vec<String> =
        changed.map(|(key, _)| key.clone()).chain(draft.missing.iter().map(|missing| missing.key.clone())).collect();
    keys.sort_by_cached_key(|key| place(draft.defaults, key));
    keys.dedup();
    keys
}

/// Returns the settings of the recipe as overrides, without missing values and without the weights of missing files.
pub(super) fn overrides(draft: &Draft) -> Vec<String> {
    let is_missing = |key: &str| draft.missing.iter().any(|missing| missing.key == key);
    let counts_missing_files = |key: &str| key == "data.train_weights" && is_missing("data.train_files");
    let keys = ordered(draft).into_iter().filter(|key| !is_missing(key) && !counts_missing_files(key));
    keys.filter_map(|key| Some(format!("{key}={}", super::value::word(&draft.settings.get(&key)?.value)))).collect()
}

/// Returns the position of each part of a key in the built-in configuration.
fn place(defaults: &Node, key: &str) -> Vec<usize> {
    let mut at = Some(defaults);
    let index = |part: &str| {
        let index = at.and_then(|node| if let Value::Map(map) = &node.value { map.get_index_of(part) } else { None });
        at = at.and_then(|node| node.child(part));
        index.unwrap_or(usize::MAX)
    };
    segments(key).map(index).collect()
}
