//! The native engine: samples from the actor itself, with its own kernels and weights, and copies nothing.
//!
//! Batching is continuous: sequences decode together, one that ends leaves, and the next waiting sample takes its place. A prompt
//! is prefilled once; its samples share the blocks of the key/value cache that it fills.
//!
//! On the CPU, in float32, no number of a sequence depends on its neighbours: the order in which a row is summed does not.

mod running;

use std::collections::VecDeque;

use anyhow::{Result, bail};
use burn::tensor::Tensor;
use rayon::prelude::*;

use self::running::Running;
use super::sampling::sample_on_device;
use super::{Engine, Progress, Request, Response};
use crate::model::device::is_cpu;
use crate::model::kv_cache::{KvCache, Table, place};
use crate::model::ops::{BLOCK, Packed, index};
use crate::model::{CausalLm, DecoderConfig};

/// Settings of the native engine.
#[derive(Clone, Copy, Debug)]
pub struct NativeEngine {
    /// The number of sequences that decode together (`rollout.max_num_seqs`).
    pub max_num_seqs: usize,
    /// The number of prompt tokens that are prefilled together (`rollout.max_num_batched_tokens`); a longer prompt is prefilled
    /// alone.
    pub max_num_batched_tokens: usize,
    /// The largest length of a prompt and its response together (`rollout.max_model_len`); the model's limit if `None`.
    pub max_model_len: Option<usize>,
}

impl NativeEngine {
    /// The number of tokens that a prompt and its response may have together.
    fn longest(&self, model: &DecoderConfig) -> Result<usize> {
        let limit = model.max_position_embeddings;
        match self.max_model_len {
            Some(longest) if longest > limit => {
                bail!("rollout.max_model_len is {longest}, the model's max_position_embeddings {limit}")
            }
            longest => Ok(longest.unwrap_or(limit)),
        }
    }

    /// The number of tokens that the response to each prompt may have.
    fn budgets(&self, model: &DecoderConfig, request: &Request) -> Result<Vec<usize>> {
        let (longest, wanted) = (self.longest(model)?, request.sampling.max_tokens);
        if wanted == 0 || self.max_num_seqs == 0 || request.n == 0 {
            bail!("generation needs max_tokens, max_num_seqs and n of at least 1");
        }
        let budget = |prompt: &&[u32]| match (longest.saturating_sub(prompt.len()), self.max_model_len) {
            _ if prompt.is_empty() => bail!("a prompt has no tokens"),
            (0, Some(_)) => {
                bail!("a prompt of {} tokens leaves no room for a response in rollout.max_model_len={longest}", prompt.len())
            }
            (room, None) if room < wanted => bail!(
                "a prompt of {} tokens and a response of up to {wanted} exceed the model's max_position_embeddings {longest}; \
                 lower data.max_prompt_length or data.max_response_length, or set rollout.max_model_len",
                prompt.len()
            ),
            (room, _) => Ok(room.min(wanted)),
        };
        request.prompts.iter().map(budget).collect()
    }
}

impl Engine for NativeEngine {
    fn generate(&mut self, model: &CausalLm, request: &Request) -> Result<Vec<Response>> {
        let mut generation = Generation {
            engine: *self,
            model: model.inference(),
            request,
            budgets: self.budgets(&model.config, request)?,
            cache: model.cache(),
            waiting: by_length(request.prompts),
            ready: VecDeque::new(),
            running: Vec::new(),
            responses: vec![None; request.prompts.len() * request.n],
            progress: Progress { finished: 0, total: request.prompts.len() * request.n, tokens: 0 },
            logits: Vec::new(),
        };
        while generation.admit() {
            generation.step();
        }
        debug_assert_eq!(generation.cache.used(), 0, "every block was given back");
        Ok(generation.responses.into_iter().map(|r| r.expect("every sample was admitted and ran to its end")).collect())
    }
}

/// A prompt whose samples are being admitted.
struct Prefilled {
    prompt: usize,
    /// The logits of the first response token.
    logits: Vec<f32>,
    table: Table,
    /// The number of samples admitted.
    admitted: usize,
}

/// The state of one call of the engine.
struct Generation<'a> {
    engine: NativeEngine,
    model: CausalLm,
    request: &'a Request<'a>,
    /// The number of tokens that the response to each prompt may have.
    budgets: Vec<usize>,
    cache: KvCache,
    /// The prompts that have not been prefilled.
    waiting: VecDeque<usize>,
    ready: VecDeque<Prefilled>,
    running: Vec<Running>,
    responses: Vec<Option<Response>>,
    progress: Progress,
    /// The logits of a pass; kept between steps to reuse the memory.
    logits: Vec<f32>,
}

