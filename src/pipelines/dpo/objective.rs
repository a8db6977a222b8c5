//! The objective of preference optimisation.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use super::example::PreferenceExample;
use super::loss::Loss;
use super::pass::{BatchFacts, DpoSliceResult, Passes};
use super::reference::{self, Reference};
use super::{mismatched, rows};
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::unused_options::UnusedOption;
use crate::pipelines::stage::{self, Measured, Objective, RowFiles, StageBatch, StageInputs};
use burnish_algorithm::preference;
use burnish_config::DpoConfig;
use burnish_config::schema::Location;
use burnish_data::Tokenizer;
use burnish_distributed::Ranks;
use burnish_model::{CausalLm, Gradients};
use burnish_registry::Choice;

/// Returns every name in the registries, for the configuration of preference optimisation.
pub fn choices() -> Vec<Choice> {
    stage::choices(preference::choices("algorithm.loss_type"))
}

/// The loss of pairs or of labelled responses.
pub struct Dpo {
    passes: Passes,
    beta: f64,
    /// True after the warning about falling probabilities of both responses.
    warned: AtomicBool,
    /// True after the warning about a batch with one prompt.
    warned_of_one_prompt: AtomicBool,
}

impl Objective for Dpo {
    type Config = DpoConfig;
    type Example = PreferenceExample;
    type BatchTotals = BatchFacts;
    type SliceResult = DpoSliceResult;

    fn unused_options(config: &DpoConfig) -> Result<Vec<UnusedOption>> {
        rows::unused_options(config)
    }

    fn read(config: &DpoConfig, tokenizer: &Tokenizer, rows: &RowFiles) -> Result<Vec<PreferenceExample>> {
        reference::check(config, tokenizer)?;
        rows::read(config, tokenizer, rows)
    }

    fn build(config: &DpoConfig, inputs: &StageInputs<PreferenceExample>, model: &CausalLm, ranks: &Ranks) -> Result<Self> {
        let loss = Loss::from_config(config)?;
        let reference = Reference::build(config, &loss, inputs, model, ranks)?;
        let ld_alpha = config.algorithm.ld_alpha.filter(|_| loss.compares()).unwrap_or(1.0);
        let (warned, warned_of_one_prompt) = (AtomicBool::new(false), AtomicBool::new(false));
        let passes = Passes { loss, reference, ld_alpha };
        Ok(Self { passes, beta: config.algorithm.beta, warned, warned_of_one_prompt })
    }

    fn batch_totals(&self, batch: &StageBatch<PreferenceExample>, model: &CausalLm, ranks: &Ranks) -> BatchFacts {
        self.passes.batch_totals(batch, model, ranks)
    }

    fn pass(
        &self,
        batch: &StageBatch<PreferenceExample>,
        batch_totals: &BatchFacts,
        slice: &[usize],
        model: &CausalLm,
        gradients: Option<&mut Gradients>,
    ) -> DpoSliceResult {
        self.passes.pass(batch, batch_totals, slice, model, gradients)
    }

    fn measured(
        &self,
        batch: &StageBatch<PreferenceExample>,
        batch_totals: BatchFacts,
        results: Vec<DpoSliceResult>,
    ) -> Measured {
        self.passes.measured(batch, batch_totals, results)
    }

    fn warn(&self, batch: &StageBatch<PreferenceExample>, measured: &Measured) {
        if self.passes.loss.reads_mismatched() {
            mismatched::warn_of_one_prompt(batch, &self.warned_of_one_prompt);
        }
        if batch.training {
            self.warn_of_falling(measured, batch.step);
        }
    }

    fn for_measuring(config: &mut DpoConfig) -> (bool, Vec<&'static str>) {
        config.trainer.default_local_dir = Location::resolved("", vec![PathBuf::new()], false);
        let is_stored = config.reference.log_prob_path.take().is_some();
        (
            true,
            if config.reference.precompute_log_prob && !is_stored {
                vec!["the reference's pass before the first step"]
            } else {
                vec![]
            },
        )
    }

    /// A reference with stored log-probabilities is dropped before the first step, and takes less memory than training does.
    fn memory(config: &DpoConfig, memory: &mut MemoryEstimate) -> Result<()> {
        let loss = Loss::from_config(config)?;
        if loss.reads_reference() && (loss.reads_mismatched() || !config.reference.precompute_log_prob) {
            memory.reference(reference::other(config)?.as_ref());
        }
        Ok(())
    }

    fn describe(config: &DpoConfig, _inputs: &StageInputs<PreferenceExample>) -> Result<Vec<(&'static str, String)>> {
        let loss = Loss::from_config(config)?;
        let names: Vec<&str> = loss.entries().iter().map(|entry| entry.name).collect();
        let reference = match (&config.reference.model.path, loss.reads_reference()) {
            (_, false) => "none: the loss reads none".to_owned(),
            (None, true) => "the model before the first step".to_owned(),
            (Some(path), true) => path.to_string(),
        };
        let stored = loss.reads_reference() && config.reference.precompute_log_prob;
        let stored = if stored { ", its log-probabilities computed once" } else { "" };
        Ok(vec![("loss", names.join(" + ")), ("reference", format!("{reference}{stored}"))])
    }
}

impl Dpo {
    /// Warns once if the responses, the chosen ones included, have become much less probable than under the reference.
    fn warn_of_falling(&self, measured: &Measured, step: u64) {
        let of = |name: &str| measured.metrics.get(name);
        let (Some(chosen), Some(rejected), Some(log_prob)) = (of("rewards/chosen"), of("rewards/rejected"), of("logps/chosen"))
        else {
            return;
        };
        let fallen = -chosen / self.beta;
        // A tenth of the original log-probability of each response.
        let much = fallen > 0.1 * (log_prob.abs() - fallen).max(1.0);
        if self.passes.loss.reads_reference() && rejected < 0.0 && much && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "step {step}: the log-probabilities of chosen responses have fallen with the rejected ones, by {fallen:.1} on \
                 average; a growing margin can hide that. Adding sft to algorithm.loss_type holds them up, a larger algorithm.beta \
                 or a smaller optim.lr slows the fall"
            );
        }
    }
}
