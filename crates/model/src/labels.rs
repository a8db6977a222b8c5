//! A decoder with a classifier's head: `labels` outputs per token. One label is a critic's value of a state ([`super::scalar`])
//! or a reward model's score of a text. Two labels classify a step for a process reward model. The head is read after the tokens
//! that the caller marks ([`super::readout`]).

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use burn::tensor::Device;
use serde_json::{Map, Value, json};

use super::causal_lm::{CausalLm, Init};
use super::config::{DecoderConfig, HeadKind};
use super::families::FAMILIES;
use super::hf_config::{Classifier, HfConfig};
use burnish_util::rng::Stream;

/// The head that replaces a language model's head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewHead {
    pub kind: Classifier,
    pub init: HeadInit,
    pub seed: u64,
}

/// The initial values of a new head. Its bias, if any, starts at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadInit {
    /// N(0, initializer_range), as in transformers.
    Normal,
    /// N(0, 1 / (hidden_size + 1)), as in OpenRLHF.
    Scaled,
    Zeros,
}

impl HfConfig {
    /// Returns the decoder that this config describes, with its classifier's head. A causal language model gets the `fresh` head,
    /// if given.
    ///
    /// # Errors
    /// The errors of [`decoder`](Self::decoder); also if the number of labels differs, or the model has no classifier's head.
    pub fn labels_decoder(&self, labels: usize, fresh: Option<Classifier>) -> Result<DecoderConfig> {
        let config = self.decoder()?;
        let has = self.num_labels();
        let Some(kind) = self.classifier().or(fresh) else {
            bail!(
                "config.json: `architectures` names no …ForSequenceClassification or …ForTokenClassification, so the model has no \
                 head that scores"
            );
        };
        if self.classifier().is_some() && has != labels {
            let needed = match labels {
                1 => "1 is needed, the score of a text".to_owned(),
                _ => format!("{labels} are needed, for each token"),
            };
            bail!("config.json: the model has {has} labels; {needed}");
        }
        let head = match kind {
            Classifier::Sequences => HeadKind::Classifier { name: "score", bias: false, labels },
            Classifier::Tokens => HeadKind::Classifier { name: config.naming.classifier, bias: true, labels },
        };
        Ok(DecoderConfig { head, ..config })
    }

    /// Turns the config of a language model into the config of a classifier. transformers takes the number of labels from
    /// `id2label`.
    fn become_classifier(&mut self, kind: Classifier, labels: usize) {
        let Some(model_type) = self.json.get("model_type").and_then(Value::as_str) else { return };
        let class = FAMILIES.iter().find(|f| f.model_type == model_type).map_or("", |family| family.class);
        let end = match kind {
            Classifier::Tokens => "ForTokenClassification",
            Classifier::Sequences => "ForSequenceClassification",
        };
        let name = |label: usize| format!("LABEL_{label}");
        let id2label: Map<String, Value> = (0..labels).map(|label| (label.to_string(), name(label).into())).collect();
        let label2id: Map<String, Value> = (0..labels).map(|label| (name(label), label.into())).collect();
        self.json.insert("architectures".into(), json!([format!("{class}{end}")]));
        self.json.insert("id2label".into(), id2label.into());
        self.json.insert("label2id".into(), label2id.into());
    }
}

impl CausalLm {
    /// Loads a folder of a classifier with this number of labels. With a `new_head`, the folder may hold a causal language model,
    /// whose head is replaced. `classifier_dropout` is not applied, as in verl.
    ///
    /// # Errors
    /// If the folder cannot be read, the number of labels differs, or the model has no classifier's head and `new_head` is
    /// `None`.
    pub fn load_labels(folder: &Path, init: Init, labels: usize, new_head: Option<NewHead>, device: &Device) -> Result<Self> {
        Self::load_labels_as(folder, HfConfig::read(folder)?, init, labels, new_head, device)
    }

    /// Does what [`load_labels`](Self::load_labels) does, with `hf` in place of the folder's config.json.
    ///
    /// # Errors
    /// The errors of [`load_labels`](Self::load_labels).
    pub fn load_labels_as(
        folder: &Path,
        mut hf: HfConfig,
        init: Init,
        labels: usize,
        new_head: Option<NewHead>,
        device: &Device,
    ) -> Result<Self> {
        let config =
            hf.labels_decoder(labels, new_head.map(|head| head.kind)).with_context(|| format!("{}", folder.display()))?;
        let drawn = match init {
            Init::Pretrained => new_head.filter(|_| hf.classifier().is_none()),
            // All parameters of a random model are drawn from N(0, initializer_range).
            Init::Random { .. } => new_head.filter(|head| head.init != HeadInit::Normal),
        };
        if let (None, Some(head)) = (hf.classifier(), new_head) {
            hf.become_classifier(head.kind, labels);
        }
        let (normal, hidden) = (config.initializer_range, config.hidden_size);
        let draw = drawn.map(|head| {
            move |parameter: &str, shape: &[usize]| -> Vec<f32> {
                let mut stream = Stream::new(head.seed, "value head", &[]);
                let spread = match head.init {
                    _ if parameter.ends_with(".bias") => 0.0,
                    HeadInit::Normal => normal,
                    HeadInit::Scaled => 1.0 / (hidden as f64 + 1.0),
                    HeadInit::Zeros => 0.0,
                };
                (0..shape.iter().product()).map(|_| if spread == 0.0 { 0.0 } else { (stream.normal() * spread) as f32 }).collect()
            }
        });
        Self::with_config(folder, (hf, config), init, draw.as_ref().map(|draw| draw as _), device)
    }

    /// Returns the same model with this `pad_token_id` in config.json. transformers reads a text's score at the last token that
    /// is not padding, so no text may end with this token. With `None`, transformers scores one text at a time.
    pub fn padded_by(mut self, pad: Option<u32>) -> Self {
        let hf = Arc::make_mut(&mut self.hf);
        hf.json.insert("pad_token_id".into(), pad.map_or(Value::Null, Value::from));
        self
    }
}