impl Generation<'_> {
    /// Fills the free places; returns true if any sequence is running.
    fn admit(&mut self) -> bool {
        loop {
            let free = self.engine.max_num_seqs - self.running.len();
            if free == 0 || self.ready.is_empty() && self.waiting.is_empty() {
                return !self.running.is_empty();
            }
            if self.ready.is_empty() {
                self.prefill(free.div_ceil(self.request.n));
            }
            let (request, cache, budgets) = (self.request, &mut self.cache, &self.budgets);
            let mut admitted: Vec<(Running, &[f32])> = Vec::with_capacity(free);
            for Prefilled { prompt, logits, table, admitted: done } in &mut self.ready {
                let samples = *done..request.n.min(*done + free - admitted.len());
                *done = samples.end;
                let len = request.prompts[*prompt].len();
                let forks = cache.fork(table, len, samples.len());
                admitted.extend(
                    samples.zip(forks).map(|(sample, fork)| {
                        (Running::new(*prompt, sample, budgets[*prompt], fork, request), logits.as_slice())
                    }),
                );
            }
            let first = self.running.len();
            let drawn = admitted.into_par_iter().map(|(mut sequence, logits)| {
                sequence.draw(&mut logits.to_vec(), request);
                sequence
            });
            self.running.par_extend(drawn);
            while self.ready.front().is_some_and(|prompt| prompt.admitted == request.n)
                && let Some(prompt) = self.ready.pop_front()
            {
                self.cache.release(prompt.table);
            }
            self.collect(first);
        }
    }

    /// Prefills up to `count` waiting prompts together: as many as the budget of tokens allows, but at least one.
    fn prefill(&mut self, count: usize) {
        let (mut layout, mut taken) = (Packed::default(), Vec::new());
        while let Some(&prompt) = self.waiting.front() {
            let len = self.request.prompts[prompt].len();
            let fits = taken.is_empty() || layout.rows() + len <= self.engine.max_num_batched_tokens;
            if taken.len() == count || !fits {
                break;
            }
            layout.push(len, &[]);
            self.waiting.pop_front();
            taken.push(prompt);
        }
        let prompts = || taken.iter().map(|&prompt| self.request.prompts[prompt]);
        self.cache.reserve(prompts().map(|ids| ids.len().div_ceil(BLOCK)).sum());
        let (mut tables, mut places, mut last) = (Vec::new(), Vec::new(), Vec::new());
        for ids in prompts() {
            let mut table = Table::new();
            self.cache.extend(&mut table, ids.len());
            places.extend((0..ids.len()).map(|position| place(&table, position)));
            last.push(places.len() - 1);
            tables.push(table);
        }
        let ids: Vec<u32> = prompts().flatten().copied().collect();
        let hidden = self.model.prefill(&ids, &layout.into(), &places.into(), &mut self.cache);
        let last = hidden.select(0, index(last.into_iter(), &self.model.device));
        self.model.logits(last, &mut self.logits);
        let rows = self.logits.chunks_exact(self.model.config.vocab_size);
        for ((prompt, table), logits) in taken.into_iter().zip(tables).zip(rows) {
            self.ready.push_back(Prefilled { prompt, logits: logits.to_vec(), table, admitted: 0 });
        }
    }

    /// Decodes one token of every running sequence.
    fn step(&mut self) {
        for sequence in &mut self.running {
            let len = sequence.position() + 1;
            self.cache.extend(&mut sequence.table, len);
        }
        let ids: Vec<u32> = self.running.iter().map(Running::last).collect();
        let positions: Vec<usize> = self.running.iter().map(Running::position).collect();
        let tables: Vec<&[usize]> = self.running.iter().map(|s| s.table.as_slice()).collect();
        let hidden = self.model.decode(&ids, &positions, &tables, &mut self.cache);
        self.draw(hidden);
        self.collect(0);
    }

    /// Draws the next token of every running sequence from its hidden state [rows, h].
    fn draw(&mut self, hidden: Tensor<2>) {
        let (request, vocab) = (self.request, self.model.config.vocab_size);
        let plain = request.sampling.is_plain(vocab) && !self.running.iter().any(|sequence| sequence.forbids(request));
        // Copying all logits from a GPU would take longer than computing them.
        if plain && !is_cpu(&self.model.device) {
            let u: Vec<f64> = self.running.iter_mut().map(Running::uniform).collect();
            let drawn = sample_on_device(self.model.logits_on_device(hidden), &request.sampling, &u);
            let rows = self.running.iter_mut().zip(drawn);
            rows.for_each(|(sequence, drawn)| sequence.push(drawn, request));
            return;
        }
        self.model.logits(hidden, &mut self.logits);
        let rows = self.running.par_iter_mut().zip(self.logits.par_chunks_exact_mut(vocab));
        rows.for_each(|(sequence, logits)| sequence.draw(logits, request));
    }

    /// Removes the sequences that ended, looking at those from `first`, which have each drawn a token.
    fn collect(&mut self, first: usize) {
        self.progress.tokens += self.running.len() - first;
        let drawn = self.running.split_off(first);
        for mut sequence in drawn {
            let Some(finish) = sequence.finish else {
                self.running.push(sequence);
                continue;
            };
            self.cache.release(std::mem::take(&mut sequence.table));
            self.progress.finished += 1;
            let output = sequence.output;
            let response = sequence.response(finish);
            if let Some(tell) = self.request.finished {
                tell(output, &response);
            }
            self.responses[output] = Some(response);
        }
        if let Some(tell) = self.request.progress {
            tell(self.progress);
        }
    }
}

/// Prompt indices, longest first, so that the sequences that finish last start early.
fn by_length(prompts: &[&[u32]]) -> VecDeque<usize> {
    let mut order: Vec<usize> = (0..prompts.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(prompts[i].len()));
    order.into()
}
