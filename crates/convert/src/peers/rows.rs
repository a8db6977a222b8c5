//! The rows of single options.

use super::draft::Draft;
use super::options::OptionRow;
use super::peer::{OptionTreatment, Peer};
use super::secrets::shown;
use burnish_config::compat::{Ignored, alike};
use burnish_hydra::Value;

pub(super) const UNCHANGED: &str = "the value is the default, and the program does the same";

/// Applies the rows of single options, and returns the ignored options.
pub(super) fn apply(peer: &Peer, draft: &mut Draft) -> Vec<Ignored> {
    let mut ignored = vec![];
    for option in (peer.options)().of(draft.values.trainer) {
        let value = draft.values.set_options.get(option.name).cloned();
        match (peer.treatment(draft.values.trainer, option.name), value) {
            (Some(OptionTreatment::Key(key)), Some(_)) => draft.copy(key, option.name),
            // Another spelling of the option may be given.
            (Some(OptionTreatment::Key(key)), None) => {
                if draft.values.has(option.name) && draft.settings.get(&draft.key(key)).is_none_or(|setting| !setting.is_set) {
                    draft.copy(key, option.name);
                }
            }
            (Some(OptionTreatment::Ignored(reason)), Some(value)) => ignored.push(left_out(option, &value, reason)),
            (Some(OptionTreatment::Refused(_)), Some(value)) if !is_changed(option, &value) => {
                ignored.push(left_out(option, &value, UNCHANGED));
            }
            (Some(OptionTreatment::Refused(reason)), Some(_)) => draft.refuse(option.name, reason),
            (None, Some(_)) => draft.refuse(option.name, format!("this option of {} is not converted", peer.name)),
            (_, None) | (Some(OptionTreatment::Read(_)), _) => {}
        }
    }
    ignored
}

/// Returns an option for the list of ignored options.
pub(super) fn left_out(option: &OptionRow, value: &Value, reason: &'static str) -> Ignored {
    let is_on = option.defaults().any(|default| default == Value::Bool(true));
    let value = match value {
        Value::Bool(false) if is_on => format!("false (--no_{})", option.name),
        _ => shown(option.name, value),
    };
    Ignored { key: option.name.into(), value, reason }
}

/// Returns true if a value differs from the defaults, which is what the program does. Of a flag the newest default counts: `false`
/// changes one that is on.
fn is_changed(option: &OptionRow, value: &Value) -> bool {
    match option.defaults().last() {
        Some(Value::Bool(newest)) => !alike(&Value::Bool(newest), value) && (newest || !is_off(value)),
        _ => !is_off(value) && !option.defaults().any(|default| alike(&default, value)),
    }
}

/// Returns true if a value is null, false or empty.
fn is_off(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false)) || matches!(value, Value::Text(text) if text.is_empty())
}
