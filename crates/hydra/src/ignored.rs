//! Settings without an effect, and the text that reports them.

use super::emit::inline;
use super::tree::Value;

/// A key without an effect whose value differs from its default.
#[derive(Debug, Clone, PartialEq)]
pub struct Ignored {
    pub key: String,
    /// The value that the key was set to, as YAML.
    pub value: String,
    pub reason: &'static str,
}

impl Ignored {
    /// Creates the entry for a setting of Hydra itself.
    pub fn hydra(key: String, value: &Value) -> Self {
        Self { key, value: inline(value), reason: "it is a setting of Hydra, which does not run here" }
    }
}

/// Returns the text that a run prints: one line per reason, with the settings that it applies to.
pub fn summary(ignored: &[Ignored]) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = vec![];
    for one in ignored {
        let text = format!("{}={}", one.key, one.value);
        match reasons.iter_mut().find(|(reason, _)| *reason == one.reason) {
            Some((_, keys)) => keys.push(text),
            None => reasons.push((one.reason, vec![text])),
        }
    }
    let lines = reasons.into_iter().map(|(reason, keys)| format!("\n  {}: {reason}", keys.join(", ")));
    format!("these settings are ignored{}", lines.collect::<String>())
}
