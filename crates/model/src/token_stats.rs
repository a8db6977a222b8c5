//! The interface between model and algorithm. A micro-batch becomes a few statistics per response token: its log-probability, the
//! entropy, the divergence from a reference. Gradients with respect to these statistics flow back into the parameters.
//!
//! 1. Trunk forward with autodiff → hidden states.
//! 2. Head in chunks, outside the graph → [`TokenStats`].
//! 3. The caller's loss gives d loss / d stats.
//! 4. Head backward in the same chunks → d hidden and d head.
//! 5. Trunk backward from d hidden.
//!
//! No [tokens, vocabulary] tensor exists, and losses never see a model.
//!
//! Only needed rows are computed. There is no padding. A prompt goes through the trunk once for all its responses in the
//! micro-batch. A response's last token predicts nothing and does not go through the trunk.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, s};

use super::causal_lm::CausalLm;
use super::gradients::Gradients;
use super::layer_inputs::TABLE;
use super::noise::NoisyRows;
use super::ops::{
    Compared, Head, Packed, Softcap, TopK, add_rows, cast, head_backward, head_fused_backward, head_log_probs, head_stats,
    head_top_k, index,
};
use super::sampled::Sampled;
use super::sequence::Sequence;

pub use super::ops::head::{TokenGrads, TokenStats};
pub use super::ops::{Divergence, SparseMeasure};

/// The target of a comparison with a policy's distributions, token by token.
#[derive(Clone, Copy)]
pub enum ComparisonTarget<'a> {
    /// Another model on the same device. If one of the two has more rows of the vocabulary (padding), both ignore the additional
    /// rows.
    Model(&'a CausalLm, Divergence),
    /// Some tokens of a teacher for every sampled token, in the order of the sequences.
    TopK { teacher: &'a TopK, measure: SparseMeasure },
    /// The uniform distribution u over the vocabulary, by the cross-entropy −Σ u·log π.
    Uniform,
}

impl<'a> From<&'a CausalLm> for ComparisonTarget<'a> {
    /// The divergence KL(π ‖ π_ref) from a reference.
    fn from(reference: &'a CausalLm) -> Self {
        Self::Model(reference, Divergence::ReverseKl)
    }
}

/// A text and the tokens after which a head is read ([`Readout`](super::Readout)). That is the last token of a text for its
/// score, or the end of each step for a process reward model. Texts with the same prompt share its pass.
#[derive(Clone, Copy, Debug)]
pub struct MarkedSequence<'a> {
    pub sequence: Sequence<'a>,
    /// Positions in prompt and response together, ascending, not before the prompt's last token.
    pub at: &'a [usize],
}

/// A micro-batch laid out for the device.
pub(super) struct Layout {
    /// The token id of each row.
    pub(super) ids: Vec<u32>,
    pub(super) packed: Arc<Packed>,
    /// The rows that are read, in the order of the texts: rows that predict a response token, or rows of marks.
    rows: Vec<usize>,
    pub(super) targets: Vec<u32>,
    /// The row of each sequence's last prompt token.
    last_of_prompt: Vec<usize>,
}

impl Layout {
    /// Lays out sequences and reads the rows that predict response tokens. A response's last token predicts nothing and has no
    /// row. Sequences with the same prompt share its rows.
    pub(super) fn for_sequences(sequences: &[Sequence]) -> Self {
        Self::predictions(sequences, |_| 0, |_, _| true)
    }

    /// Like [`for_sequences`](Self::for_sequences), but reads only the rows that predict sampled tokens.
    fn for_sampled(sequences: &[Sequence]) -> Self {
        Self::predictions(sequences, |_| 0, |sequence, token| sequence.is_sampled(token))
    }

    /// Like [`for_sampled`](Self::for_sampled), but no two sequences share rows.
    fn unshared(sequences: &[Sequence]) -> Self {
        Self::predictions(sequences, |i| i, |sequence, token| sequence.is_sampled(token))
    }

