//! Resuming with other settings than those of the checkpoint: some changes are irrelevant, some are reported, and some are
//! refused because a saved part would be wrong.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};

use super::fates::ChangeEffect::{Free, Refused, Validation};
use super::fates::{CheckpointPart, fate};
use super::sources::Sources;
use burnish_config::compat::inline;
use burnish_config::diff::{Difference, diff};
use burnish_config::{Tree, Value};
use burnish_util::crc::IEEE;
use burnish_util::foreign;

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
    /// Returns true if the setting `key` has changed.
    pub fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|changed| changed == key)
    }
}

/// The knowledge of a run about itself that its checkpoint is compared with, in addition to the settings as they are written.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// The parts of a checkpoint that are loaded, as far as settings can make them wrong.
    pub loaded: Vec<CheckpointPart>,
    /// The settings that have no effect in this run, whatever their values are.
    pub ignored: Vec<String>,
    /// Checksums of what settings name.
    pub sources: Sources,
}

impl Compared {
    /// Returns true if a setting, or the mapping that it is an entry of, has no effect in this run.
    fn ignores(&self, key: &str) -> bool {
        let is_it = |one: &String| key.strip_prefix(one.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.ignored.iter().any(is_it)
    }
}

/// Compares the configuration of the checkpoint `folder` with this run's, and reports what changed.
///
/// # Errors
/// If a change does not fit one of the loaded parts; the message says what to do.
pub fn check_changes(folder: &Path, now: &Tree, compared: &Compared) -> Result<Changes> {
    let path = folder.join(CONFIG_FILE);
    if !foreign::is_there(&path)? {
        tracing::warn!("{} is not there: whether settings have changed since is not known", path.display());
        return Ok(Changes::default());
    }
    let text = foreign::read_text(&path, foreign::SETTINGS)?;
    let saved = Tree::parse(&path.display().to_string(), text)?;
    let Sorted { refused, contents, changes } = sort(&saved, &Sources::read(folder)?, now, compared);
    if !refused.is_empty() {
        bail!(
            "it was made with other settings, which what it holds does not fit: {}; put them back, or start anew with another \
             trainer.default_local_dir or trainer.resume_mode=disable, or take `extra` (of data.* and seeds) or `model` and \
             `optimizer` (of the model) out of checkpoint.load_contents",
            refused.join(", ")
        );
    }
    changes.lines.iter().for_each(|line| tracing::warn!("changed since the checkpoint: {line}"));
    contents.iter().for_each(|line| tracing::warn!("not what it was at the checkpoint: {line}"));
    Ok(changes)
}

/// Returns a checksum of the settings whose change a resumed run notices, in hexadecimal. `settings` is a whole configuration.
pub fn effective_crc(settings: &serde_json::Value) -> String {
    let mut crc = IEEE.of(&[]);
    let mut open = vec![(String::new(), settings)];
    while let Some((key, value)) = open.pop() {
        if !key.is_empty() && matches!(fate(&key), Some(Free(_))) {
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

/// The changes since a checkpoint.
#[derive(Debug, Default, PartialEq)]
struct Sorted {
    refused: Vec<String>,
    /// Settings that name other contents under the same path.
    contents: Vec<String>,
    changes: Changes,
}

/// Sorts the changes into those that are refused and those that take effect.
fn sort(saved: &Tree, sources: &Sources, now: &Tree, compared: &Compared) -> Sorted {
    let mut sorted = Sorted::default();
    let is_refused = |fate| matches!(fate, Some(Refused(part)) if compared.loaded.contains(&part));
    // A value from the environment is saved as it was, and by earlier versions, or where it is a secret, as it was written.
    let others = [now.as_saved(), now.as_written()];
    let others = others.each_ref().map(|now| diff(saved, now).into_iter().map(|change| change.key).collect::<BTreeSet<String>>());
    let differs = |change: &Difference| others.iter().all(|keys| keys.contains(&change.key)) && !reads_alike(change);
    for change in diff(saved, now).into_iter().filter(differs) {
        let fate = fate(&change.key);
        // A path may be spelled in another way.
        let is_same = compared.sources.same(sources, &change.key).unwrap_or_else(|| same_place(&change));
        if is_same || matches!(fate, Some(Free(_))) || compared.ignores(&change.key) {
            continue;
        }
        match is_refused(fate) {
            true => sorted.refused.push(line(&change)),
            false => sorted.changes.lines.push(line(&change)),
        }
        sorted.changes.validation.extend((fate == Some(Validation)).then(|| line(&change)));
        sorted.changes.keys.push(change.key);
    }
    for entry in compared.sources.differing(sources) {
        let (key, part) = entry.split_once(" (").map_or((entry, None), |(key, part)| (key, Some(part)));
        let has_line = sorted.changes.keys.iter().any(|changed| changed == key);
        if has_line || compared.ignores(key) || matches!(fate(key), Some(Free(_))) {
            continue;
        }
        // A part of what is named, such as a chat template, is not what weights depend on.
        let fate = fate(key).filter(|_| part.is_none());
        let value = now.value(key).map_or(String::new(), |value| format!(", {}", inline(value)));
        let text = format!("{entry}: other content than at the checkpoint{value}");
        match is_refused(fate) {
            true => sorted.refused.push(text.clone()),
            false => sorted.contents.push(text.clone()),
        }
        sorted.changes.validation.extend((fate == Some(Validation)).then_some(text));
        sorted.changes.keys.push(key.to_owned());
    }
    sorted
}

/// Returns true if both sides of a change lead to the same files, however their paths are spelled.
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
        let request = Request { config: Some(T::DEFAULT_NAME.into()), overrides, ..Request::default() };
        load::<T>(&request, &Choices::default()).unwrap().tree
    }

    /// Returns the configuration as it is read from a checkpoint.
    fn saved(tree: &Tree) -> Tree {
        Tree::parse("config.yaml", tree.to_saved_yaml()).unwrap()
    }

    fn of(loaded: &[CheckpointPart]) -> Compared {
        Compared { loaded: loaded.to_vec(), ..Compared::default() }
    }

    /// Returns the changes by these overrides; with `hidden`, every value of both sides is behind `${oc.env:…}`.
    fn changed(overrides: &[&str], loaded: &[CheckpointPart], hidden: bool) -> (Vec<String>, Changes) {
        let sides = [tree::<PpoConfig>(&[]), tree::<PpoConfig>(overrides)];
        let [before, now] = sides.map(|tree| if hidden { tree.from_environment() } else { tree });
        let Sorted { refused, changes, .. } = sort(&saved(&before), &Sources::default(), &now, &of(loaded));
        (refused, changes)
    }

    /// Changes every key of all that train, one at a time, as a literal and behind `${oc.env:…}`: the change is refused, or reported with
    /// both values, or known to change nothing, or of a setting that the run ignores.
    #[test]
    fn no_change_is_lost() {
        let parts = of(&[CheckpointPart::Policy, CheckpointPart::Critic, CheckpointPart::Data]);
        for now in [tree::<PpoConfig>(&[]), tree::<SftConfig>(&[])] {
            for hidden in [false, true] {
                let now = if hidden { now.from_environment() } else { now.clone() };
                let saved = saved(&now);
                for (key, ..) in now.settings() {
                    let mut before = saved.clone();
                    before.set(&key, Value::Text("another value".into()));
                    let Sorted { refused, contents, changes } = sort(&before, &Sources::default(), &now, &parts);
                    let said = [refused, contents, changes.lines.clone()].concat();
                    match fate(&key) {
                        Some(Free(_)) => assert!(said.is_empty(), "{said:?}"),
                        _ => assert!(
                            said.len() == 1 && said[0].starts_with(&format!("{key}: another value -> ")),
                            "{key}, {hidden}: {said:?}"
                        ),
                    }
                    let ignoring = Compared { ignored: vec![key.clone()], ..parts.clone() };
                    assert_eq!(sort(&before, &Sources::default(), &now, &ignoring), Sorted::default(), "{key} is ignored");
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

    /// Each key that names what a checkpoint depends on: another spelling of the same content is not a change, and other
    /// content under the same spelling is one, refused or named as another value of the key is.
    #[test]
    fn contents_are_compared_and_not_their_paths() {
        let all = of(&[CheckpointPart::Policy, CheckpointPart::Critic, CheckpointPart::Data]);
        let sources = |key: &str, content: &str| Sources([(key.to_owned(), format!("file {content}"))].into());
        for now in [tree::<PpoConfig>(&[]), tree::<SftConfig>(&[])] {
            let paths = now.settings().into_iter().map(|(key, ..)| key).filter(|key| {
                let is_path = ["path", "_files", "tokenizer"].iter().any(|end| key.ends_with(end));
                is_path && !matches!(fate(key), Some(Free(_)))
            });
            for key in paths {
                let mut before = saved(&now);
                before.set(&key, Value::Text("elsewhere".into()));
                let here = Compared { sources: sources(&key, "1"), ..all.clone() };
                assert_eq!(sort(&before, &sources(&key, "1"), &now, &here), Sorted::default(), "{key}: the same content");
                let spelled = sort(&before, &sources(&key, "2"), &now, &here);
                let content = sort(&saved(&now), &sources(&key, "2"), &now, &here);
                for (Sorted { refused, contents, changes }, in_place) in [(&spelled, false), (&content, true)] {
                    let said = [&refused[..], contents, &changes.lines].concat();
                    assert!(said.len() == 1 && said[0].starts_with(&format!("{key}: ")), "{key}, in place {in_place}: {said:?}");
                    assert_eq!(refused.len(), usize::from(matches!(fate(&key), Some(Refused(_)))), "{key}: {said:?}");
                    assert_eq!(changes.validation.len(), usize::from(fate(&key) == Some(Validation)), "{key}: {changes:?}");
                }
            }
        }
    }
}
