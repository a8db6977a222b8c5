//! The policy loss in a Python file of the user, in place of a built-in one.

use anyhow::{Context, Result, bail};

use crate::job::reward_plan::pool_options;
use crate::trainer::algorithms;
use burnish_algorithm::aggregate::Aggregation;
use burnish_algorithm::loss::{LossColumns, LossResult};
use burnish_algorithm::policy_loss::Metric;
use burnish_config::PpoConfig;
use burnish_config::schema::{LOSS_FILE, RolloutCorrectionConfig};
use burnish_reward::python::{GlobalBatchInfo, PolicyLossColumns, PythonPolicyLoss};
use burnish_util::interrupt::Interrupt;

/// The user's policy loss.
pub struct CustomLoss {
    function: PythonPolicyLoss,
}

impl CustomLoss {
    /// Loads the file that the settings name; `None` if they name none, or if a teacher's loss is the only loss.
    ///
    /// # Errors
    /// If the function cannot be called, or it requires something that this run does not have.
    pub(crate) fn start(config: &PpoConfig) -> Result<Option<Self>> {
        let loss = &config.actor_rollout_ref.actor.policy_loss;
        let Some(path) = loss.path.as_ref().filter(|_| config.reads_advantages()) else { return Ok(None) };
        // A stop request must not end a call: the step is finished, since earlier mini-batches of it have changed the weights.
        let options = pool_options(&config.reward, &Interrupt::default());
        let settings = algorithms::actor_section(config)?;
        let function = PythonPolicyLoss::start(&path.to_string(), &loss.loss_mode, settings, options).context(LOSS_FILE)?;
        let (name, file) = (function.name(), function.path());
        if function.requires("ref_log_prob") && !config.has_reference() {
            bail!(
                "{LOSS_FILE}: {name} in {file} requires `ref_log_prob`, which this run does not compute: write actor_rollout_ref.actor.use_kl_loss=true"
            );
        }
        let reads_weights = config.algorithm.rollout_correction.as_ref().is_some_and(|settings| settings.rollout_is.is_some());
        if reads_weights && !function.takes("rollout_is_weights") {
            bail!(
                "{LOSS_FILE}: {name} in {file} has no parameter `rollout_is_weights`, so the weights of \
                 algorithm.rollout_correction.rollout_is have no effect: add the parameter, or write algorithm.rollout_correction.rollout_is=null"
            );
        }
        let correction = config.algorithm.rollout_correction.as_ref();
        let rejects = |c: &RolloutCorrectionConfig| c.rollout_rs.is_some() || c.rollout_token_veto_threshold.is_some();
        if correction.is_some_and(|c| c.count_rejected && rejects(c)) && !function.takes("rollout_is_weights") {
            bail!(
                "{LOSS_FILE}: {name} in {file} has no parameter `rollout_is_weights`, by which count_rejected=true leaves tokens out: add \
                 the parameter, or write algorithm.rollout_correction.count_rejected=false"
            );
        }
        Ok(Some(Self { function }))
    }

    /// Adds the loss of a micro-batch and its gradient to `result`, which holds the entropy bonus and the KL term.
    ///
    /// # Errors
    /// If the function fails.
    pub(super) fn add(
        &self,
        mut result: LossResult,
        x: &LossColumns,
        aggregation: &'static Aggregation,
        counts: GlobalBatchInfo,
    ) -> Result<LossResult> {
        let old_log_prob = x.old_log_prob.unwrap_or(x.log_prob);
        let mut columns = vec![
            ("log_prob", x.log_prob),
            ("entropy", x.entropy),
            ("old_log_prob", old_log_prob),
            ("advantages", x.advantages),
            ("response_mask", x.mask),
        ];
        columns.extend(x.rollout_is_weights.map(|weights| ("rollout_is_weights", weights)));
        columns.extend(x.ref_log_prob.filter(|_| self.function.takes("ref_log_prob")).map(|column| ("ref_log_prob", column)));
        let value = self
            .function
            .evaluate(&PolicyLossColumns {
                lengths: x.offsets.windows(2).map(|pair| pair[1] - pair[0]).collect(),
                columns,
                loss_agg_mode: aggregation.name,
                global_batch_info: counts,
            })
            .with_context(|| format!("actor_rollout_ref.actor.policy_loss.loss_mode={}", self.function.name()))?;
        result.loss += value.loss;
        for (sums, own) in [(&mut result.d_log_prob, &value.d_log_prob), (&mut result.d_entropy, &value.d_entropy)] {
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        for (name, term) in &mut result.terms {
            if *name == "actor/pg_loss" {
                *term = value.loss;
            }
        }
        let trained = x.mask.iter().filter(|&&mask| mask != 0.0).count() as f64;
        let own = value.metrics.into_iter().filter(|(name, _)| !result.terms.iter().any(|(term, _)| term == name));
        let own = own.map(|(name, mean)| Metric { name: name.into(), sum: mean * trained, count: trained });
        result.metrics = own.collect();
        Ok(result)
    }
}