    /// Lays out sequences and reads the rows that predict those response tokens for which `read` is true.
    fn predictions(sequences: &[Sequence], group: impl Fn(usize) -> usize, read: impl Fn(&Sequence, usize) -> bool) -> Self {
        let inputs = sequences.iter().map(|s| s.response.split_last().map(|(_, inputs)| (s.prompt, inputs)));
        let (mut layout, places) = Self::packed(&inputs.collect::<Vec<_>>(), group);
        layout.last_of_prompt = places.iter().map(|(last, _)| *last).collect();
        for (s, (last, first)) in sequences.iter().zip(places) {
            let tokens = || (0..s.response.len()).filter(|&t| read(s, t));
            layout.rows.extend(tokens().map(|t| if t == 0 { last } else { first + t - 1 }));
            layout.targets.extend(tokens().map(|t| s.response[t]));
        }
        layout
    }

    /// The rows of each sequence of an [`unshared`](Self::unshared) layout.
    fn spans(&self, sequences: &[Sequence]) -> Vec<NoisyRows> {
        let span = |(s, last): (&Sequence, &usize)| match s.response.len() {
            0 => NoisyRows { first: 0, count: 0, tokens: s.len() },
            _ => NoisyRows { first: last + 1 - s.prompt.len(), count: s.len() - 1, tokens: s.len() },
        };
        sequences.iter().zip(&self.last_of_prompt).map(span).collect()
    }

    /// Lays out texts and reads the rows of their marks. Nothing after a text's last mark has a row.
    ///
    /// # Panics
    /// If a mark is before the last token of a prompt or after the end of a text.
    pub(super) fn reading(marked: &[MarkedSequence]) -> Self {
        let inputs = marked.iter().map(|MarkedSequence { sequence: Sequence { prompt, response, .. }, at }| {
            let last = at.last()?;
            Some((*prompt, &response[..last + 1 - prompt.len()]))
        });
        let (mut layout, places) = Self::packed(&inputs.collect::<Vec<_>>(), |_| 0);
        for (MarkedSequence { sequence, at }, (last, first)) in marked.iter().zip(places) {
            let prompt = sequence.prompt.len();
            layout.rows.extend(at.iter().map(|at| if at + 1 == prompt { last } else { first + at - prompt }));
        }
        layout
    }

    /// Lays out whole texts and reads the rows at the marked positions. No two texts share rows.
    pub(super) fn apart(texts: &[(&[u32], &[usize])]) -> Self {
        let (mut ids, mut packed, mut rows) = (Vec::new(), Packed::default(), Vec::new());
        for (text, at) in texts.iter().filter(|(text, _)| !text.is_empty()) {
            let first = packed.push(text.len(), &[]);
            ids.extend_from_slice(text);
            rows.extend(at.iter().map(|at| first + at));
        }
        Self { ids, packed: packed.into(), rows, targets: Vec::new(), last_of_prompt: Vec::new() }
    }

    /// Lays out prompts and their continuations; inputs of the same group share the rows of an equal prompt. Also returns, for
    /// each input, the row of its last prompt token and the row of the first token after it.
    fn packed(inputs: &[Option<(&[u32], &[u32])>], group: impl Fn(usize) -> usize) -> (Self, Vec<(usize, usize)>) {
        type Members<'a> = Vec<(usize, &'a [u32])>;
        let mut by_prompt: BTreeMap<(&[u32], usize), Members> = BTreeMap::new();
        for (i, (prompt, inputs)) in inputs.iter().enumerate().filter_map(|(i, input)| Some((i, (*input)?))) {
            by_prompt.entry((prompt, group(i))).or_default().push((i, inputs));
        }
        let (mut ids, mut packed) = (Vec::new(), Packed::default());
        let mut places = vec![(0, 0); inputs.len()];
        for ((prompt, _), members) in by_prompt {
            ids.extend_from_slice(prompt);
            ids.extend(members.iter().flat_map(|(_, inputs)| *inputs));
            let lengths: Vec<usize> = members.iter().map(|(_, inputs)| inputs.len()).collect();
            let alone = members.len() == 1;
            let first = if alone { packed.push(prompt.len() + lengths[0], &[]) } else { packed.push(prompt.len(), &lengths) };
            let mut row = first + prompt.len();
            for ((i, _), len) in members.into_iter().zip(lengths) {
                places[i] = (first + prompt.len() - 1, row);
                row += len;
            }
        }
        (Self { ids, packed: packed.into(), rows: Vec::new(), targets: Vec::new(), last_of_prompt: Vec::new() }, places)
    }

    /// The number of rows that are read.
    pub(super) fn reads(&self) -> usize {
        self.rows.len()
    }

    /// The rows that are read, as a tensor.
    pub(super) fn predicting(&self, device: &Device) -> Tensor<1, Int> {
        index(self.rows.iter().copied(), device)
    }
}

