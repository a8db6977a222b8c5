//! Comparison of the settings of a resumed run with those of its checkpoint. Some changes are irrelevant and some are reported.
//! Others are refused, because a saved part would be wrong.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};

use super::resume_effects::ChangeEffect::{Free, Refused, Validation};
use super::resume_effects::{CheckpointPart, effect};
use super::sources::Sources;
use burnish_config::compat::inline;
use burnish_config::diff::{Difference, diff};
use burnish_config::{Tree, Value};
use burnish_util::crc::IEEE;
use burnish_util::foreign;

/// File of the resolved configuration in a checkpoint.
pub const CONFIG_FILE: &str = "config.yaml";

/// Settings that have changed since a checkpoint without preventing a resume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// One line per change with key and values, for messages.
    pub lines: Vec<String>,
    /// Lines of changes that affect the metrics of validation.
    pub validation: Vec<String>,
    keys: Vec<String>,
}

impl Changes {
    /// Returns true if the setting `key` has changed.
    pub fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|changed| changed == key)
    }

    /// Returns true if `key`, or a setting in the section `key`, has changed.
    pub fn has_in(&self, key: &str) -> bool {
        let is_in = |changed: &String| changed.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.keys.iter().any(is_in)
    }
}

/// Facts about a run that its checkpoint is compared with, in addition to the settings as written.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// Parts of a checkpoint that are loaded and depend on settings.
    pub loaded: Vec<CheckpointPart>,
    /// Settings that have no effect in this run with any value.
    pub ignored: Vec<String>,
    /// Checksums of the contents that settings name.
    pub sources: Sources,
}

