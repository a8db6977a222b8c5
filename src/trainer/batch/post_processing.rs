//! Post-processing of a batch's scores by a Python function of the user, after the reward functions and before everything else.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use super::Batch;
use super::columns::Column;
use crate::job::Context;
use crate::job::reward_plan::pool_options;
use crate::trainer::algorithms;
use crate::trainer::algorithms::RunEstimator;
use burnish_algorithm::advantage::Need;
use burnish_algorithm::gather;
use burnish_config::PpoConfig;
use burnish_reward::python::{Processed, PythonPostProcessing, ScoredBatch};
use burnish_tracking::Metrics;
use burnish_util::interrupt::Interrupt;

/// The setting of the file.
pub(crate) const PATH: &str = "algorithm.post_processing.path";

/// Loads the function, if the settings name one.
///
/// # Errors
/// If the function cannot be called, or the estimator would not see its scores.
pub(crate) fn start(
    config: &PpoConfig,
    estimator: Option<&RunEstimator>,
    interrupt: &Interrupt,
) -> Result<Option<PythonPostProcessing>> {
    let settings = &config.algorithm.post_processing;
    let Some(path) = &settings.path else { return Ok(None) };
    for (need, others) in
        [(Need::GreedyBaseline, "those of greedy responses, which it does not see"), (Need::Components, "rewards one by one")]
    {
        if estimator.is_some_and(|estimator| estimator.needs(need)) {
            let name = &config.algorithm.adv_estimator;
            bail!("{PATH} processes scores, and algorithm.adv_estimator={name} reads {others}: choose another estimator");
        }
    }
    let options = pool_options(&config.reward, interrupt);
    let function =
        PythonPostProcessing::start(&path.to_string(), &settings.name, algorithms::section(config)?, options).context(PATH)?;
    Ok(Some(function))
}

/// Replaces the scores by those that the function returns, and excludes the responses that it drops.
///
/// # Errors
/// If the function fails.
pub(crate) fn process(function: &PythonPostProcessing, batch: &mut Batch, at: &Context, metrics: &mut Metrics) -> Result<()> {
    let scored = batch.scored();
    let kept: Vec<usize> = (0..batch.len()).filter(|&i| scored[i]).collect();
    if kept.is_empty() {
        return Ok(());
    }
    let responses = ScoredBatch {
        step: at.step,
        lengths: kept.iter().map(|&i| batch.tokens(i).len()).collect(),
        index: kept.iter().map(|&i| batch.group[i].to_string()).collect(),
        prompts: kept.iter().map(|&i| batch.prompt(i).text.as_str()).collect(),
        responses: kept.iter().map(|&i| batch.texts[i].as_str()).collect(),
        ground_truths: kept.iter().map(|&i| &batch.prompt(i).ground_truth).collect(),
        data_sources: kept.iter().map(|&i| batch.prompt(i).data_source.as_str()).collect(),
        extras: numbers(batch, &kept),
        scores: kept.iter().filter_map(|&i| batch.scores[i].score).collect(),
        mask: gather(&batch[Column::Mask], batch.offsets(), &kept),
    };
    let processed = at
        .ranks
        .first(|| at.ranks.at_work(|| function.process(responses)))
        .with_context(|| format!("{PATH}={}", function.path()))?;
    let mut left_out = 0;
    for (&i, result) in kept.iter().zip(processed.into_iter().flatten()) {
        match result {
            Processed::Score(score) => batch.scores[i].score = Some(score),
            Processed::LeftOut => {
                batch.leave_out(i);
                left_out += 1;
            }
        }
    }
    metrics.set("reward/left_out_ratio", f64::from(left_out) / batch.len() as f64);
    Ok(())
}

/// Returns the additional values that reward functions report.
fn numbers<'a>(batch: &'a Batch, kept: &[usize]) -> BTreeMap<&'a str, Vec<Option<f64>>> {
    let extras = batch.extras().into_iter();
    extras.map(|(name, values)| (name, kept.iter().map(|&i| values[i]).collect())).collect()
}