impl CausalLm {
    /// Returns statistics of every response token, without gradients. With a comparison, they include the divergence from it.
    pub fn token_stats(&self, sequences: &[Sequence], temperature: f32, comparison: Option<ComparisonTarget>) -> TokenStats {
        self.token_stats_within(sequences, temperature, comparison, self.vocabulary())
    }

    /// Returns [`token_stats`](Self::token_stats) over the first `vocabulary` tokens. Later rows, which are padding for a model
    /// with a smaller vocabulary, have probability 0.
    pub fn token_stats_within(
        &self,
        sequences: &[Sequence],
        temperature: f32,
        comparison: Option<ComparisonTarget>,
        vocabulary: usize,
    ) -> TokenStats {
        let (layout, sampled) = (Layout::for_sampled(sequences), Sampled::new(sequences));
        if layout.targets.is_empty() {
            return sampled.spread(&TokenStats::default()).into_owned();
        }
        let other = PreparedComparison::new(comparison, &layout, temperature, vocabulary);
        let policy = self.predicting(&layout, temperature).within(other.vocabulary);
        sampled.spread(&head_stats(policy.view(), &layout.targets, other.compared()).tokens).into_owned()
    }

    /// Returns this model's top-k tokens for every sampled token, among the first `vocabulary` tokens.
    ///
    /// # Panics
    /// If k is 0 or larger than the vocabulary.
    pub fn top_k(&self, sequences: &[Sequence], temperature: f32, k: usize, vocabulary: usize) -> TopK {
        let layout = Layout::for_sampled(sequences);
        if layout.targets.is_empty() {
            return TopK { k, ..TopK::default() };
        }
        head_top_k(self.predicting(&layout, temperature).within(vocabulary).view(), k)
    }

    /// Returns these entries, of every sampled token, with this model's log-probabilities among the first `vocabulary` tokens.
    ///
    /// # Panics
    /// If the entries belong to other tokens.
    pub fn log_probs_of(&self, entries: &TopK, sequences: &[Sequence], temperature: f32, vocabulary: usize) -> TopK {
        let layout = Layout::for_sampled(sequences);
        if layout.targets.is_empty() {
            return entries.clone();
        }
        head_log_probs(self.predicting(&layout, temperature).within(vocabulary).view(), entries)
    }

    /// Makes one forward and backward pass of a [`trainable`](CausalLm::trainable) model. `loss` maps the statistics to their
    /// gradients, and the parameters' gradients are added to `gradients`. With a comparison, the statistics include the
    /// divergence from it. A comparison with another model costs one forward pass of that model, which gets no gradients.
    ///
    /// # Panics
    /// If `loss` returns a gradient of the divergence without a comparison.
    pub fn backward(
        &self,
        sequences: &[Sequence],
        temperature: f32,
        comparison: Option<ComparisonTarget>,
        gradients: &mut Gradients,
        loss: impl FnOnce(&TokenStats) -> TokenGrads,
    ) {
        let sampled = Sampled::new(sequences);
        if sampled.is_empty() {
            loss(&sampled.spread(&TokenStats::default()));
            return;
        }
        self.backward_through(sequences, temperature, comparison, gradients, |head, targets, compared, d_w| {
            let stats = head_stats(head, targets, compared);
            let grads = sampled.select(loss(&sampled.spread(&stats.tokens)));
            head_backward(head, targets, &stats, &grads, compared, d_w)
        });
    }

