//! Options that have no effect beside the others.

use anyhow::Result;

use crate::config::schema::Schema;
use crate::config::{Tree, defaults};

/// Whether an option has no effect, its key, and why.
pub(super) type Idle = (bool, &'static str, &'static str);

/// Says which of `options` were set, to other than the default, and have no effect.
pub(super) fn warn_of_idle<T: Schema>(tree: &Tree, options: &[Idle]) -> Result<()> {
    let defaults = defaults(T::DEFAULT_NAME)?;
    // As text, for lists remember where their items were written.
    let written = |tree: &Tree, key: &str| tree.value(key).map(|value| value.to_yaml());
    for (_, key, reason) in options.iter().filter(|(idle, ..)| *idle) {
        if written(tree, key) != written(&defaults, key) {
            tracing::warn!("ignored: {key}: {reason}");
        }
    }
    Ok(())
}
