//! Going on with other settings than the checkpoint was made with: which changes say nothing, which are reported, and which
//! would make a saved part wrong and are refused.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::config::Tree;
use crate::config::compat::{fits_key, inline};
use crate::config::diff::{Difference, diff};

/// The resolved configuration in a checkpoint.
pub const CONFIG_FILE: &str = "config.yaml";

/// A part of a checkpoint that fits only the settings it was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Weights and optimizer of the policy (`model`, `optimizer`).
    Policy,
    /// Those of the critic.
    Critic,
    /// The position in the data and the random streams (`extra`).
    Data,
}

/// What becomes of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The run goes on as it would have: names, places, logs, memory.
    Free,
    /// The part, if it is loaded, would mean something else.
    Refused(Part),
}
use Fate::{Free, Refused};

/// The first pattern that fits a key counts, as in the table of verl's keys; a change without one is reported.
const CHANGES: &[(&str, Fate)] = &[
    ("trainer.total_epochs", Free),
    ("trainer.total_training_steps", Free),
    ("trainer.project_name", Free),
    ("trainer.experiment_name", Free),
    ("trainer.logger", Free),
    ("trainer.log_*", Free),
    ("trainer.num_sample_generations", Free),
    ("trainer.wandb_proxy", Free),
    ("trainer.save_freq", Free),
    ("trainer.test_freq", Free),
    ("trainer.val_before_train", Free),
    ("trainer.val_only", Free),
    ("trainer.default_local_dir", Free),
    ("trainer.resume_mode", Free),
    ("trainer.resume_from_path", Free),
    ("trainer.max_ckpt_to_keep", Free),
    ("trainer.max_*_ckpt_to_keep", Free),
    ("trainer.rollout_data_dir", Free),
    ("trainer.validation_data_dir", Free),
    ("trainer.seed", Refused(Part::Data)),
    ("data.train_files", Refused(Part::Data)),
    ("data.train_max_samples", Refused(Part::Data)),
    ("data.train_batch_size", Refused(Part::Data)),
    ("data.gen_batch_size", Refused(Part::Data)),
    ("data.shuffle", Refused(Part::Data)),
    ("data.seed", Refused(Part::Data)),
    // Where overlong rows are dropped, this decides which rows there are.
    ("data.filter_overlong_prompts", Refused(Part::Data)),
    ("data.max_prompt_length", Refused(Part::Data)),
    ("data.tokenizer", Refused(Part::Policy)),
    ("data.val_*", Free),
    ("data.validation_shuffle", Free),
    ("actor_rollout_ref.model.path", Refused(Part::Policy)),
    ("actor_rollout_ref.model.lora_*", Refused(Part::Policy)),
    ("actor_rollout_ref.model.*_modules", Refused(Part::Policy)),
    ("critic.model.path", Refused(Part::Critic)),
    ("critic.model.lora_*", Refused(Part::Critic)),
    ("critic.model.*_modules", Refused(Part::Critic)),
    ("model.path", Refused(Part::Policy)),
    ("model.lora_*", Refused(Part::Policy)),
    ("model.*_modules", Refused(Part::Policy)),
    ("model.tokenizer_path", Refused(Part::Policy)),
    ("actor_rollout_ref.rollout.val_kwargs.**", Free),
    ("actor_rollout_ref.rollout.prompt_length", Free),
    ("actor_rollout_ref.rollout.response_length", Free),
    ("actor_rollout_ref.rollout.max_num_seqs", Free),
    ("actor_rollout_ref.rollout.max_num_batched_tokens", Free),
    ("**.checkpoint.**", Free),
    ("**.*micro_batch_size_per_gpu", Free),
    ("**.*use_dynamic_bsz", Free),
    ("**.*max_token_len_per_gpu", Free),
    ("**.enable_gradient_checkpointing", Free),
];

fn fate(key: &str) -> Option<Fate> {
    CHANGES.iter().find(|(pattern, _)| fits_key(pattern, key)).map(|(_, fate)| *fate)
}

