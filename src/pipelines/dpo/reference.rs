//! The reference model, and its log-probabilities of responses, stored or computed on demand.

use anyhow::{Context, Result};

use super::example::PreferenceExample;
use super::loss::Loss;
use super::stored::{Key, StoredLogProbs};
use crate::job::models::is_bfloat16;
use crate::job::second_model::SecondModel;
use crate::pipelines::stage::{StageBatch, StageInputs, decoder};
use burnish_config::DpoConfig;
use burnish_data::Tokenizer;
use burnish_distributed::Ranks;
use burnish_model::hf_config::HfConfig;
use burnish_model::{CausalLm, DecoderConfig, Init, Sequence};

const KEY: &str = "ref.model.path";

/// The reference of a run.
pub(super) enum Reference {
    /// The loss does not read a reference.
    None,
    /// The stored sums of its log-probabilities of all responses. The model itself is kept only for a loss that compares
    /// responses to other prompts.
    Stored(StoredLogProbs, Option<CausalLm>),
    Model(CausalLm),
}

impl Reference {
    /// Builds the reference. Collective. `model`: the policy before the first step.
    ///
    /// # Errors
    /// If the reference does not fit, or a named file has log-probabilities of another reference or of other rows.
    pub(super) fn build(
        config: &DpoConfig,
        loss: &Loss,
        inputs: &StageInputs<PreferenceExample>,
        model: &CausalLm,
        ranks: &Ranks,
    ) -> Result<Self> {
        if !loss.reads_reference() {
            return Ok(Self::None);
        }
        let reference = ranks.agree(Self::model(config, inputs, model))?;
        if !config.reference.precompute_log_prob {
            return Ok(Self::Model(reference));
        }
        let ld_alpha = config.algorithm.ld_alpha.unwrap_or(1.0);
        let key = Key::for_rows(&reference, &inputs.train, &inputs.val, ld_alpha);
        let stored = match &config.reference.log_prob_path {
            Some(path) => ranks.first(|| StoredLogProbs::read(path.as_path(), &key).context("ref.log_prob_path"))?,
            None => StoredLogProbs::beside(config.trainer.default_local_dir.as_path(), &key, ranks, || {
                let log_probs = |example: &PreferenceExample| {
                    ranks.beat();
                    example.log_probs(&reference, ld_alpha)
                };
                let of = |examples: &[PreferenceExample]| {
                    ranks.concat_f32s(examples[ranks.share(examples.len())].iter().flat_map(log_probs).collect())
                };
                (of(&inputs.train), of(&inputs.val))
            })?,
        };
        Ok(Self::Stored(stored, loss.reads_mismatched().then_some(reference)))
    }

    /// Returns the reference model.
    fn model(config: &DpoConfig, inputs: &StageInputs<PreferenceExample>, model: &CausalLm) -> Result<CausalLm> {
        check(config, &inputs.tokenizer)?;
        Ok(match &config.reference.model.path {
            // Without a first update, or with an adapter, the reference shares the weights of the policy and takes no memory.
            None => model.frozen(),
            Some(path) => {
                let loaded = CausalLm::load(path.as_path(), Init::Pretrained, &model.device).context(KEY)?;
                let bfloat16 = is_bfloat16(config.model.dtype, config.trainer.device, &model.device);
                loaded.computing(bfloat16, false)
            }
        })
    }

    /// Returns the sums of log-probabilities of the responses of an example, by its index in the batch.
    pub(super) fn log_probs(&self, batch: &StageBatch<PreferenceExample>, i: usize, ld_alpha: f64) -> Vec<f32> {
        let (example, row) = (batch.examples[i], batch.rows[i]);
        match self {
            Self::None => vec![0.0; example.answers().len()],
            Self::Stored(stored, _) => {
                let all = if batch.training { &stored.train } else { &stored.val };
                let answers = example.answers().len();
                all[row * answers..(row + 1) * answers].to_vec()
            }
            Self::Model(model) => example.log_probs(model, ld_alpha),
        }
    }

    /// Returns the sum of log-probabilities of a response to another prompt.
    ///
    /// # Panics
    /// If the loss does not read such responses.
    pub(super) fn mismatched(&self, sequence: Sequence) -> f64 {
        let (Self::Stored(_, Some(model)) | Self::Model(model)) = self else {
            unreachable!("the reference is kept for a loss that reads it")
        };
        model.token_stats(&[sequence], 1.0, None).log_prob.iter().map(|&lp| f64::from(lp)).sum()
    }
}

/// Returns the shape of a reference that is another model.
///
/// # Errors
/// If config.json cannot be read.
pub(super) fn other(config: &DpoConfig) -> Result<Option<DecoderConfig>> {
    let Some(path) =
        config.reference.model.path.as_ref().filter(|_| Loss::from_config(config).is_ok_and(|l| l.reads_reference()))
    else {
        return Ok(None);
    };
    HfConfig::read(path.as_path()).and_then(|hf| hf.decoder()).context(KEY).map(Some)
}

/// Checks that another model has the same tokens as the policy.
///
/// # Errors
/// If the tokens differ: probabilities are comparable only over the same tokens.
pub(super) fn check(config: &DpoConfig, tokenizer: &Tokenizer) -> Result<()> {
    let (Some(path), Some(other)) = (&config.reference.model.path, other(config)?) else { return Ok(()) };
    let reference = SecondModel { key: KEY, folder: path.as_path(), role: "reference", first: "policy" };
    reference.same_size(other.vocab_size, decoder(config)?.vocab_size)?;
    reference.tokenizer(tokenizer).map(drop)
}
