//! A value of a recipe that its user is to set.

use crate::hydra::Value;

/// Returns the text of such a value: an environment variable named after the key, without which a run is refused. `???` would not
/// do: in a file that lies over another, it leaves the value of that one, as in OmegaConf. `default` is the built-in value: where
/// that is no text, the variable's text is read as a value.
pub fn to_be_set(key: &str, default: Option<&Value>) -> String {
    let variable = format!("${{oc.env:{}}}", key.replace('.', "_").to_uppercase());
    match default {
        Some(Value::Text(_)) | None => variable,
        Some(_) => format!("${{oc.decode:{variable}}}"),
    }
}
