//! Overrides of verl that choose a file for a whole group (`optim=megatron`, `model_engine=veomni`): the group's values are composed from
//! verl's own files, and what they change is set in the recipe.

use burnish_config::compat::editions::{self, EDITIONS, FSDP, MEGATRON};
use burnish_config::compat::{Ignored, compose_edition, files, leaves};
use burnish_hydra::overrides::{self, Operation, Override};
use burnish_hydra::{ConfigError, Node, Origin, Problem, Value};
use std::sync::Arc;

const TAKEN: &str =
    "what its file says of learning rate, schedule and adapters is in the recipe; the rest is of a training framework";

const OTHER_PACKAGE: &str = "its file is of a training framework that is no part of verl";

/// The beginning of the origin of a value from a group's file.
const FROM: &str = "the file of ";

/// A configuration of verl with the groups that a command chooses.
pub struct GroupChoice<'a> {
    /// verl's file.
    pub config: String,
    /// The framework that trains: [`FSDP`] or [`MEGATRON`].
    pub framework: &'static str,
    /// verl's keys as the chosen files have them.
    pub tree: Node,
    /// The changes by the chosen files, as overrides.
    pub given: Vec<Override>,
    /// The groups that were chosen.
    pub ignored: Vec<Ignored>,
    pub problems: Vec<Problem>,
    /// The other overrides.
    pub words: Vec<&'a String>,
}

impl<'a> GroupChoice<'a> {
    /// Composes verl's file; `None` if the edition has no such file.
    pub fn new(edition: &'static str, config: &str, overrides: &'a [String]) -> Option<Result<Self, ConfigError>> {
        let (mut groups, words): (Vec<_>, Vec<_>) = overrides.iter().partition(|word| is_group(edition, word));
        let (theirs, own): (Vec<_>, Vec<_>) = groups.iter().partition(|word| is_of_other_package(word));
        groups = own;
        let mut config = config.to_string();
        let is_engine = |word: &&String| word.as_str() == "model_engine=megatron";
        let mut ignored: Vec<Ignored> = vec![];
        for word in theirs {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            ignored.push(Ignored { key: key.trim_start_matches('+').into(), value: value.into(), reason: OTHER_PACKAGE });
        }
        // The file `ppo_megatron_trainer` stands for this choice.
        if groups.iter().any(is_engine) && config == "ppo_trainer" && files::find(edition, "ppo_megatron_trainer").is_some() {
            groups.retain(|word| !is_engine(word));
            config = "ppo_megatron_trainer".into();
            ignored.push(Ignored { key: "model_engine".into(), value: MEGATRON.into(), reason: TAKEN });
        }
        let is_megatron = config.contains(MEGATRON) || groups.iter().any(|word| word.as_str() == "engine=megatron");
        let framework = if is_megatron { MEGATRON } else { FSDP };
        let base = match compose_edition(edition, &config, &[])? {
            Ok(tree) => tree,
            Err(error) => return Some(Err(error)),
        };
        let (mut tree, mut given, mut problems) = (base, vec![], vec![]);
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
            changes(&after, word, &mut given, &|key, node| is_new(key, node));
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            ignored.push(Ignored { key: key.trim_start_matches('+').into(), value: value.into(), reason: TAKEN });
            tree = after;
        }
        if groups.iter().any(|word| word.as_str() == "engine=megatron") {
            changes(&tree, "engine=megatron", &mut given, &|key, _| key.contains(".lora."));
        }
        // Keys that were only in verl's main branch at the time are in no file.
        let index = EDITIONS.iter().position(|name| *name == edition)?;
        for key in editions::keys().filter(|key| key.config == config) {
            let default = key.defaults[index].and_then(editions::parse);
            if let Some(default) = default.filter(|_| tree.get(key.key).is_none() && groups.is_empty()) {
                tree.put(key.key, default);
            }
        }
        Some(Ok(Self { config, framework, tree, given, ignored, problems, words }))
    }
}

/// Collects the values of a tree that are `wanted`, as overrides from a group's file.
fn changes(tree: &Node, word: &str, given: &mut Vec<Override>, wanted: &dyn Fn(&str, &Node) -> bool) {
    leaves("", tree, &mut |key, node| {
        // A key that refers to another one in verl does so here, too.
        let follows = matches!(&node.value, Value::Text(text) if text.contains("${"));
        if follows || key == "model_engine" || !wanted(key, node) {
            return;
        }
        let origin = Origin::Override(Arc::from(format!("{FROM}{word}")));
        let value = Some(Node { value: node.value.clone(), origin: origin.clone(), through: None });
        given.push(Override { operation: Operation::Force, key: key.to_string(), package: None, value, origin });
    });
}

/// True if a value comes from a group's file rather than from the command.
pub fn is_from(origin: &Origin) -> bool {
    matches!(origin, Origin::Override(text) if text.starts_with(FROM))
}

/// True if a key without effect is reported: keys in the command, and keys of a group's file about the learning rate.
pub fn is_reported(key: &str, origin: &Origin) -> bool {
    !is_from(origin) || key.ends_with("optim.init_lr_ratio")
}

/// True if an option is of a package beside verl: `verl_mlite` (Megatron lite).
fn is_of_other_package(word: &str) -> bool {
    word.split_once('=').is_some_and(|(_, option)| option.starts_with("mlite"))
}

/// True if an override chooses a file for a whole group.
fn is_group(edition: &str, word: &str) -> bool {
    let Ok(one) = overrides::parse(word) else { return false };
    let is_map = one.value.as_ref().is_some_and(|node| matches!(node.value, Value::Map(_)));
    !one.key.starts_with("hydra")
        && !is_map
        && (one.package.is_some() || one.key.contains('/') || files::is_group(edition, &one.key))
}
