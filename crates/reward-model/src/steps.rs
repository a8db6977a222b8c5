//! Process reward models: they judge every step of a response, and combine the judgements into one score.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;

use burnish_data::Tokenizer;
use burnish_model::hf_config::{Classifier, HfConfig};
use burnish_model::{CausalLm, DecoderConfig, Init, Readout};

/// A function that combines the probabilities that each step is right into one score.
#[derive(Clone, Copy)]
pub(crate) struct StepScore {
    /// Name in settings.
    pub name: &'static str,
    /// Computes the score of a text with at least one step.
    pub combine: fn(&[f64]) -> f64,
}

/// All functions that a setting can name.
pub(crate) static STEP_SCORES: &[StepScore] = &[
    StepScore { name: "min", combine: |steps| steps.iter().copied().fold(f64::INFINITY, f64::min) },
    StepScore { name: "last", combine: |steps| steps[steps.len() - 1] },
    StepScore { name: "mean", combine: |steps| steps.iter().sum::<f64>() / steps.len() as f64 },
    StepScore { name: "prod", combine: |steps| steps.iter().product() },
];

/// Options for judging responses step by step, as written in the settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepScoringOptions {
    /// Text between two steps.
    pub separator: String,
    /// Token at which a language model judges a step; `None` for a token classifier, which judges at the separator.
    pub placeholder: Option<String>,
    /// The tokens by whose logits a language model judges a step, the better one first.
    pub reward_tokens: Vec<String>,
    /// Name of a `StepScore`.
    pub score: String,
}

/// Tokenizing and scoring of the steps for a process reward model.
pub struct StepScorer {
    /// Tokenizer of the reward model.
    pub tokenizer: Tokenizer,
    separator: String,
    method: JudgeMethod,
    score: StepScore,
}

enum JudgeMethod {
    /// By two labels, wrong and right, after the separator (TRL).
    Labels,
    /// By the logits of some tokens at a placeholder (OpenRLHF). The first token is the better one.
    Tokens { placeholder: String, id: u32, tokens: Vec<u32> },
}

/// Returns the decoder of a reward model, and `true` if the model judges steps by two labels (a token classifier). A language
/// model is accepted only if `placeholder` is true.
///
/// # Errors
/// If the model is not one of these kinds.
pub fn judging_decoder(hf: &HfConfig, placeholder: bool) -> Result<(DecoderConfig, bool)> {
    if placeholder {
        ensure!(hf.classifier().is_none(), "config.json: a classifier, and a placeholder is for a language model");
        return Ok((hf.decoder()?, true));
    }
    let steps = judges_by_labels(hf);
    Ok((hf.labels_decoder(if steps { 2 } else { 1 }, None)?, steps))
}

/// Returns true for a token classifier of two labels: a process reward model.
pub fn judges_by_labels(hf: &HfConfig) -> bool {
    hf.classifier() == Some(Classifier::Tokens) && hf.num_labels() == 2
}

/// Loads a reward model, or a process reward model: a token classifier of two labels, or, with a `placeholder`, a language model.
///
/// # Errors
/// If the folder holds no such model, or cannot be read.
pub fn load_judge(folder: &Path, init: Init, fresh_head: Option<u64>, placeholder: bool, device: &Device) -> Result<CausalLm> {
    if placeholder {
        return CausalLm::load(folder, init, device);
    }
    let hf = HfConfig::read(folder)?;
    match judges_by_labels(&hf) {
        true => CausalLm::load_labels(folder, init, 2, None, device),
        false => CausalLm::load_scalar(folder, init, fresh_head, device),
    }
}

impl StepScorer {
    /// Prepares the tokenizing and scoring of steps.
    ///
    /// # Errors
    /// If the options do not go together, or a text that must be one token is not.
    pub fn new(options: &StepScoringOptions, tokenizer: Tokenizer) -> Result<Self> {
        let names: Vec<&str> = STEP_SCORES.iter().map(|score| score.name).collect();
        let score = STEP_SCORES.iter().find(|score| score.name == options.score);
        let score =
            *score.with_context(|| format!("the score of steps must be one of {}, not {}", names.join(", "), options.score))?;
        ensure!(!options.separator.is_empty(), "the separator of steps is empty");
        let method = match &options.placeholder {
            None => JudgeMethod::Labels,
            Some(placeholder) => {
                let tokens = tokenizer.singles(&options.reward_tokens).context("reward tokens")?;
                ensure!(
                    tokens.len() > 1,
                    "a model that judges at a placeholder needs at least two reward tokens, the better one first"
                );
                JudgeMethod::Tokens {
                    placeholder: placeholder.clone(),
                    id: tokenizer.single(placeholder).context("the placeholder")?,
                    tokens,
                }
            }
        };
        Ok(Self { tokenizer, separator: options.separator.clone(), method, score })
    }

