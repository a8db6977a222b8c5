//! Prefill: the keys and values of a prompt, computed once for all its samples.

use std::collections::VecDeque;

use burn::tensor::{Device, Tensor};

use crate::model::CausalLm;
use crate::model::causal_lm::{KvCache, index};
use crate::model::ops::to_host;

/// Tokens of one prefill pass.
pub const TOKEN_BUDGET: usize = 4096;

/// A prompt whose samples are being admitted.
pub struct Prefilled {
    pub index: usize,
    /// Logits of the first response token.
    pub logits: Vec<f32>,
    len: usize,
    /// Per layer keys and values [1, len, kv heads, d].
    layers: Vec<(Tensor<4>, Tensor<4>)>,
    admitted: usize,
}

impl Prefilled {
    /// The next sample of this prompt that has not been admitted.
    pub fn next_sample(&mut self, n: usize) -> Option<usize> {
        (self.admitted < n).then(|| {
            self.admitted += 1;
            self.admitted - 1
        })
    }

    pub fn exhausted(&self, n: usize) -> bool {
        self.admitted >= n
    }

    /// Copies the prompt's keys and values into slots of the cache.
    pub fn write(&self, cache: &mut KvCache, slots: &[usize], device: &Device) {
        if slots.is_empty() {
            return;
        }
        let capacity = cache.capacity;
        let places = slots.iter().flat_map(|&slot| (0..self.len).map(move |p| slot * capacity + p)).collect::<Vec<_>>();
        let places = index(places.into_iter(), device);
        for (layer, (k, v)) in self.layers.iter().enumerate() {
            let copies = |x: &Tensor<4>| x.clone().repeat_dim(0, slots.len());
            cache.write(layer, &places, copies(k), copies(v));
        }
    }
}

/// Takes up to `count` prompts of one length from the front of `waiting` and runs them together. Only equal lengths share a
/// pass: padding would change how sums are cut, and with that the last bits of a response.
pub fn run(model: &CausalLm, prompts: &[&[u32]], waiting: &mut VecDeque<usize>, count: usize) -> Vec<Prefilled> {
    let Some(&first) = waiting.front() else { return Vec::new() };
    let len = prompts[first].len();
    let most = count.min((TOKEN_BUDGET / len).max(1));
    let batch = waiting.iter().take(most).take_while(|&&i| prompts[i].len() == len).count();
    let taken: Vec<usize> = waiting.drain(..batch).collect();
    let rows = super::stable_rows(&model.config);
    let ids: Vec<u32> = taken.iter().cycle().take(batch.max(rows.div_ceil(len))).flat_map(|&i| prompts[i]).copied().collect();
    let mut layers = Vec::with_capacity(model.config.num_hidden_layers);
    let hidden = model.hidden(model.embed(&ids), ids.len() / len, len, &mut |_, k, v| layers.push((k.clone(), v.clone())));
    let last = index((0..batch).cycle().take(batch.max(rows)).map(|i| i * len + len - 1), &model.device);
    let logits = to_host(model.logits(hidden.select(0, last)));
    let row = |x: &Tensor<4>, i: usize| x.clone().narrow(0, i, 1);
    let prefilled = logits.chunks_exact(model.config.vocab_size).take(batch).enumerate().map(|(i, logits)| Prefilled {
        index: taken[i],
        logits: logits.to_vec(),
        len,
        layers: layers.iter().map(|(k, v)| (row(k, i), row(v, i))).collect(),
        admitted: 0,
    });
    prefilled.collect()
}