    /// Does what [`backward`](Self::backward) does, for a loss that is a sum over tokens whose terms each read only their own
    /// token's statistics. `loss` gets the tokens in consecutive ranges; all tokens must be sampled. Without a comparison, the
    /// logits are computed once.
    ///
    /// # Panics
    /// Like [`backward`](Self::backward).
    pub fn backward_by_token(
        &self,
        sequences: &[Sequence],
        comparison: Option<ComparisonTarget>,
        gradients: &mut Gradients,
        mut loss: impl FnMut(Range<usize>, &TokenStats) -> TokenGrads,
    ) {
        if comparison.is_some() {
            let tokens = sequences.iter().map(|sequence| sequence.response.len()).sum();
            return self.backward(sequences, 1.0, comparison, gradients, |stats| loss(0..tokens, stats));
        }
        self.backward_through(sequences, 1.0, None, gradients, |head, targets, _, d_w| {
            head_fused_backward(head, targets, d_w, loss)
        });
    }

    /// Makes a forward and backward pass with the head `through`. It gets the policy's hidden states and matrix, the targets, the
    /// comparison, and the gradient of the matrix to add to. It returns the gradient of the hidden states.
    pub(super) fn backward_through(
        &self,
        sequences: &[Sequence],
        temperature: f32,
        comparison: Option<ComparisonTarget>,
        gradients: &mut Gradients,
        through: impl FnOnce(Head, &[u32], Option<Compared>, Option<&mut Tensor<2>>) -> Tensor<2>,
    ) {
        let layout = if self.noise.is_some() { Layout::unshared(sequences) } else { Layout::for_sampled(sequences) };
        if layout.targets.is_empty() {
            return;
        }
        // The other model's pass runs before the policy's, so that its memory is free when the policy's activations are made.
        let other = PreparedComparison::new(comparison, &layout, temperature, self.vocabulary());
        let shape = [layout.ids.len(), self.config.hidden_size];
        let noise = self.noise.as_ref().map(|noise| noise.draw(&layout.spans(sequences), shape, &self.device));
        self.through_trunk(&layout, noise, gradients, |hidden, gradients| {
            let input = self.head_input(hidden, temperature).within(other.vocabulary);
            let head = input.view();
            let head_name = if self.net.lm_head.is_some() { HEAD } else { EMBEDDING };
            let trained = self.net.head().val().is_require_grad();
            let shape = self.net.head().val().dims();
            let mut d_head = trained.then(|| gradients.take(head_name, shape, &self.device));
            // A head that is cut to the common vocabulary has a separate gradient: the first rows of the whole.
            let is_cut = |d: &&Tensor<2>| d.dims() != head.w.dims();
            let mut d_part = d_head.as_ref().filter(is_cut).map(|_| Tensor::zeros(head.w.dims(), &self.device));
            let d_w = d_part.as_mut().or(d_head.as_mut());
            let d_hidden = self.scaled_for_logits(through(head, &layout.targets, other.compared(), d_w) / input.divisor);
            if let (Some(all), Some(part)) = (&mut d_head, d_part) {
                let rows = part.dims()[0];
                all.inplace(|all| {
                    let part = all.clone().narrow(0, 0, rows) + part;
                    all.slice_assign(s![0..rows], part)
                });
            }
            d_head.into_iter().for_each(|d_head| gradients.add(head_name, d_head));
            d_hidden
        });
    }

    /// The number of rows of the head.
    pub(super) fn vocabulary(&self) -> usize {
        self.net.head().val().dims()[0]
    }