impl RunFacts {
    /// Returns true if a setting, or the mapping that contains it, has no effect in this run.
    fn ignores(&self, key: &str) -> bool {
        let is_it = |one: &String| key.strip_prefix(one.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.ignored.iter().any(is_it)
    }
}

/// Compares the configuration of the checkpoint `folder` with this run's, and reports what changed.
///
/// # Errors
/// If a change does not fit one of the loaded parts; the message names the ways out.
pub fn check_changes(folder: &Path, now: &Tree, compared: &RunFacts) -> Result<Changes> {
    let path = folder.join(CONFIG_FILE);
    if !foreign::is_there(&path)? {
        tracing::warn!("{} is missing, so changed settings cannot be detected", path.display());
        return Ok(Changes::default());
    }
    let text = foreign::read_text(&path, foreign::SETTINGS)?;
    let saved = Tree::parse(&path.display().to_string(), text)?;
    let SortedChanges { refused, contents, changes } = sort(&saved, &Sources::read(folder)?, now, compared);
    if !refused.is_empty() {
        bail!(
            "its contents do not fit the changed settings: {}; change them back, or start over with another \
             trainer.default_local_dir or trainer.resume_mode=disable, or remove `extra` (of data.* and seeds) or `model` and \
             `optimizer` (of the model) from checkpoint.load_contents",
            refused.join(", ")
        );
    }
    changes.lines.iter().for_each(|line| tracing::warn!("changed since the checkpoint: {line}"));
    contents.iter().for_each(|line| tracing::warn!("changed content since the checkpoint: {line}"));
    Ok(changes)
}

/// Returns a checksum, in hexadecimal, of the settings whose changes a resumed run reports or refuses. `settings` is a whole
/// configuration.
pub fn effective_crc(settings: &serde_json::Value) -> String {
    let mut crc = IEEE.checksum(&[]);
    let mut open = vec![(String::new(), settings)];
    while let Some((key, value)) = open.pop() {
        if !key.is_empty() && matches!(effect(&key), Some(Free(_))) {
            continue;
        }
        match value {
            serde_json::Value::Object(fields) if !fields.is_empty() => {
                let below = |name: &String| if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                open.extend(fields.iter().map(|(name, value)| (below(name), value)));
            }
            value => crc = IEEE.extend(crc, format!("{key}={value}\n").as_bytes()),
        }
    }
    format!("{crc:08x}")
}

/// Changes since a checkpoint.
#[derive(Debug, Default, PartialEq)]
struct SortedChanges {
    refused: Vec<String>,
    /// Settings that name other contents under the same path.
    contents: Vec<String>,
    changes: Changes,
}

/// Sorts the changes into refused ones and those that take effect.
fn sort(saved: &Tree, sources: &Sources, now: &Tree, compared: &RunFacts) -> SortedChanges {
    let mut sorted = SortedChanges::default();
    let is_refused = |effect| matches!(effect, Some(Refused(part)) if compared.loaded.contains(&part));
    // A value from the environment is saved resolved. Earlier versions, and secrets, save it as written.
    let others = [now.as_saved(), now.as_written()];
    let others = others.each_ref().map(|now| diff(saved, now).into_iter().map(|change| change.key).collect::<BTreeSet<String>>());
    let differs = |change: &Difference| others.iter().all(|keys| keys.contains(&change.key)) && !reads_alike(change);
    for change in diff(saved, now).into_iter().filter(differs) {
        let effect = effect(&change.key);
        // A path may be spelled in another way.
        let is_same = compared.sources.same(sources, &change.key).unwrap_or_else(|| same_place(&change));
        if is_same || matches!(effect, Some(Free(_))) || compared.ignores(&change.key) {
            continue;
        }
        match is_refused(effect) {
            true => sorted.refused.push(line(&change)),
            false => sorted.changes.lines.push(line(&change)),
        }
        sorted.changes.validation.extend((effect == Some(Validation)).then(|| line(&change)));
        sorted.changes.keys.push(change.key);
    }
    for entry in compared.sources.differing(sources) {
        let (key, part) = entry.split_once(" (").map_or((entry, None), |(key, part)| (key, Some(part)));
        let has_line = sorted.changes.keys.iter().any(|changed| changed == key);
        if has_line || compared.ignores(key) || matches!(effect(key), Some(Free(_))) {
            continue;
        }
        // Weights do not depend on a part of the named contents, such as a chat template.
        let effect = effect(key).filter(|_| part.is_none());
        let value = now.value(key).map_or(String::new(), |value| format!(", {}", inline(value)));
        let text = format!("{entry}: content differs from the checkpoint{value}");
        match is_refused(effect) {
            true => sorted.refused.push(text.clone()),
            false => sorted.contents.push(text.clone()),
        }
        sorted.changes.validation.extend((effect == Some(Validation)).then_some(text));
        sorted.changes.keys.push(key.to_owned());
    }
    sorted
}

/// Returns true if both sides of a change lead to the same files, even with differently spelled paths.
fn same_place(change: &Difference) -> bool {
    let path = |value: &Value| match value {
        Value::Text(text) => Path::new(text).canonicalize().ok(),
        _ => None,
    };
    let [old, new] = change.sides.map(|side| match &side?.value {
        Value::List(items) => items.iter().map(|item| path(&item.value)).collect::<Option<Vec<_>>>(),
        value => path(value).map(|path| vec![path]),
    });
    old.as_ref().is_some_and(|old| !old.is_empty()) && old == new
}

/// Returns true if two values are the same text: a number from the environment is a text.
fn reads_alike(change: &Difference) -> bool {
    let [old, new] = change.sides.map(|side| side.and_then(|node| node.value.plain_text()));
    old.is_some() && old == new
}

fn line(change: &Difference) -> String {
    let [old, new] = change.sides.map(|side| side.map_or("(not there)".to_owned(), |node| inline(&node.value)));
    format!("{}: {old} -> {new}", change.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_config::schema::{PpoConfig, Schema, SftConfig};
    use burnish_config::{Choices, Request, load};

    fn tree<T: Schema>(overrides: &[&str]) -> Tree {
        let overrides = overrides.iter().map(ToString::to_string).collect();
        let task = if T::DEFAULT_NAME == "sft_trainer" { "arithmetic/first_sft.yaml" } else { "arithmetic/first.yaml" };
        let request = Request { config: Some(task.into()), overrides, ..Request::default() };
        load::<T>(&request, &Choices::default()).unwrap().tree
    }

    /// Returns the configuration as read from a checkpoint.
    fn saved(tree: &Tree) -> Tree {
        Tree::parse("config.yaml", tree.to_saved_yaml()).unwrap()
    }

    fn that_loads(loaded: &[CheckpointPart]) -> RunFacts {
        RunFacts { loaded: loaded.to_vec(), ..RunFacts::default() }
    }

    /// Returns the changes by these overrides; with `hidden`, every value of both sides comes from `${oc.env:…}`.
    fn changed(overrides: &[&str], loaded: &[CheckpointPart], hidden: bool) -> (Vec<String>, Changes) {
        let sides = [tree::<PpoConfig>(&[]), tree::<PpoConfig>(overrides)];
        let [before, now] = sides.map(|tree| if hidden { tree.from_environment() } else { tree });
        let SortedChanges { refused, changes, .. } = sort(&saved(&before), &Sources::default(), &now, &that_loads(loaded));
        (refused, changes)
    }

    /// Changes every key of all training pipelines, one at a time, as a literal and through `${oc.env:…}`. The change must be
    /// refused, reported with both values, known to change nothing, or belong to a setting that the run ignores.
    #[test]
    fn no_change_is_lost() {
        let parts = that_loads(&[CheckpointPart::Policy, CheckpointPart::Critic, CheckpointPart::Data]);
        for now in [tree::<PpoConfig>(&[]), tree::<SftConfig>(&[])] {
            for hidden in [false, true] {
                let now = if hidden { now.from_environment() } else { now.clone() };
                let saved = saved(&now);
                for (key, ..) in now.settings() {
                    let mut before = saved.clone();
                    before.set(&key, Value::Text("another value".into()));
                    let SortedChanges { refused, contents, changes } = sort(&before, &Sources::default(), &now, &parts);
                    let expected = [refused, contents, changes.lines.clone()].concat();
                    match effect(&key) {
                        Some(Free(_)) => assert!(expected.is_empty(), "{expected:?}"),
                        _ => assert!(
                            expected.len() == 1 && expected[0].starts_with(&format!("{key}: another value -> ")),
                            "{key}, {hidden}: {expected:?}"
                        ),
                    }
                    let ignoring = RunFacts { ignored: vec![key.clone()], ..parts.clone() };
                    assert_eq!(sort(&before, &Sources::default(), &now, &ignoring), SortedChanges::default(), "{key} is ignored");
                }
            }
        }
    }

    #[test]
    fn a_change_is_free_reported_or_refused() {
        let both = [CheckpointPart::Policy, CheckpointPart::Data];
        for hidden in [false, true] {
            let changed = |overrides: &[&str], loaded: &[CheckpointPart]| changed(overrides, loaded, hidden);
            assert_eq!(changed(&[], &both), (vec![], Changes::default()));
            let free =
                ["trainer.save_freq=7", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=64", "data.val_batch_size=8"];
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

    /// Each key that names contents a checkpoint depends on: another spelling of the same content is not a change. Other content
    /// under the same spelling is one, refused or reported like another value of the key.
    #[test]
    fn contents_are_compared_and_not_their_paths() {
        let all = that_loads(&[CheckpointPart::Policy, CheckpointPart::Critic, CheckpointPart::Data]);
        let sources = |key: &str, content: &str| Sources([(key.to_owned(), format!("file {content}"))].into());
        for now in [tree::<PpoConfig>(&[]), tree::<SftConfig>(&[])] {
            let paths = now.settings().into_iter().map(|(key, ..)| key).filter(|key| {
                let is_path = ["path", "_files", "tokenizer"].iter().any(|end| key.ends_with(end));
                is_path && !matches!(effect(key), Some(Free(_)))
            });
            for key in paths {
                let mut before = saved(&now);
                before.set(&key, Value::Text("elsewhere".into()));
                let here = RunFacts { sources: sources(&key, "1"), ..all.clone() };
                assert_eq!(sort(&before, &sources(&key, "1"), &now, &here), SortedChanges::default(), "{key}: the same content");
                let spelled = sort(&before, &sources(&key, "2"), &now, &here);
                let content = sort(&saved(&now), &sources(&key, "2"), &now, &here);
                for (SortedChanges { refused, contents, changes }, in_place) in [(&spelled, false), (&content, true)] {
                    let expected = [&refused[..], contents, &changes.lines].concat();
                    assert!(
                        expected.len() == 1 && expected[0].starts_with(&format!("{key}: ")),
                        "{key}, in place {in_place}: {expected:?}"
                    );
                    assert_eq!(refused.len(), usize::from(matches!(effect(&key), Some(Refused(_)))), "{key}: {expected:?}");
                    assert_eq!(changes.validation.len(), usize::from(effect(&key) == Some(Validation)), "{key}: {changes:?}");
                }
            }
        }
    }
}
