//! The batch plan of a step: the numbers of prompts, trajectories, mini-batches, micro-batches and updates. It is computed once,
//! without rounding.

use super::schema::PpoConfig;
use burnish_util::sizes::{NamedSize, largest, product};
use std::fmt;

/// The size of the micro-batches of a mini-batch; the last one may be smaller. Gradients do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MicroBatch {
    Trajectories(usize),
    /// The largest number of trajectories that fits into this number of tokens.
    Tokens(usize),
}

/// The batch sizes of one training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPlan {
    /// `data.train_batch_size`.
    pub prompts_per_step: usize,
    /// `rollout.n`.
    pub samples_per_prompt: usize,
    pub trajectories_per_step: usize,
    pub actor: UpdatePlan,
    /// `None` without a critic.
    pub critic: Option<UpdatePlan>,
}

/// The updates of one model in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdatePlan {
    /// Trajectories of one optimizer update: `ppo_mini_batch_size` prompts with all their samples.
    pub mini_batch_trajectories: usize,
    /// Mini-batches per pass over the batch.
    pub mini_batches: usize,
    pub micro_batch: MicroBatch,
    /// `ppo_epochs`: passes over the batch.
    pub epochs: usize,
    pub updates_per_step: usize,
}

/// The error for sizes that do not divide each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// The key to change.
    pub key: String,
    pub message: String,
    pub help: String,
}

const TRAIN: &str = "data.train_batch_size";

impl BatchPlan {
    /// Computes the plan of a configuration.
    ///
    /// # Errors
    /// If a size is 0 or unset, or if a mini-batch does not divide the batch (verl rounds down and loses samples).
    pub fn new(config: &PpoConfig) -> Result<Self, PlanError> {
        let (train, samples) = (config.data.train_batch_size, config.actor_rollout_ref.rollout.n);
        at_least_one(TRAIN, train)?;
        at_least_one("actor_rollout_ref.rollout.n", samples)?;
        let response = ("`data.max_response_length`", config.data.max_response_length);
        let samples_each = ("`actor_rollout_ref.rollout.n`", samples);
        let trajectories = countable(&[("`data.train_batch_size`", train), samples_each], "trajectories", MAX_TRAJECTORIES)?;
        countable(&[("`data.train_batch_size`", train), samples_each, response], "tokens of a step", MAX_TOKENS)?;
        if let Some(drawn) = config.data.gen_batch_size {
            countable(&[("`data.gen_batch_size`", drawn), samples_each, response], "tokens of a step", MAX_TOKENS)?;
        }
        let (actor, critic) = (&config.actor_rollout_ref.actor, &config.critic);
        let actor = Sizes {
            group: "actor_rollout_ref.actor",
            mini: actor.ppo_mini_batch_size,
            micro: actor.ppo_micro_batch_size_per_gpu,
            tokens: actor.use_dynamic_bsz.then_some(actor.ppo_max_token_len_per_gpu),
            epochs: actor.ppo_epochs,
        };
        let critic = config.has_critic().then_some(Sizes {
            group: "critic",
            mini: critic.ppo_mini_batch_size,
            micro: critic.ppo_micro_batch_size_per_gpu,
            tokens: critic.use_dynamic_bsz.then_some(critic.ppo_max_token_len_per_gpu),
            epochs: critic.ppo_epochs,
        });
        Ok(Self {
            prompts_per_step: train,
            samples_per_prompt: samples,
            trajectories_per_step: trajectories,
            actor: actor.plan(train, samples)?,
            critic: critic.map(|critic| critic.plan(train, samples)).transpose()?,
        })
    }

    /// True if each step has a single update, so that every ratio is exactly 1.
    pub fn on_policy(&self) -> bool {
        self.actor.updates_per_step == 1
    }
}

/// The sizes of one group of settings.
struct Sizes {
    group: &'static str,
    mini: usize,
    micro: Option<usize>,
    /// The tokens of a micro-batch, with `use_dynamic_bsz`.
    tokens: Option<usize>,
    epochs: usize,
}

