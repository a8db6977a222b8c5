//! Accounts for every given option: it is named at a setting or in a list of the recipe.

use super::draft::{Draft, Setting};
use super::peer::Peer;
use super::recipe::ordered;
use super::rows::{UNCHANGED, left_out};
use super::values::OptionValues;
use burnish_config::compat::{Ignored, alike};
use burnish_hydra::Value;
use indexmap::IndexMap;
use std::collections::BTreeSet;

type Settings = IndexMap<String, Setting>;

const NO_EFFECT: &str = "without effect together with the other options";

/// Names the given options that the draft and the ignored options do not name: at the settings that would differ without the
/// option, else as ignored. `without` converts the same command with other values.
pub(super) fn account<'a>(
    peer: &Peer,
    draft: &mut Draft<'a>,
    ignored: &mut Vec<Ignored>,
    without: impl Fn(OptionValues) -> Draft<'a>,
) {
    let before = draft.settings.clone();
    for (name, value) in unnamed(draft, ignored) {
        let Some(option) = (peer.options)().find(draft.values.trainer, name) else { continue };
        if alike(&draft.values.default(name), &value) {
            ignored.push(left_out(option, &value, UNCHANGED));
            continue;
        }
        let mut values = draft.values.clone();
        values.set_options.shift_remove(name);
        if !name_settings(draft, name, &before, &without(values).settings) {
            ignored.push(left_out(option, &value, NO_EFFECT));
        }
    }
}

/// Returns the given options that no text of the recipe names.
fn unnamed(draft: &Draft, ignored: &[Ignored]) -> Vec<(&'static str, Value)> {
    let settings = ordered(draft).into_iter().filter_map(|key| draft.settings.get(&key)).map(|setting| setting.why.as_str());
    let texts: Vec<&str> = settings
        .chain(draft.refused.iter().flat_map(|one| [one.option.as_str(), &one.reason]))
        .chain(draft.differences.iter().chain(&draft.notes).map(String::as_str))
        .chain(draft.missing.iter().map(|missing| missing.message.as_str()))
        .collect();
    let is_named = |name: &str| ignored.iter().any(|one| one.key == name) || texts.iter().any(|text| names(text, name));
    draft.values.set_options.iter().filter(|(name, _)| !is_named(name)).map(|(name, value)| (*name, value.clone())).collect()
}

/// Adds the name of an option to the settings that differ without the option; returns false without such a setting.
fn name_settings(draft: &mut Draft, name: &str, with: &Settings, without: &Settings) -> bool {
    let value = |settings: &Settings, key: &str| settings.get(key).map(|setting| setting.value.clone());
    let keys: BTreeSet<&String> = with.keys().chain(without.keys()).collect();
    let changed: Vec<String> = keys.into_iter().filter(|key| value(with, key) != value(without, key)).cloned().collect();
    let mut found = false;
    for key in changed {
        let is_missing = draft.missing.iter().any(|missing| missing.key == key);
        let default = draft.defaults.get(&key).map(|node| node.value.clone());
        let word = format!("--{name}");
        match (draft.settings.get_mut(&key), default) {
            _ if is_missing => {}
            (Some(setting), _) => {
                if !names(&setting.why, name) {
                    setting.why = if setting.why.is_empty() { word } else { format!("{}; {word}", setting.why) };
                }
                setting.is_set = true;
                found = true;
            }
            // The option keeps a built-in default in effect.
            (None, Some(default)) if !matches!(default, Value::Map(_)) => {
                draft.settings.insert(key, Setting { value: default, why: word, is_set: true });
                found = true;
            }
            (None, _) => {}
        }
    }
    found
}

/// Returns true if a text has the name of an option as a word.
fn names(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let continues = after.starts_with(|c: char| is_part(c) || c == '-')
            || after.strip_prefix('.').is_some_and(|rest| rest.starts_with(is_part));
        !before.ends_with(|c: char| is_part(c) || c == '.') && !continues
    })
}
