//! Resuming with other settings than those of the checkpoint: some changes are irrelevant, some are reported, and some are
//! refused because a saved part would be wrong.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};
use serde_json::Value;

use super::fates::ChangeEffect::{Free, Refused, Validation};
use super::fates::{CheckpointPart, fate};
use crate::config::Tree;
use crate::config::compat::inline;
use crate::config::diff::{Difference, diff};
use crate::util::crc::IEEE;
use crate::util::foreign;

/// The file of the resolved configuration in a checkpoint.
pub const CONFIG_FILE: &str = "config.yaml";

/// The settings that have changed since a checkpoint without preventing a resume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// One line per change with key and values, for messages.
    pub lines: Vec<String>,
    /// The lines of changes that affect what validation measures.
    pub validation: Vec<String>,
    keys: Vec<String>,
}

impl Changes {
    /// True if the setting `key` has changed.
    pub fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|changed| changed == key)
    }
}

/// Compares the configuration of the checkpoint `folder` with this run's, and reports what changed.
///
/// # Errors
/// If a change does not fit one of the `loaded` parts; the message says what to do.
pub fn check_changes(folder: &Path, now: &Tree, loaded: &[CheckpointPart]) -> Result<Changes> {
    let path = folder.join(CONFIG_FILE);
    if !foreign::is_there(&path)? {
        tracing::warn!("{} is not there: whether settings have changed since is not known", path.display());
        return Ok(Changes::default());
    }
    let text = foreign::read_text(&path, foreign::SETTINGS)?;
    let saved = Tree::parse(&path.display().to_string(), text)?;
    let (refused, changes) = sort(&saved, now, loaded);
    if !refused.is_empty() {
        bail!(
            "it was made with other settings, which what it holds does not fit: {}; put them back, or start anew with another \
             trainer.default_local_dir or trainer.resume_mode=disable, or take `extra` (of data.* and seeds) or `model` and \
             `optimizer` (of the model) out of checkpoint.load_contents",
            refused.join(", ")
        );
    }
    changes.lines.iter().for_each(|line| tracing::warn!("changed since the checkpoint: {line}"));
    Ok(changes)
}

/// A checksum of the settings whose change a resumed run notices, in hexadecimal. `settings` is a whole configuration.
pub fn effective_crc(settings: &Value) -> String {
    let mut crc = IEEE.of(&[]);
    let mut open = vec![(String::new(), settings)];
    while let Some((key, value)) = open.pop() {
        if !key.is_empty() && matches!(fate(&key), Some(Free(_))) {
            continue;
        }
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let below = |name: &String| if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                open.extend(fields.iter().map(|(name, value)| (below(name), value)));
            }
            value => crc = IEEE.extend(crc, format!("{key}={value}\n").as_bytes()),
        }
    }
    format!("{crc:08x}")
}

/// Sorts the changes into those that are refused and those that take effect.
fn sort(saved: &Tree, now: &Tree, loaded: &[CheckpointPart]) -> (Vec<String>, Changes) {
    let (mut refused, mut changes) = (Vec::new(), Changes::default());
    // A value from the environment may be saved as written or, by an earlier version, as it was.
    let now_saved = now.as_saved();
    let differ: BTreeSet<String> = diff(saved, &now_saved).into_iter().map(|change| change.key).collect();
    for change in diff(saved, now).into_iter().filter(|change| differ.contains(&change.key)) {
        let fate = fate(&change.key);
        match fate {
            Some(Free(_)) => continue,
            Some(Refused(part)) if loaded.contains(&part) => refused.push(line(&change)),
            _ => changes.lines.push(line(&change)),
        }
        changes.validation.extend((fate == Some(Validation)).then(|| line(&change)));
        changes.keys.push(change.key);
    }
    (refused, changes)
}

fn line(change: &Difference) -> String {
    let [old, new] = change.sides.map(|side| side.map_or("(not there)".to_owned(), |node| inline(&node.value)));
    format!("{}: {old} -> {new}", change.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::{PpoConfig, Schema, SftConfig};
    use crate::config::{Choices, Node, Request, Value, load};

    fn tree<T: Schema>(overrides: &[&str]) -> Tree {
        let overrides = overrides.iter().map(ToString::to_string).collect();
        let request = Request { config: Some(T::DEFAULT_NAME.into()), overrides, ..Request::default() };
        load::<T>(&request, &Choices::default()).unwrap().tree
    }

    fn changed(overrides: &[&str], loaded: &[CheckpointPart]) -> (Vec<String>, Changes) {
        let saved = Tree::parse("config.yaml", tree::<PpoConfig>(&[]).to_yaml()).unwrap();
        sort(&saved, &tree::<PpoConfig>(overrides), loaded)
    }

    /// Changes every key of both schemas, one at a time: the change is refused, or reported with both values, or known to change
    /// nothing.
    #[test]
    fn no_change_is_lost() {
        let parts = [CheckpointPart::Policy, CheckpointPart::Critic, CheckpointPart::Data];
        for now in [tree::<PpoConfig>(&[]), tree::<SftConfig>(&[])] {
            for (key, ..) in now.settings() {
                let mut before = now.root().clone();
                before.put(&key, Node::new(Value::Text("another value".into()), before.origin.clone()));
                let before = Tree::parse("config.yaml", before.value.to_yaml()).unwrap();
                let (refused, changes) = sort(&before, &now, &parts);
                let said = [refused, changes.lines].concat();
                match fate(&key) {
                    Some(Free(_)) => assert!(said.is_empty(), "{said:?}"),
                    _ => assert!(said.len() == 1 && said[0].starts_with(&format!("{key}: another value -> ")), "{key}: {said:?}"),
                }
            }
        }
    }

    #[test]
    fn a_change_is_free_reported_or_refused() {
        let both = [CheckpointPart::Policy, CheckpointPart::Data];
        assert_eq!(changed(&[], &both), (vec![], Changes::default()));
        let free = ["trainer.save_freq=7", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=64", "data.val_batch_size=8"];
        assert_eq!(changed(&free, &both), (vec![], Changes::default()));
        let (lr, n) = ("actor_rollout_ref.actor.optim.lr", "actor_rollout_ref.rollout.val_kwargs.n");
        let (refused, changes) = changed(&[&format!("{lr}=0.25"), "algorithm.adv_estimator=grpo", &format!("{n}=2")], &both);
        assert_eq!((refused.len(), changes.lines.len()), (0, 3));
        assert!(changes.lines.contains(&format!("{lr}: 0.0004 -> 0.25")) && changes.has(lr), "{changes:?}");
        assert_eq!(changes.validation, [format!("{n}: 1 -> 2")]);
        let meaning = ["trainer.seed=5", "actor_rollout_ref.model.path=tests/data"];
        let (refused, _) = changed(&meaning, &both);
        assert_eq!(refused.len(), 2, "{refused:?}");
        assert!(refused.contains(&"trainer.seed: 1 -> 5".to_owned()), "{refused:?}");
        let (refused, changes) = changed(&meaning, &[]);
        assert!(refused.is_empty() && changes.lines.contains(&"trainer.seed: 1 -> 5".to_owned()), "{changes:?}");
    }
}
