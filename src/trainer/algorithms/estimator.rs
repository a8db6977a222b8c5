//! The advantage estimator of a run: built in, or in a Python file of the user.

use anyhow::{Context, Error, Result, bail};

use super::resolve;
use crate::job::reward_plan::pool_options;
use crate::trainer::batch::Batch;
use crate::trainer::batch::columns::{Column, Per};
use burnish_algorithm::advantage::{self, AdvantageInput, AdvantageOutput, Component, Estimator, Need, comparable};
use burnish_algorithm::options::Options;
use burnish_algorithm::{gather, scatter};
use burnish_config::{BatchPlan, PpoConfig};
use burnish_distributed::Ranks;
use burnish_reward::python::{PythonColumn, PythonEstimator};
use burnish_util::interrupt::Interrupt;

/// The setting with the path of the user's file.
const PATH: &str = "algorithm.custom_adv_estimator.path";

/// Columns that a Python function gets if it has a parameter of this name, and the setting that provides the optional ones.
const COLUMNS: &[(&str, Column, &str)] = &[
    ("response_mask", Column::Mask, ""),
    ("values", Column::Values, "critic.enable=true"),
    ("old_log_probs", Column::OldLogProb, "actor_rollout_ref.rollout.calculate_log_probs=true"),
    ("rollout_log_probs", Column::RolloutLogProb, ""),
    ("ref_log_prob", Column::RefLogProb, "actor_rollout_ref.actor.use_kl_loss=true or algorithm.use_kl_in_reward=true"),
    ("sum_pi_squared", Column::SumPiSquared, "actor_rollout_ref.actor.calculate_sum_pi_squared=true"),
    ("rollout_is_weights", Column::RolloutIsWeights, "algorithm.rollout_correction.rollout_is=token"),
    ("reward_baselines", Column::RewardBaselines, ""),
];

/// Rewards of tokens, `[tokens]`.
#[derive(Clone, Copy)]
pub struct TokenRewards<'a> {
    /// Scores, minus the KL term if the run has one.
    pub rewards: &'a [f32],
    pub scores: &'a [f32],
}

/// The estimator of a run.
pub enum RunEstimator {
    /// A built-in estimator, with the settings that it reads.
    BuiltIn(&'static Estimator, Options),
    Python(Box<PythonEstimator>),
}

impl RunEstimator {
    /// Finds the estimator that the settings name, and loads its file if it has one.
    ///
    /// # Errors
    /// If the name is unknown, the function cannot be called, or it requires something that this run does not have.
    pub fn start(config: &PpoConfig, plan: &BatchPlan, interrupt: &Interrupt) -> Result<Self> {
        let algorithm = &config.algorithm;
        let Some(path) = &algorithm.custom_adv_estimator.path else {
            let estimator = advantage::find(&algorithm.adv_estimator).context("unknown adv_estimator")?;
            return Ok(Self::BuiltIn(estimator, resolve::options(config, estimator.reads)?));
        };
        let settings = resolve::section(config)?;
        let options = pool_options(&config.reward, interrupt);
        let estimator = PythonEstimator::start(&path.to_string(), &algorithm.adv_estimator, settings, options);
        let estimator = estimator.context(PATH)?;
        check(&estimator, config, plan).context(PATH)?;
        Ok(Self::Python(Box::new(estimator)))
    }

    /// Returns true if the run must provide this for the estimator.
    pub fn needs(&self, need: Need) -> bool {
        match self {
            Self::BuiltIn(estimator, _) => estimator.needs(need),
            Self::Python(estimator) => match need {
                Need::Critic => estimator.requires("values"),
                Need::GreedyBaseline => estimator.requires("reward_baselines"),
                Need::Group
                | Need::RoleBaseline
                | Need::PromptValue
                | Need::SumPiSquared
                | Need::Components
                | Need::Reference
                | Need::Rollout => false,
            },
        }
    }

    /// Adds the file and name of a Python estimator to an error about its result.
    pub(crate) fn blamed(&self, error: Error) -> Error {
        match self {
            Self::BuiltIn(..) => error,
            Self::Python(estimator) => {
                error.context(format!("algorithm.adv_estimator={} of {}", estimator.name(), estimator.path()))
            }
        }
    }

    /// Returns true for each trajectory that the estimator can compare with others.
    pub fn comparable(&self, batch: &Batch) -> Vec<bool> {
        comparable(&batch.group, &batch.scored(), self.needs(Need::Group))
    }

