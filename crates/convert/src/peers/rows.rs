//! The rows of single options, and the options that no row or setting names.

use super::draft::Draft;
use super::options::OptionRow;
use super::peer::{OptionTreatment, Peer};
use super::secrets::shown;
use burnish_config::compat::{Ignored, alike};
use burnish_hydra::Value;

const UNCHANGED: &str = "the value is the default, and the program does the same";
const NO_EFFECT: &str = "without effect together with the other options";

/// Applies the rows of single options, and returns the ignored options.
pub(super) fn apply(peer: &Peer, draft: &mut Draft) -> Vec<Ignored> {
    let mut ignored = vec![];
    for option in (peer.options)().of(draft.values.trainer) {
        let given = draft.values.given.get(option.name).cloned();
        match (peer.treatment(draft.values.trainer, option.name), given) {
            (Some(OptionTreatment::Key(key)), Some(_)) => draft.copy(key, option.name),
            // Another spelling of the option may be given.
            (Some(OptionTreatment::Key(key)), None) => {
                if draft.values.has(option.name) && draft.settings.get(&draft.key(key)).is_none_or(|setting| !setting.is_given) {
                    draft.copy(key, option.name);
                }
            }
            (Some(OptionTreatment::Ignored(reason)), Some(given)) => ignored.push(left_out(option, &given, reason)),
            (Some(OptionTreatment::Refused(_)), Some(given)) if !is_changed(option, &given) => {
                ignored.push(left_out(option, &given, UNCHANGED));
            }
            (Some(OptionTreatment::Refused(reason)), Some(_)) => draft.refuse(option.name, reason),
            (None, Some(_)) => draft.refuse(option.name, format!("this option of {} is not converted", peer.name)),
            (_, None) | (Some(OptionTreatment::Read(_)), _) => {}
        }
    }
    ignored
}

/// Returns the given options that neither the recipe nor one of its lists names: they have no effect.
pub(super) fn without_effect(peer: &Peer, draft: &Draft, ignored: &[Ignored], keys: &[String]) -> Vec<Ignored> {
    let settings = keys.iter().filter_map(|key| draft.settings.get(key)).map(|setting| setting.why.as_str());
    let texts: Vec<&str> = settings
        .chain(draft.refused.iter().flat_map(|one| [one.option.as_str(), &one.reason]))
        .chain(draft.differences.iter().chain(&draft.notes).map(String::as_str))
        .chain(draft.missing.iter().map(|missing| missing.message.as_str()))
        .collect();
    let is_named = |name: &str| ignored.iter().any(|one| one.key == name) || texts.iter().any(|text| names(text, name));
    let lost = draft.values.given.iter().filter(|(name, _)| !is_named(name));
    let row = |name: &str| (peer.options)().find(draft.values.trainer, name);
    lost.filter_map(|(name, given)| Some(left_out(row(name)?, given, NO_EFFECT))).collect()
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

fn left_out(option: &OptionRow, given: &Value, reason: &'static str) -> Ignored {
    Ignored { key: option.name.into(), value: shown(option.name, given), reason }
}

/// Returns true if a value differs from the defaults of all editions. `false` changes an option that is on by default.
fn is_changed(option: &OptionRow, given: &Value) -> bool {
    let is_on = option.defaults().any(|default| default == Value::Bool(true));
    !option.defaults().any(|default| alike(&default, given)) && (is_on || !is_off(given))
}

/// Returns true if a value is null, false or empty.
fn is_off(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false)) || matches!(value, Value::Text(text) if text.is_empty())
}
