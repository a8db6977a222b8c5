//! The stage of reward models.

use std::path::Path;

use anyhow::{Context, Result};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::example::RmExample;
use super::form::{self, RewardModelForm, fresh_head};
use super::padding::Padding;
use super::pairs::{self, Pairs};
use super::rows;
use super::steps::{self, StepLosses};
use crate::job::models::model_init;
use crate::job::unused_options::UnusedOption;
use crate::pipelines::stage::{self, Measured, Objective, RowFiles, StageBatch, StageInputs, hf_config};
use burnish_algorithm::ranking;
use burnish_config::RmConfig;
use burnish_config::schema::{InitHead, StageConfig};
use burnish_data::Tokenizer;
use burnish_distributed::Ranks;
use burnish_model::{CausalLm, DecoderConfig, Gradients};
use burnish_registry::Choice;

/// Returns every name in the registries, for the configuration of a reward model.
pub fn choices() -> Vec<Choice> {
    stage::choices(ranking::choices("algorithm.loss_type"))
}

/// The loss of pairs or of steps.
pub struct Rm {
    form: RewardModelForm,
    /// `None` for a language model, whose tokenizer stays unchanged.
    padding: Option<Padding>,
}

/// The result of a pass over a slice; one of the two is empty.
#[derive(Default, Serialize, Deserialize)]
pub struct RmSliceResult {
    pairs: Pairs,
    steps: StepLosses,
}

impl Objective for Rm {
    type Config = RmConfig;
    type Example = RmExample;
    /// The number of pairs or judged steps; the loss is a mean over them.
    type BatchTotals = f64;
    type SliceResult = RmSliceResult;

    fn unused_options(config: &RmConfig) -> Result<Vec<UnusedOption>> {
        rows::unused_options(config)
    }

    fn draws(config: &RmConfig) -> Result<bool> {
        Ok(form::draws_head(config)? && config.algorithm.init_head != InitHead::Zeros)
    }

    fn read(config: &RmConfig, tokenizer: &Tokenizer, rows: &RowFiles) -> Result<Vec<RmExample>> {
        rows::read(config, tokenizer, rows)
    }

    fn decoder(config: &RmConfig) -> Result<DecoderConfig> {
        let hf = hf_config(&config.model)?;
        let decoder = match form::head(config)? {
            Some((labels, kind)) => hf.labels_decoder(labels, Some(kind)),
            None => hf.decoder(),
        };
        decoder.context("model.path")
    }

    fn decoder_in_files(config: &RmConfig) -> Result<DecoderConfig> {
        let hf = hf_config(&config.model)?;
        if hf.classifier().is_some() { Self::decoder(config) } else { hf.decoder().context("model.path") }
    }

    fn model(config: &RmConfig, device: &Device) -> Result<CausalLm> {
        let (path, seed) = (config.model.path.as_path(), config.trainer.seed);
        let (init, hf) = (model_init(config.model.init, seed), hf_config(&config.model)?);
        let model = match form::head(config)? {
            Some((labels, kind)) => {
                let head = fresh_head(kind, config.algorithm.init_head, seed);
                CausalLm::load_labels_as(path, hf, init, labels, Some(head), device)
            }
            None => CausalLm::load_as(path, hf, init, device),
        };
        model.context("model.path")
    }

    fn prepared(config: &RmConfig, inputs: &StageInputs<RmExample>, model: CausalLm) -> Result<CausalLm> {
        Ok(match form::head(config)? {
            Some(_) => model.padded_by(Padding::choose(config.stage().model.tokenizer_folder(), inputs)?.id()),
            None => model,
        })
    }

    fn build(config: &RmConfig, inputs: &StageInputs<RmExample>, _model: &CausalLm, _ranks: &Ranks) -> Result<Self> {
        let form = RewardModelForm::from_config(config, &inputs.tokenizer)?;
        let choose = |_| Padding::choose(config.stage().model.tokenizer_folder(), inputs);
        let padding = form::head(config)?.map(choose).transpose()?;
        padding.iter().for_each(Padding::announce);
        Ok(Self { form, padding })
    }

    fn batch_totals(&self, batch: &StageBatch<RmExample>, _model: &CausalLm, _ranks: &Ranks) -> f64 {
        batch.examples.iter().map(|example| example.text().map_or(1, |text| text.at.len())).sum::<usize>() as f64
    }

    fn pass(
        &self,
        batch: &StageBatch<RmExample>,
        count: &f64,
        slice: &[usize],
        model: &CausalLm,
        gradients: Option<&mut Gradients>,
    ) -> RmSliceResult {
        match &self.form {
            RewardModelForm::Pairs { loss, center } => RmSliceResult {
                pairs: pairs::pass(loss, *center, batch, *count, slice, model, gradients),
                ..RmSliceResult::default()
            },
            RewardModelForm::Steps(read) => {
                RmSliceResult { steps: steps::pass(read, batch, *count, slice, model, gradients), ..RmSliceResult::default() }
            }
        }
    }

    fn measured(&self, batch: &StageBatch<RmExample>, count: f64, results: Vec<RmSliceResult>) -> Measured {
        match &self.form {
            RewardModelForm::Pairs { loss, center } => {
                let pairs = results.into_iter().flat_map(|slice| slice.pairs).collect();
                pairs::measured(loss, *center, count, pairs, !batch.training)
            }
            RewardModelForm::Steps(_) => steps::measured(count, results.into_iter().flat_map(|slice| slice.steps).collect()),
        }
    }

    fn saved(&self, folder: &Path) -> Result<()> {
        self.padding.iter().try_for_each(|padding| padding.write(folder))
    }

    fn describe(config: &RmConfig, inputs: &StageInputs<RmExample>) -> Result<Vec<(&'static str, String)>> {
        Ok(vec![("learns", RewardModelForm::from_config(config, &inputs.tokenizer)?.describe())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipelines::rm::example::StepExample;
    use crate::pipelines::rm::form::StepReadout;
    use crate::pipelines::stage::cuts;
    use burnish_algorithm::ranking::StepTarget;

    #[test]
    fn neither_ranks_nor_slices_change_what_is_measured() {
        let example = |row: usize| {
            let length = 4 + 3 * row;
            let at: Vec<usize> = (1..length).step_by(2).collect();
            let targets = at.iter().map(|t| StepTarget::Class((row + t / 2) % 2)).collect();
            RmExample::Steps(StepExample {
                ids: (0..length).map(|t| 3 + ((31 * row + 7 * t) % 250) as u32).collect(),
                at,
                targets,
            })
        };
        let examples: Vec<RmExample> = (0..4).map(example).collect();
        let form = RewardModelForm::Steps(StepReadout::Tokens(vec![3, 9]));
        cuts::check(&Rm { form, padding: None }, &examples);
    }
}