    /// Runs everything except the head forward and backward. `noise` [rows, h] is added to the embedded tokens. `head` gets the
    /// hidden states [tokens, h] that predict the response tokens, outside any graph, and returns their gradient.
    pub(super) fn through_trunk(
        &self,
        layout: &Layout,
        noise: Option<Tensor<2>>,
        gradients: &mut Gradients,
        head: impl FnOnce(Tensor<2>, &mut Gradients) -> Tensor<2>,
    ) {
        // The embedded tokens are a separate leaf: a graph through the lookup would make a [vocab, h] tensor per pass.
        let positions = layout.packed.positions();
        let trunk = self.trunk_pass(self.trunk_input(layout, noise), layout);
        let rows = layout.predicting(&self.device);
        let d_rows = head(trunk.hidden().select(0, rows), gradients);
        let d_hidden = Tensor::zeros([layout.ids.len(), self.config.hidden_size], &self.device);
        let d_hidden = add_rows(d_hidden, &layout.rows, d_rows);
        let d_embedded = trunk.backward(self, layout, d_hidden, gradients);
        if !self.net.model.embed_tokens.weight.val().is_require_grad() {
            return;
        }
        let ids: Vec<usize> = layout.ids.iter().map(|&id| id as usize).collect();
        let mut scatter = |name: &str, table: &Tensor<2>, rows: &[usize], d: Tensor<2>| {
            let sum = gradients.take(name, table.dims(), &self.device);
            gradients.add(name, add_rows(sum, rows, d));
        };
        if let (Some(table), Some(d_rows)) = (&self.net.model.embed_tokens_per_layer, self.net.row_columns(&d_embedded)) {
            scatter(TABLE, &table.weight.val(), &ids, d_rows * self.layer_rows_scale());
        }
        let d_embedded = self.net.residual_columns(d_embedded);
        if let Some(table) = &self.net.model.embed_positions {
            scatter("model.embed_positions.weight", &table.weight.val(), &positions, d_embedded.clone());
        }
        let d_embedded = match self.config.embedding_scale {
            Some(scale) => d_embedded * scale,
            None => d_embedded,
        };
        scatter(EMBEDDING, &self.net.model.embed_tokens.weight.val(), &ids, d_embedded);
    }

    /// The input of the first block [rows, h]: the embedded tokens plus `noise` [rows, h]. If a family scales its embedding, the
    /// noise is added after scaling, as in transformers 5.
    pub(super) fn trunk_input(&self, layout: &Layout, noise: Option<Tensor<2>>) -> Tensor<2> {
        let embedded = self.embed(&layout.ids, &layout.packed.positions());
        let Some(noise) = noise else { return embedded };
        let rows = self.net.row_columns(&embedded);
        let noisy = self.net.residual_columns(embedded) + noise;
        match rows {
            Some(rows) => Tensor::cat(vec![noisy, rows], 1),
            None => noisy,
        }
    }

    /// The head over the hidden states that predict the response tokens, outside any graph.
    pub(super) fn predicting(&self, layout: &Layout, temperature: f32) -> HeadInput {
        self.head_input(self.predicting_states(layout), temperature)
    }

    /// The hidden states [tokens, h] that predict the response tokens, outside any graph.
    pub(super) fn predicting_states(&self, layout: &Layout) -> Tensor<2> {
        let model = self.frozen();
        let hidden = model.hidden(model.embed(&layout.ids, &layout.packed.positions()), &layout.packed);
        hidden.select(0, layout.predicting(&self.device))
    }

    /// The head over hidden states [n, h], with logits divided by the temperature. Without a softcap, the hidden states are
    /// divided instead, which gives the same logits.
    fn head_input(&self, hidden: Tensor<2>, temperature: f32) -> HeadInput {
        let (w, narrow) = (self.low_precision_head(), |x| cast(x, self.dtype));
        let hidden = self.scaled_for_logits(hidden);
        match self.config.logit_softcap {
            None => HeadInput { hidden: narrow(hidden / temperature), w, divisor: temperature, softcap: None },
            Some(cap) => HeadInput { hidden: narrow(hidden), w, divisor: 1.0, softcap: Some(Softcap { cap, temperature }) },
        }
    }
}

/// The owned values of a [`Head`].
pub(super) struct HeadInput {
    hidden: Tensor<2>,
    w: Tensor<2>,
    /// The divisor that was applied to the hidden states.
    divisor: f32,
    softcap: Option<Softcap>,
}