    /// Computes advantages and returns. `role_baselines`: the baseline of each trajectory's role, if the estimator needs it.
    ///
    /// # Errors
    /// If a function in Python fails.
    pub fn estimate(
        &self,
        batch: &Batch,
        TokenRewards { rewards, scores }: TokenRewards,
        components: &[Component],
        role_baselines: Option<&[f64]>,
        ranks: &Ranks,
    ) -> Result<AdvantageOutput> {
        match self {
            Self::BuiltIn(estimator, options) => {
                let input = AdvantageInput {
                    offsets: batch.offsets(),
                    rewards,
                    scores,
                    mask: &batch[Column::Mask],
                    group: &batch.group,
                    values: batch.get(Column::Values),
                    reward_baselines: batch.get(Column::RewardBaselines),
                    role_baselines,
                    old_log_prob: batch.get(Column::OldLogProb),
                    sum_pi_squared: batch.get(Column::SumPiSquared),
                    rollout_is_weights: batch.get(Column::RolloutIsWeights),
                    components,
                    options: options.clone(),
                };
                Ok(estimator.estimate(&input, &batch.scored()))
            }
            Self::Python(estimator) => in_python(estimator, batch, rewards, scores, ranks)
                .with_context(|| format!("algorithm.adv_estimator={}", estimator.name())),
        }
    }
}

/// Calls a Python estimator on rank 0, with the scored trajectories. All other trajectories, and untrained tokens, have advantage
/// 0.
fn in_python(
    estimator: &PythonEstimator,
    batch: &Batch,
    rewards: &[f32],
    scores: &[f32],
    ranks: &Ranks,
) -> Result<AdvantageOutput> {
    let scored = batch.scored();
    let kept: Vec<usize> = (0..batch.len()).filter(|&i| scored[i]).collect();
    let zeros = vec![0.0; rewards.len()];
    let mut output = AdvantageOutput { advantages: zeros.clone(), returns: zeros };
    if kept.is_empty() {
        return Ok(output);
    }
    let tokens = |column: &[f32]| gather(column, batch.offsets(), &kept);
    let mut columns: Vec<(&str, bool, Vec<f32>)> =
        vec![("token_level_rewards", true, tokens(rewards)), ("token_level_scores", true, tokens(scores))];
    for &(name, column, _) in COLUMNS.iter().filter(|(name, ..)| estimator.takes(name)) {
        let Some(values) = batch.get(column) else { continue };
        columns.push(match column.per() {
            Per::Token => (name, true, tokens(values)),
            Per::Trajectory => (name, false, kept.iter().map(|&i| values[i]).collect()),
        });
    }
    let columns: Vec<PythonColumn> =
        columns.iter().map(|(name, per_token, values)| PythonColumn { name, per_token: *per_token, values }).collect();
    let lengths: Vec<usize> = kept.iter().map(|&i| batch.tokens(i).len()).collect();
    let group: Vec<usize> = kept.iter().map(|&i| batch.group[i]).collect();
    let (advantages, returns) = ranks.first(|| ranks.at_work(|| estimator.estimate(&lengths, &group, &columns)))?;
    for (to, from) in [(&mut output.advantages, advantages), (&mut output.returns, returns)] {
        scatter(to, &from, batch.offsets(), &kept);
        to.iter_mut().zip(&batch[Column::Mask]).filter(|(_, mask)| **mask == 0.0).for_each(|(value, _)| *value = 0.0);
    }
    Ok(output)
}

/// Checks that this run has what the function requires, and logs its inputs other than rewards.
fn check(estimator: &PythonEstimator, config: &PpoConfig, plan: &BatchPlan) -> Result<()> {
    let (name, path) = (estimator.name(), estimator.path());
    let algorithm = &config.algorithm;
    let old_log_probs = resolve::needs_old_log_probs(config, plan, &resolve::corrections(config)?);
    let exists = |column: Column| match column {
        Column::Values => config.has_critic(),
        Column::SumPiSquared => resolve::reads_sum_pi_squared(config),
        Column::OldLogProb => old_log_probs,
        Column::RefLogProb => config.has_reference(),
        Column::RolloutIsWeights => algorithm.rollout_correction.as_ref().is_some_and(|settings| settings.rollout_is.is_some()),
        _ => true,
    };
    for (argument, column, setting) in COLUMNS.iter().filter(|(argument, ..)| estimator.requires(argument)) {
        if !exists(*column) {
            bail!("{name} in {path} requires `{argument}`, which this run does not compute: write {setting}");
        }
    }
    if estimator.requires("reward_baselines") && (algorithm.whiten_rewards || algorithm.normalize_reward) {
        let other = if algorithm.whiten_rewards { "whiten_rewards" } else { "normalize_reward" };
        bail!(
            "{name} in {path} compares scores with those of greedy responses, which algorithm.{other} does not see: remove that setting"
        );
    }
    if config.has_critic() && !estimator.takes("values") {
        tracing::warn!("critic.enable=true trains a critic, but {name} in {path} has no parameter `values`, so nothing reads it");
    }
    if estimator.requires("reward_baselines") {
        tracing::info!(
            "{name} in {path} requires `reward_baselines`: each step generates and scores a greedy response to each prompt"
        );
    }
    Ok(())
}
