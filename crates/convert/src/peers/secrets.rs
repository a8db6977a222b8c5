//! Options whose values are secret.

use burnish_hydra::{Value, inline};
use burnish_util::secret::{HIDDEN, is_secret, remember};

/// Options with a key as the value, whose names do not show this.
const KEYS: &[&str] = &["use_wandb", "logger.wandb.key"];

fn is_hidden(name: &str) -> bool {
    is_secret(name) || KEYS.contains(&name)
}

/// Remembers the value of a secret option, so that no output shows it.
pub(super) fn note(name: &str, value: &str) {
    if is_hidden(name) {
        remember(value);
    }
}

/// Returns the value of an option for messages and recipes.
pub(super) fn shown(name: &str, value: &Value) -> String {
    if is_hidden(name) && matches!(value, Value::Text(_)) { HIDDEN.into() } else { inline(value) }
}
