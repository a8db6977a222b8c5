//! A decoder with a scalar head: the value of each state for a critic, the score of a text for a reward model. The value
//! before a response token is read where the token is predicted, so it knows the prompt and the response so far.

use std::path::Path;

use anyhow::{Context, Result, bail};
use burn::tensor::{Device, Tensor};
use serde_json::json;

use super::causal_lm::{CausalLm, Init};
use super::config::{DecoderConfig, HeadKind};
use super::families::FAMILIES;
use super::gradients::Gradients;
use super::hf_config::{Classifier, HfConfig};
use super::ops::{tensor_from_vec, to_host};
use super::token_stats::{HEAD, Layout, Sequence};
use crate::util::rng::Stream;

const BIAS: &str = "lm_head.bias";

impl HfConfig {
    /// Returns the decoder that this config describes, with the head of its one-label classifier. Where a head may be `fresh`, a
    /// causal language model gets the head of a token classifier.
    ///
    /// # Errors
    /// The errors of [`decoder`](Self::decoder), and if the classifier has several labels, or there is no head and `fresh` is
    /// false.
    pub fn scalar_decoder(&self, fresh: bool) -> Result<DecoderConfig> {
        let config = self.decoder()?;
        let labels = self.num_labels();
        let head = match self.classifier() {
            Some(_) if labels != 1 => bail!("config.json: a model of {labels} labels; one is needed, a number per text"),
            Some(Classifier::Sequences) => HeadKind::Scalar { name: "score", bias: false },
            None if !fresh => bail!(
                "config.json: `architectures` names no …ForSequenceClassification or …ForTokenClassification, so the model has no \
                 head that scores"
            ),
            _ => HeadKind::Scalar { name: config.naming.classifier, bias: true },
        };
        Ok(DecoderConfig { head, ..config })
    }
}

impl CausalLm {
    /// Loads a folder of a token classifier or sequence classifier with one label; or, with the seed of a `fresh_head`, of a
    /// causal language model, whose head is replaced by one drawn from N(0, initializer_range) with bias 0, as in transformers'
    /// `AutoModelForTokenClassification`. `classifier_dropout` is not applied, as in verl.
    ///
    /// # Errors
    /// If the folder cannot be read, the classifier has several labels, or there is no head and no seed for one.
    pub fn load_scalar(folder: &Path, init: Init, fresh_head: Option<u64>, device: &Device) -> Result<Self> {
        let mut hf = HfConfig::read(folder)?;
        let config = hf.scalar_decoder(fresh_head.is_some()).with_context(|| format!("{}", folder.display()))?;
        let fresh = fresh_head.filter(|_| hf.classifier().is_none());
        if let (None, Some(model_type)) = (hf.classifier(), hf.json.get("model_type").and_then(|t| t.as_str())) {
            let class = FAMILIES.iter().find(|f| f.model_type == model_type).map_or("", |family| family.class);
            hf.json.insert("architectures".into(), json!([format!("{class}ForTokenClassification")]));
            hf.json.insert("id2label".into(), json!({"0": "LABEL_0"}));
            hf.json.insert("label2id".into(), json!({"LABEL_0": 0}));
        }
        let spread = config.initializer_range;
        let draw = fresh.map(|seed| {
            move |parameter: &str, shape: &[usize]| -> Vec<f32> {
                let mut stream = Stream::new(seed, "value head", &[]);
                let zero = parameter == BIAS;
                (0..shape.iter().product()).map(|_| if zero { 0.0 } else { (stream.normal() * spread) as f32 }).collect()
            }
        });
        Self::with_config(folder, (hf, config), init, draw.as_ref().map(|draw| draw as _), device)
    }

    /// Returns the value of the state before every response token, in the order of the sequences, without gradients.
    pub fn values(&self, sequences: &[Sequence]) -> Vec<f32> {
        let layout = Layout::of(sequences);
        if layout.targets.is_empty() {
            return Vec::new();
        }
        to_host(self.scalar(&self.predicting_states(&layout)))
    }

    /// Returns the score of every text, at its last token, without gradients. On the CPU a score does not depend on the other
    /// texts, to the last bit: so texts that begin alike share no pass, and products take each row by itself.
    pub fn final_scores(&self, texts: &[&[u32]]) -> Vec<f32> {
        if texts.is_empty() {
            return Vec::new();
        }
        // The prediction after the last token is not computed, so any token will do.
        let layout = Layout::of(&texts.iter().map(|&prompt| Sequence { prompt, response: &[0] }).collect::<Vec<_>>());
        let model = self.frozen();
        let hidden = model.independent_hidden(model.embed(&layout.ids, &layout.packed.positions()), &layout.packed);
        to_host(self.scalar(&hidden.select(0, layout.predicting(&self.device))))
    }

    /// Makes one forward and backward pass of a [`trainable`](CausalLm::trainable) model: `loss` maps the
    /// [`values`](Self::values) to d loss / d value, and the parameters' gradients are added to `gradients`.
    pub fn value_backward(&self, sequences: &[Sequence], gradients: &mut Gradients, loss: impl FnOnce(&[f32]) -> Vec<f32>) {
        let layout = Layout::of(sequences);
        if layout.targets.is_empty() {
            loss(&[]);
            return;
        }
        self.through_trunk(&layout, gradients, |hidden, gradients| {
            let d = loss(&to_host(self.scalar(&hidden)));
            let (tokens, w) = (d.len(), self.net.head().val().inner());
            let d = tensor_from_vec(d, [tokens, 1], &self.device);
            gradients.add(HEAD, d.clone().transpose().matmul(hidden));
            if self.net.lm_head.as_ref().is_some_and(|head| head.bias.is_some()) {
                gradients.add(BIAS, d.clone().sum());
            }
            d.matmul(w)
        });
    }

    /// Applies the scalar head to hidden states [tokens, h], in f32, giving [tokens].
    ///
    /// # Panics
    /// If this is a language model, which has no scalar head.
    fn scalar(&self, hidden: &Tensor<2>) -> Tensor<1> {
        let head =
            self.net.lm_head.as_ref().filter(|_| self.config.head != HeadKind::Language).expect("a model with a scalar head");
        let y: Tensor<1> = (hidden.clone() * head.weight.val().inner()).sum_dim(1).flatten(0, 1);
        match &head.bias {
            Some(bias) => y + bias.val().inner(),
            None => y,
        }
    }
}