impl Sizes {
    fn plan(&self, train: usize, samples: usize) -> Result<UpdatePlan, PlanError> {
        let key = |name: &str| format!("{}.{name}", self.group);
        let (mini_key, micro_key) = (key("ppo_mini_batch_size"), key("ppo_micro_batch_size_per_gpu"));
        at_least_one(&mini_key, self.mini)?;
        at_least_one(&key("ppo_epochs"), self.epochs)?;
        divides(&mini_key, self.mini, TRAIN, train, &format!("{train}"))?;
        let mini_batch_trajectories = self.mini * samples;
        let micro_batch = match (self.tokens, self.micro) {
            (Some(tokens), _) => MicroBatch::Tokens(tokens),
            (None, Some(micro)) => {
                at_least_one(&micro_key, micro)?;
                MicroBatch::Trajectories(micro.min(mini_batch_trajectories))
            }
            (None, None) => {
                let message = format!("`{micro_key}` is null, so the size of a micro-batch is unknown");
                let help = format!("write {micro_key}=N, or {}=true", key("use_dynamic_bsz"));
                return Err(PlanError { key: micro_key, message, help });
            }
        };
        let mini_batches = train / self.mini;
        let epochs = key("ppo_epochs");
        let updates = [("mini-batches", mini_batches), (epochs.as_str(), self.epochs)];
        let updates_per_step = countable(&updates, "updates of a step", MAX_UPDATES)?;
        Ok(UpdatePlan { mini_batch_trajectories, mini_batches, micro_batch, epochs: self.epochs, updates_per_step })
    }
}

/// Maximum numbers of trajectories, tokens and updates of a step: more than any machine can hold, but small enough that products
/// do not overflow.
const MAX_TRAJECTORIES: usize = 1 << 36;
pub const MAX_TOKENS: usize = 1 << 40;
const MAX_UPDATES: usize = 1 << 24;

/// Multiplies settings, up to a maximum.
fn countable(sizes: &[NamedSize], things: &str, max: usize) -> Result<usize, PlanError> {
    product(sizes, things, 4, max).map_err(|message| {
        let key = largest(sizes).trim_matches('`').to_owned();
        PlanError { help: format!("lower {key}"), key, message }
    })
}

fn at_least_one(key: &str, size: usize) -> Result<(), PlanError> {
    if size > 0 {
        return Ok(());
    }
    let message = format!("`{key}` must be at least 1");
    Err(PlanError { key: key.to_owned(), message, help: format!("write {key}=1 or more") })
}

/// Checks that `size` divides `whole`; `written` is the computation of `whole`, for the message.
fn divides(key: &str, size: usize, whole_key: &str, whole: usize, written: &str) -> Result<(), PlanError> {
    if size != 0 && whole.is_multiple_of(size) {
        return Ok(());
    }
    let message = format!("`{key}` is {size}, which does not divide `{whole_key}` ({written})");
    Err(PlanError { key: key.to_owned(), message, help: format!("the nearest size that does is {key}={}", nearest(size, whole)) })
}

/// Returns the divisor of `whole` that is nearest to `size`; of two equally near divisors, the smaller one.
fn nearest(size: usize, whole: usize) -> usize {
    let small = (1..=MAX_TRIED).take_while(|small| small.checked_mul(*small).is_some_and(|square| square <= whole));
    let divisors = small.filter(|small| whole.is_multiple_of(*small)).flat_map(|small| [small, whole / small]);
    divisors.min_by_key(|divisor| (divisor.abs_diff(size), *divisor)).unwrap_or(1)
}

/// Largest number that is tried as a divisor: the square root of about [`MAX_TRAJECTORIES`].
const MAX_TRIED: usize = 1 << 20;

fn count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl fmt::Display for UpdatePlan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let micro = match self.micro_batch {
            MicroBatch::Trajectories(size) if self.mini_batch_trajectories.is_multiple_of(size) => format!("{size}"),
            MicroBatch::Trajectories(size) => format!("up to {size}"),
            MicroBatch::Tokens(size) => format!("up to {size} tokens"),
        };
        write!(
            f,
            "{} × {} of {} = {}, in micro-batches of {micro}",
            count(self.epochs, "epoch", "epochs"),
            count(self.mini_batches, "mini-batch", "mini-batches"),
            self.mini_batch_trajectories,
            count(self.updates_per_step, "update", "updates"),
        )
    }
}

impl fmt::Display for BatchPlan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "each step: {} × {} = {}\n           {}",
            count(self.prompts_per_step, "prompt", "prompts"),
            count(self.samples_per_prompt, "sample", "samples"),
            count(self.trajectories_per_step, "trajectory", "trajectories"),
            self.actor,
        )?;
        self.critic.map_or(Ok(()), |critic| write!(f, "\n           critic: {critic}"))
    }
}
