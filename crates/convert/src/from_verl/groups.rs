//! Overrides that choose a file for a whole group (`optim=megatron`, `model_engine=veomni`). The values come from verl's own
//! files, and the recipe sets those that differ.

use burnish_config::compat::editions::{self, EDITIONS, FSDP, MEGATRON};
use burnish_config::compat::{Ignored, compose_edition, files, leaves};
use burnish_hydra::overrides::{self, Operation, Override};
use burnish_hydra::{ConfigError, Node, Origin, Problem, Value};
use std::sync::Arc;

const APPLIED: &str =
    "the recipe has the learning rate, schedule and adapters of its file; the rest configures a training framework";

const OTHER_PACKAGE: &str = "its file configures a training framework outside verl";

/// The beginning of the origin of values from a group's file.
const FROM: &str = "the file of ";

/// A configuration of verl with the groups that a command chooses.
pub(crate) struct GroupChoice<'a> {
    /// Name of verl's file.
    pub config: String,
    /// Training framework: [`FSDP`] or [`MEGATRON`].
    pub framework: &'static str,
    /// verl's keys, with the values of the chosen files.
    pub tree: Node,
    /// Changes by the chosen files, as overrides.
    pub overrides: Vec<Override>,
    /// Chosen groups, to report.
    pub ignored: Vec<Ignored>,
    pub problems: Vec<Problem>,
    /// Other overrides.
    pub words: Vec<&'a String>,
}

impl<'a> GroupChoice<'a> {
    /// Composes verl's file; `None` if the edition lacks the file.
    pub(super) fn new(edition: &'static str, config: &str, overrides: &'a [String]) -> Option<Result<Self, ConfigError>> {
        let (mut groups, words): (Vec<_>, Vec<_>) = overrides.iter().partition(|word| is_group(edition, word));
        let (theirs, of_package): (Vec<_>, Vec<_>) = groups.iter().partition(|word| is_of_other_package(word));
        groups = of_package;
        let mut config = config.to_string();
        let is_engine = |word: &&String| word.as_str() == "model_engine=megatron";
        let mut ignored: Vec<Ignored> = vec![];
        for word in theirs {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            ignored.push(Ignored { key: key.trim_start_matches('+').into(), value: value.into(), reason: OTHER_PACKAGE });
        }
        // The file `ppo_megatron_trainer` includes this choice.
        if groups.iter().any(is_engine) && config == "ppo_trainer" && files::find(edition, "ppo_megatron_trainer").is_some() {
            groups.retain(|word| !is_engine(word));
            config = "ppo_megatron_trainer".into();
            ignored.push(Ignored { key: "model_engine".into(), value: MEGATRON.into(), reason: APPLIED });
        }
        let is_megatron = config.contains(MEGATRON) || groups.iter().any(|word| word.as_str() == "engine=megatron");
        let framework = if is_megatron { MEGATRON } else { FSDP };
        let base = match compose_edition(edition, &config, &[])? {
            Ok(tree) => tree,
            Err(error) => return Some(Err(error)),
        };
        let (mut tree, mut overrides, mut problems) = (base, vec![], vec![]);
        let mut chosen: Vec<String> = vec![];
        for word in &groups {
            chosen.push(word.to_string());
            let after = match compose_edition(edition, &config, &chosen)? {
                Ok(after) => after,
                Err(error) => {
                    problems.extend(error.problems);
                    break;
                }
            };
            let is_new = |key: &str, node: &Node| tree.get(key).is_none_or(|there| there.value != node.value);
            changes(&after, word, &mut overrides, &|key, node| is_new(key, node));
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            ignored.push(Ignored { key: key.trim_start_matches('+').into(), value: value.into(), reason: APPLIED });
            tree = after;
        }
        if groups.iter().any(|word| word.as_str() == "engine=megatron") {
            changes(&tree, "engine=megatron", &mut overrides, &|key, _| key.contains(".lora."));
        }
        // Keys that were only in verl's main branch at the time are missing in its files.
        let index = EDITIONS.iter().position(|name| *name == edition)?;
        for key in editions::keys().filter(|key| key.config == config) {
            let default = key.defaults[index].and_then(editions::parse);
            if let Some(default) = default.filter(|_| tree.get(key.key).is_none() && groups.is_empty()) {
                tree.put(key.key, default);
            }
        }
        Some(Ok(Self { config, framework, tree, overrides, ignored, problems, words }))
    }
}

/// Collects the selected values of a tree, as overrides from a group's file.
fn changes(tree: &Node, word: &str, overrides: &mut Vec<Override>, selects: &dyn Fn(&str, &Node) -> bool) {
    leaves("", tree, &mut |key, node| {
        // A reference to another key needs no override: our key has the same reference.
        let follows = matches!(&node.value, Value::Text(text) if text.contains("${"));
        if follows || key == "model_engine" || !selects(key, node) {
            return;
        }
        let origin = Origin::Override(Arc::from(format!("{FROM}{word}")));
        let value = Some(Node { value: node.value.clone(), origin: origin.clone(), through: None });
        overrides.push(Override { operation: Operation::Force, key: key.to_string(), package: None, value, origin });
    });
}

/// Returns true if a value comes from a group's file, not from the command.
pub(crate) fn is_from(origin: &Origin) -> bool {
    matches!(origin, Origin::Override(text) if text.starts_with(FROM))
}

/// Returns true if an ignored key is reported: keys of the command, and the initial learning rate of a group's file.
pub(super) fn is_reported(key: &str, origin: &Origin) -> bool {
    !is_from(origin) || key.ends_with("optim.init_lr_ratio")
}

/// Returns true if an option belongs to another package: `verl_mlite` (Megatron lite).
fn is_of_other_package(word: &str) -> bool {
    word.split_once('=').is_some_and(|(_, option)| option.starts_with("mlite"))
}

/// Returns true if an override chooses a file for a whole group.
fn is_group(edition: &str, word: &str) -> bool {
    let Ok(one) = overrides::parse(word) else { return false };
    let is_map = one.value.as_ref().is_some_and(|node| matches!(node.value, Value::Map(_)));
    !one.key.starts_with("hydra")
        && !is_map
        && (one.package.is_some() || one.key.contains('/') || files::is_group(edition, &one.key))
}

/// Returns true if an override chooses a file for a group, and verl does not have the group or the file.
pub(super) fn is_foreign(edition: &str, word: &str) -> bool {
    let Some((group, option)) = word.trim_start_matches('+').split_once('=').filter(|_| is_group(edition, word)) else {
        return false;
    };
    let group = group.split('@').next().unwrap_or_default();
    files::find(edition, &format!("{group}/{option}")).is_none()
}