/// Compares the configuration of the checkpoint `folder` with this run's, and reports what changed.
///
/// # Errors
/// A change that one of the `loaded` parts does not survive, with what to do.
pub fn check_changes(folder: &Path, now: &Tree, loaded: &[Part]) -> Result<()> {
    let path = folder.join(CONFIG_FILE);
    if !path.exists() {
        tracing::warn!("{} is not there: whether settings have changed since is not known", path.display());
        return Ok(());
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let saved = Tree::parse(&path.display().to_string(), text)?;
    let (refused, reported) = sort(&saved, now, loaded);
    if !refused.is_empty() {
        bail!(
            "it was made with other settings, which what it holds does not fit: {}; put them back, or start anew with another \
             trainer.default_local_dir or trainer.resume_mode=disable, or take `extra` (of data.* and seeds) or `model` and \
             `optimizer` (of the model) out of checkpoint.load_contents",
            refused.join(", ")
        );
    }
    reported.iter().for_each(|line| tracing::warn!("changed since the checkpoint: {line}"));
    Ok(())
}

/// The changes that are refused, and those that are reported.
fn sort(saved: &Tree, now: &Tree, loaded: &[Part]) -> (Vec<String>, Vec<String>) {
    let (mut refused, mut reported) = (Vec::new(), Vec::new());
    for change in diff(saved, now) {
        match fate(&change.key) {
            Some(Free) => {}
            Some(Refused(part)) if loaded.contains(&part) => refused.push(line(&change)),
            _ => reported.push(line(&change)),
        }
    }
    (refused, reported)
}

fn line(change: &Difference) -> String {
    let [old, new] = change.sides.map(|side| side.map_or("(not there)".to_owned(), |node| inline(&node.value)));
    format!("{}: {old} -> {new}", change.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::{PpoConfig, Schema, SftConfig};
    use crate::config::{Request, load};

    fn tree<T: Schema>(overrides: &[&str]) -> Tree {
        let overrides = overrides.iter().map(ToString::to_string).collect();
        let request = Request { config: Some(T::DEFAULT_NAME.into()), overrides, ..Request::default() };
        load::<T>(&request, &[]).unwrap().tree
    }

    fn changed(overrides: &[&str], loaded: &[Part]) -> (Vec<String>, Vec<String>) {
        let saved = Tree::parse("config.yaml", tree::<PpoConfig>(&[]).to_yaml()).unwrap();
        sort(&saved, &tree::<PpoConfig>(overrides), loaded)
    }

    #[test]
    fn every_pattern_is_about_a_setting() {
        let keys = [tree::<PpoConfig>(&[]).keys(), tree::<SftConfig>(&[]).keys()].concat();
        for (pattern, _) in CHANGES {
            assert!(keys.iter().any(|key| fits_key(pattern, key)), "{pattern} fits no setting");
        }
    }

    #[test]
    fn a_change_is_free_reported_or_refused() {
        let both = [Part::Policy, Part::Data];
        let nothing = (vec![], vec![]);
        assert_eq!(changed(&[], &both), nothing);
        let free = ["trainer.save_freq=7", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=64", "data.val_batch_size=8"];
        assert_eq!(changed(&free, &both), nothing);
        let lr = "actor_rollout_ref.actor.optim.lr";
        let (refused, reported) = changed(&[&format!("{lr}=0.25"), "algorithm.adv_estimator=grpo"], &both);
        assert_eq!((refused.len(), reported.len()), (0, 2));
        assert!(reported.contains(&format!("{lr}: 0.0004 -> 0.25")), "{reported:?}");
        let meaning = ["trainer.seed=5", "actor_rollout_ref.model.path=tests/data"];
        let (refused, _) = changed(&meaning, &both);
        assert_eq!(refused.len(), 2, "{refused:?}");
        assert!(refused.contains(&"trainer.seed: 1 -> 5".to_owned()), "{refused:?}");
        let (refused, reported) = changed(&meaning, &[]);
        assert!(refused.is_empty() && reported.contains(&"trainer.seed: 1 -> 5".to_owned()), "{reported:?}");
    }
}
