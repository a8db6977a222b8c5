//! The batch plan of a step: prompts, trajectories, mini-batches, micro-batches, updates. Derived once, never rounded.

use super::schema::PpoConfig;
use std::fmt;

/// How a mini-batch is cut for the device. Gradients do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MicroBatch {
    Trajectories(usize),
    /// As many trajectories as fit into this many tokens.
    Tokens(usize),
}

/// What happens to the batch of one training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPlan {
    /// `data.train_batch_size`.
    pub prompts_per_step: usize,
    /// `rollout.n`.
    pub samples_per_prompt: usize,
    pub trajectories_per_step: usize,
    /// Trajectories of one optimizer update: `ppo_mini_batch_size` prompts with all their samples.
    pub mini_batch_trajectories: usize,
    /// Mini-batches per pass over the batch.
    pub mini_batches: usize,
    pub micro_batch: MicroBatch,
    /// `ppo_epochs`: passes over the batch.
    pub epochs: usize,
    pub updates_per_step: usize,
}

/// Sizes that do not divide each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// The key to change.
    pub key: &'static str,
    pub message: String,
    pub help: String,
}

const TRAIN: &str = "data.train_batch_size";
const MINI: &str = "actor_rollout_ref.actor.ppo_mini_batch_size";
const MICRO: &str = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu";

impl BatchPlan {
    /// # Errors
    /// A size that is 0 or not set, or that does not divide the one above it: verl rounds down there, which loses samples.
    pub fn new(config: &PpoConfig) -> Result<Self, PlanError> {
        let (train, samples) = (config.data.train_batch_size, config.actor_rollout_ref.rollout.n);
        let actor = &config.actor_rollout_ref.actor;
        let mini = actor.ppo_mini_batch_size;
        for (key, size) in [
            (TRAIN, train),
            ("actor_rollout_ref.rollout.n", samples),
            (MINI, mini),
            ("actor_rollout_ref.actor.ppo_epochs", actor.ppo_epochs),
        ] {
            if size == 0 {
                return Err(PlanError {
                    key,
                    message: format!("`{key}` must be at least 1"),
                    help: format!("write {key}=1 or more"),
                });
            }
        }
        divides(MINI, mini, TRAIN, train, &format!("{train}"))?;
        let mini_batch_trajectories = mini * samples;
        let micro_batch = match (actor.use_dynamic_bsz, actor.ppo_micro_batch_size_per_gpu) {
            (true, _) => MicroBatch::Tokens(actor.ppo_max_token_len_per_gpu),
            (false, Some(micro)) => {
                let whole = format!("{mini} prompts × {samples} samples = {mini_batch_trajectories} trajectories");
                divides(MICRO, micro, MINI, mini_batch_trajectories, &whole)?;
                MicroBatch::Trajectories(micro)
            }
            (false, None) => {
                let message = format!("`{MICRO}` is null, so the size of a micro-batch is not known");
                let help = format!("write {MICRO}=N, or actor_rollout_ref.actor.use_dynamic_bsz=true");
                return Err(PlanError { key: MICRO, message, help });
            }
        };
        let mini_batches = train / mini;
        Ok(Self {
            prompts_per_step: train,
            samples_per_prompt: samples,
            trajectories_per_step: train * samples,
            mini_batch_trajectories,
            mini_batches,
            micro_batch,
            epochs: actor.ppo_epochs,
            updates_per_step: mini_batches * actor.ppo_epochs,
        })
    }

    /// Whether the policy is still the one that generated throughout the step, so that every ratio is exactly 1.
    pub fn on_policy(&self) -> bool {
        self.updates_per_step == 1
    }
}

/// Checks that `size` divides `whole`; `written` is `whole` as it came about.
pub fn divides(key: &'static str, size: usize, whole_key: &str, whole: usize, written: &str) -> Result<(), PlanError> {
    if size != 0 && whole.is_multiple_of(size) {
        return Ok(());
    }
    let nearest =
        (1..=whole).filter(|candidate| whole.is_multiple_of(*candidate)).min_by_key(|candidate| candidate.abs_diff(size));
    let message = format!("`{key}` is {size}, which does not divide `{whole_key}` ({written})");
    Err(PlanError { key, message, help: format!("the nearest size that does is {key}={}", nearest.unwrap_or(1)) })
}

impl fmt::Display for BatchPlan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let micro = match self.micro_batch {
            MicroBatch::Trajectories(size) => format!("{size}"),
            MicroBatch::Tokens(size) => format!("up to {size} tokens"),
        };
        let count = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        write!(
            f,
            "each step: {} × {} = {}\n           {} × {} of {} = {}, in micro-batches of {micro}",
            count(self.prompts_per_step, "prompt", "prompts"),
            count(self.samples_per_prompt, "sample", "samples"),
            count(self.trajectories_per_step, "trajectory", "trajectories"),
            count(self.epochs, "epoch", "epochs"),
            count(self.mini_batches, "mini-batch", "mini-batches"),
            self.mini_batch_trajectories,
            count(self.updates_per_step, "update", "updates"),
        )
    }
}
