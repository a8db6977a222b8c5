//! The stage of reward models.

use std::path::Path;

use anyhow::{Context, Result};
use burn::tensor::Device;

use super::example::RmExample;
use super::form::{self, Form, fresh_head};
use super::padding::Padding;
use super::{pairs, rows, steps};
use crate::algorithm::ranking;
use crate::config::RmConfig;
use crate::config::schema::{InitHead, StageConfig};
use crate::data::Tokenizer;
use crate::job::models::model_init;
use crate::job::optim_choices::optim_choices;
use crate::job::unused_options::UnusedOption;
use crate::model::hf_config::HfConfig;
use crate::model::{CausalLm, DecoderConfig, Gradients, Sequence};
use crate::pipelines::stage::{Batch, Inputs, Measured, Objective, Rows};
use crate::tracking;
use crate::util::choice::Choice;

/// Returns every name that the registries know, for the configuration of a reward model.
pub fn choices() -> Vec<Choice> {
    optim_choices!("optim").chain(ranking::choices("algorithm.loss_type")).chain(tracking::choices()).collect()
}

/// The loss of pairs or of steps.
pub struct Rm {
    form: Form,
    /// `None` for a language model, whose tokenizer stays as it is.
    padding: Option<Padding>,
}

impl Objective for Rm {
    type Config = RmConfig;
    type Example = RmExample;

    fn unused_options(config: &RmConfig) -> Result<Vec<UnusedOption>> {
        rows::unused_options(config)
    }

    fn draws(config: &RmConfig) -> Result<bool> {
        Ok(form::draws_head(config)? && config.algorithm.init_head != InitHead::Zeros)
    }

    fn read(config: &RmConfig, tokenizer: &Tokenizer, rows: &Rows) -> Result<Vec<RmExample>> {
        rows::read(config, tokenizer, rows)
    }

    fn sequences(example: &RmExample) -> Vec<Sequence<'_>> {
        example.sequences()
    }

    fn targets(example: &RmExample) -> Vec<f64> {
        example.targets()
    }

    fn decoder(config: &RmConfig) -> Result<DecoderConfig> {
        let hf = HfConfig::read(config.model.path.as_path()).context("model.path")?;
        let decoder = match form::head(config)? {
            Some((labels, kind)) => hf.labels_decoder(labels, Some(kind)),
            None => hf.decoder(),
        };
        decoder.context("model.path")
    }

    fn decoder_in_files(config: &RmConfig) -> Result<DecoderConfig> {
        let hf = HfConfig::read(config.model.path.as_path()).context("model.path")?;
        if hf.classifier().is_some() { Self::decoder(config) } else { hf.decoder().context("model.path") }
    }

    fn model(config: &RmConfig, device: &Device) -> Result<CausalLm> {
        let (path, seed) = (config.model.path.as_path(), config.trainer.seed);
        let init = model_init(config.model.init, seed);
        let model = match form::head(config)? {
            Some((labels, kind)) => {
                let head = fresh_head(kind, config.algorithm.init_head, seed);
                CausalLm::load_labels(path, init, labels, Some(head), device)
            }
            None => CausalLm::load(path, init, device),
        };
        model.context("model.path")
    }

    fn prepared(config: &RmConfig, inputs: &Inputs<RmExample>, model: CausalLm) -> Result<CausalLm> {
        Ok(match form::head(config)? {
            Some(_) => model.padded_by(Padding::choose(config.stage().model.tokenizer_folder(), inputs)?.id()),
            None => model,
        })
    }

    fn build(config: &RmConfig, inputs: &Inputs<RmExample>, _model: &CausalLm) -> Result<Self> {
        let form = Form::of(config, &inputs.tokenizer)?;
        let choose = |_| Padding::choose(config.stage().model.tokenizer_folder(), inputs);
        let padding = form::head(config)?.map(choose).transpose()?;
        padding.iter().for_each(Padding::announce);
        Ok(Self { form, padding })
    }

    fn pass(&self, batch: &Batch<RmExample>, model: &CausalLm, gradients: Option<&mut Gradients>) -> Measured {
        match &self.form {
            Form::Pairs { loss, center } => pairs::pass(loss, *center, batch, model, gradients),
            Form::Steps(read) => steps::pass(read, batch, model, gradients),
        }
    }

    fn saved(&self, folder: &Path) -> Result<()> {
        self.padding.iter().try_for_each(|padding| padding.write(folder))
    }

    fn describe(config: &RmConfig, inputs: &Inputs<RmExample>) -> Result<Vec<(&'static str, String)>> {
        Ok(vec![("learns", Form::of(config, &inputs.tokenizer)?.describe())])
    }
}