    /// Returns the tokens of a prompt and its response, as in training, and the positions at which its steps are judged. A
    /// response without a separator is one step.
    ///
    /// # Errors
    /// If a text cannot be tokenized.
    pub fn read(&self, prompt: &str, response: &str) -> Result<(Vec<u32>, Vec<usize>)> {
        let tokenizer = &self.tokenizer;
        let steps: Vec<&str> = response.split(&self.separator).filter(|step| !step.trim().is_empty()).collect();
        let steps = if steps.is_empty() { vec![response] } else { steps };
        match &self.method {
            JudgeMethod::Labels => {
                let (mut ids, separator) = (tokenizer.encode_begun(prompt)?, tokenizer.encode(&self.separator)?);
                let mut at = Vec::with_capacity(steps.len());
                for step in steps {
                    ids.extend(tokenizer.encode(step)?);
                    ids.extend(&separator);
                    at.push(ids.len().saturating_sub(1));
                }
                Ok((ids, at))
            }
            JudgeMethod::Tokens { placeholder, id, .. } => {
                let steps: Vec<String> = steps.iter().map(|step| format!("{step}{placeholder}")).collect();
                let ids = tokenizer.encode(&format!("{prompt}{}", steps.join(&self.separator)))?;
                let places: Vec<usize> = (0..ids.len()).filter(|&at| ids[at] == *id).collect();
                let (found, count) = (places.len(), steps.len());
                ensure!(found >= count, "the placeholder {placeholder:?} is not a separate token after a step");
                Ok((ids, places[found - count..].to_vec()))
            }
        }
    }

    /// Returns the model outputs to read at a step.
    pub fn readout(&self) -> Readout<'_> {
        match &self.method {
            JudgeMethod::Labels => Readout::Labels,
            JudgeMethod::Tokens { tokens, .. } => Readout::Tokens(tokens),
        }
    }

    /// Returns the score of a text from the logits at its steps, [steps, logits].
    pub fn score(&self, numbers: &[f32]) -> f32 {
        let (width, right) = match &self.method {
            JudgeMethod::Labels => (2, 1),
            JudgeMethod::Tokens { tokens, .. } => (tokens.len(), 0),
        };
        let chances: Vec<f64> = numbers.chunks_exact(width).map(|step| chance(step, right)).collect();
        (self.score.combine)(&chances) as f32
    }
}

/// Returns the probability of logit `of` in the softmax of `logits`.
fn chance(logits: &[f32], of: usize) -> f64 {
    1.0 / logits.iter().map(|&x| (f64::from(x) - f64::from(logits[of])).exp()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps are tokenized as in training: the prompt, then each step followed by the separator, or as one text with
    /// placeholders.
    #[test]
    fn steps_are_read_and_scored() {
        let tokenizer = Tokenizer::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/arithmetic/model")).unwrap();
        let options =
            |score: &str| StepScoringOptions { separator: "\n".into(), score: score.into(), ..StepScoringOptions::default() };
        let labels = StepScorer::new(&options("min"), tokenizer.clone()).unwrap();
        let (ids, at) = labels.read("1+2=", "3\n4").unwrap();
        let text = tokenizer.encode("1+2=3\n4\n").unwrap();
        assert_eq!((&ids[ids.len() - text.len()..], at), (&text[..], vec![ids.len() - 3, ids.len() - 1]));
        let even = (0.5f64, 1.0 / (1.0 + (-2f64).exp()));
        for (score, want) in [("min", even.0), ("last", even.1), ("mean", (even.0 + even.1) / 2.0), ("prod", even.0 * even.1)] {
            let found = StepScorer::new(&options(score), tokenizer.clone()).unwrap().score(&[1.0, 1.0, 0.0, 2.0]);
            assert!((f64::from(found) - want).abs() < 1e-6, "{score}: {found}");
        }
        let tokens =
            StepScoringOptions { placeholder: Some(" ".into()), reward_tokens: vec!["+".into(), "-".into()], ..options("last") };
        let tokens = StepScorer::new(&tokens, tokenizer.clone()).unwrap();
        let (ids, at) = tokens.read("1 2=", "3\n4").unwrap();
        assert_eq!((ids, at), (tokenizer.encode("1 2=3 \n4 ").unwrap(), vec![5, 8]));
        assert!((f64::from(tokens.score(&[0.0, 0.0, 2.0, 0.0])) - even.1).abs() < 1e-6);
        let unknown = StepScorer::new(&options("sum"), tokenizer.clone()).err().unwrap().to_string();
        assert!(unknown.contains("one of min, last, mean, prod"), "{unknown}");
    }
}