impl HeadInput {
    /// Restricts the head to the first tokens of the vocabulary.
    fn within(mut self, vocabulary: usize) -> Self {
        if vocabulary < self.w.dims()[0] {
            self.w = self.w.narrow(0, 0, vocabulary);
        }
        self
    }

    pub(super) fn view(&self) -> Head<'_> {
        Head { hidden: &self.hidden, w: &self.w, softcap: self.softcap }
    }
}

/// The comparison of a micro-batch, ready for the head.
struct PreparedComparison<'a> {
    head: Option<(HeadInput, Divergence)>,
    top_k: Option<(&'a TopK, SparseMeasure)>,
    uniform: bool,
    /// The number of tokens of the policy's vocabulary that take part.
    vocabulary: usize,
}

impl<'a> PreparedComparison<'a> {
    fn new(comparison: Option<ComparisonTarget<'a>>, layout: &Layout, temperature: f32, vocabulary: usize) -> Self {
        let nothing = Self { head: None, top_k: None, uniform: false, vocabulary };
        match comparison {
            None => nothing,
            Some(ComparisonTarget::Uniform) => Self { uniform: true, ..nothing },
            Some(ComparisonTarget::TopK { teacher, measure }) => Self { top_k: Some((teacher, measure)), ..nothing },
            Some(ComparisonTarget::Model(model, divergence)) => {
                let vocabulary = vocabulary.min(model.vocabulary());
                let head = model.predicting(layout, temperature).within(vocabulary);
                Self { head: Some((head, divergence)), vocabulary, ..nothing }
            }
        }
    }

    fn compared(&self) -> Option<Compared<'_>> {
        let head = self.head.as_ref().map(|(head, divergence)| Compared::Head(head.view(), *divergence));
        let top_k = self.top_k.map(|(teacher, measure)| Compared::TopK { teacher, measure });
        head.or(top_k).or(self.uniform.then_some(Compared::Uniform))
    }
}

pub(super) const EMBEDDING: &str = "model.embed_tokens.weight";
pub(super) const HEAD: &str = "lm_head.weight";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::causal_lm::Init;
    use crate::families::FAMILIES;
    use crate::noise::EmbeddingNoise;
    use crate::ops::to_host;

    /// Uniform noise between ±s has a root mean square of s/√3. A family's scale of its embedding does not apply to the noise.
    #[test]
    fn noise_is_as_large_at_the_first_block_of_every_family() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
        let folders = ["models", "models-2026"].map(|models| std::fs::read_dir(golden.join(models)).unwrap());
        let mut seen = Vec::new();
        for folder in folders.into_iter().flatten().map(|entry| entry.unwrap().path()) {
            let Ok(model) = CausalLm::load(&folder, Init::Random { seed: 1 }, &Device::flex()) else { continue };
            seen.push(model.hf.json["model_type"].as_str().unwrap().to_owned());
            let (prompt, response) = ([1, 2, 3], [4; 29]);
            let layout = Layout::for_sequences(&[Sequence::new(&prompt, &response)]);
            let (tokens, width) = (prompt.len() + response.len(), model.config.hidden_size);
            let noise = EmbeddingNoise { alpha: 5.0, seed: 1, step: 1, keys: vec![[0, 0]] };
            let rows = [NoisyRows { first: 0, count: tokens - 1, tokens }];
            let noise = noise.draw(&rows, [tokens - 1, width], &model.device);
            let difference = model.trunk_input(&layout, Some(noise)) - model.trunk_input(&layout, None);
            let values = to_host(model.net.residual_columns(difference).flatten::<1>(0, 1));
            let rms = (values.iter().map(|x| f64::from(x * x)).sum::<f64>() / values.len() as f64).sqrt();
            let expected = 5.0 / (3.0 * (tokens * width) as f64).sqrt();
            assert!((rms / expected - 1.0).abs() < 0.1, "{}: {rms}, not {expected}", folder.display());
        }
        for family in FAMILIES {
            assert!(seen.iter().any(|name| name == family.model_type), "no model of {}", family.model_type);
        }
    }
}
