//! The native engine: samples from the actor itself, with its own kernels and weights, nothing copied.
//!
//! A prompt is prefilled once and its keys and values are handed to each of its n samples. A fixed number of slots decodes
//! together; a sequence that finishes leaves, and the next waiting sample takes its slot.

mod prefill;

pub use self::prefill::TOKEN_BUDGET as PREFILL_TOKENS;

use std::collections::VecDeque;

use anyhow::{Result, bail};
use rayon::prelude::*;

use self::prefill::Prefilled;
use super::sampling::sample;
use super::{Engine, Finish, Request, Response};
use crate::model::causal_lm::KvCache;
use crate::model::ops::to_host;
use crate::model::{CausalLm, DecoderConfig};
use crate::util::rng::Stream;

/// Settings of the native engine.
pub struct NativeEngine {
    /// Sequences that decode together (`rollout.max_num_seqs`).
    pub max_num_seqs: usize,
}

/// A sequence in a slot.
struct Running {
    /// Where its response goes: prompt · n + sample.
    output: usize,
    slot: usize,
    /// Position of its last token, which the next step feeds.
    position: usize,
    stream: Stream,
    ids: Vec<u32>,
    log_probs: Vec<f32>,
}

impl Running {
    /// Draws the next token; says whether the response is complete.
    fn draw(&mut self, logits: &mut [f32], request: &Request) -> Option<Finish> {
        let (token, log_prob) = sample(logits, &request.sampling, || self.stream.uniform());
        self.ids.push(token);
        self.log_probs.push(log_prob);
        if !request.sampling.ignore_eos && request.eos.contains(&token) {
            return Some(Finish::Stop);
        }
        (self.ids.len() >= request.sampling.max_tokens).then_some(Finish::Length)
    }
}

impl Engine for NativeEngine {
    fn generate(&mut self, model: &CausalLm, request: &Request) -> Result<Vec<Response>> {
        if request.sampling.max_tokens == 0 || self.max_num_seqs == 0 {
            bail!("generation needs max_tokens and max_num_seqs of at least 1");
        }
        let longest = request.prompts.iter().map(|p| p.len()).max().unwrap_or(0);
        if request.prompts.iter().any(|p| p.is_empty()) {
            bail!("a prompt has no tokens");
        }
        let limit = model.config.max_position_embeddings;
        if longest + request.sampling.max_tokens > limit {
            bail!(
                "a prompt of {longest} tokens and a response of up to {} exceed the model's max_position_embeddings {limit}; \
                 lower data.max_prompt_length or data.max_response_length",
                request.sampling.max_tokens
            );
        }
        let model = &model.frozen();
        let total = request.prompts.len() * request.n;
        let slots = self.max_num_seqs.min(total);
        let mut cache = KvCache::new(&model.config, slots, longest + request.sampling.max_tokens, &model.device);
        let mut free: Vec<usize> = (0..slots).rev().collect();
        let mut waiting: VecDeque<usize> = by_length(request.prompts).into();
        let mut ready: VecDeque<Prefilled> = VecDeque::new();
        let mut running: Vec<Running> = Vec::with_capacity(slots);
        let mut responses: Vec<Option<Response>> = vec![None; total];

        loop {
            // Fill the free slots.
            while !(free.is_empty() || ready.is_empty() && waiting.is_empty()) {
                if ready.is_empty() {
                    ready.extend(prefill::run(model, request.prompts, &mut waiting, free.len().div_ceil(request.n)));
                }
                let Some(prompt) = ready.front_mut() else { break };
                let mut admitted = Vec::new();
                while let Some(&slot) = free.last()
                    && let Some(sample) = prompt.next_sample(request.n)
                {
                    let mut sequence = Running {
                        output: prompt.index * request.n + sample,
                        slot,
                        position: request.prompts[prompt.index].len(),
                        stream: (request.stream)(prompt.index, sample),
                        ids: Vec::new(),
                        log_probs: Vec::new(),
                    };
                    match sequence.draw(&mut prompt.logits.clone(), request) {
                        Some(finish) => finish_response(&mut responses, sequence, finish),
                        None => {
                            free.pop();
                            admitted.push(slot);
                            running.push(sequence);
                        }
                    }
                }
                prompt.write(&mut cache, &admitted, &model.device);
                if prompt.exhausted(request.n) {
                    ready.pop_front();
                }
            }
            if running.is_empty() {
                break;
            }

            // One token for every running sequence.
            let mut logits = step(model, &running, &mut cache);
            let finished: Vec<Option<Finish>> =
                running.par_iter_mut().zip(&mut logits).map(|(sequence, logits)| sequence.draw(logits, request)).collect();
            let mut still = Vec::with_capacity(running.len());
            for (mut sequence, finish) in running.drain(..).zip(finished) {
                sequence.position += 1;
                match finish {
                    Some(finish) => {
                        free.push(sequence.slot);
                        finish_response(&mut responses, sequence, finish);
                    }
                    None => still.push(sequence),
                }
            }
            running = still;
        }
        Ok(responses.into_iter().map(|r| r.expect("every sample was admitted and ran to its end")).collect())
    }
}

/// Logits of the next token of each running sequence.
fn step(model: &CausalLm, running: &[Running], cache: &mut KvCache) -> Vec<Vec<f32>> {
    let rows = || running.iter().cycle().take(running.len().max(stable_rows(&model.config)));
    let ids: Vec<u32> = rows().map(|s| *s.ids.last().expect("admitted with its first token")).collect();
    let slots: Vec<usize> = rows().map(|s| s.slot).collect();
    let positions: Vec<usize> = rows().map(|s| s.position).collect();
    let hidden = model.decode(&ids, &slots, &positions, cache);
    let logits = to_host(model.logits(hidden));
    logits.chunks_exact(model.config.vocab_size).take(running.len()).map(<[f32]>::to_vec).collect()
}

fn finish_response(responses: &mut [Option<Response>], sequence: Running, finish: Finish) {
    responses[sequence.output] = Some(Response { ids: sequence.ids, log_probs: sequence.log_probs, finish });
}

/// Rows below which the matrix library takes kernels for small products, whose sums round differently: with fewer sequences,
/// rows are repeated, so that a response keeps its bits whatever runs beside it. (gemm 0.19: products of at most 256 elements,
/// single rows, and inner dimensions above 512 in products of at most 64 by 64.)
fn stable_rows(config: &DecoderConfig) -> usize {
    let narrowest = (config.num_key_value_heads * config.head_dim).min(config.vocab_size).min(config.hidden_size);
    let deepest = config.hidden_size.max(config.intermediate_size).max(config.num_attention_heads * config.head_dim);
    if narrowest <= 64 && deepest > 512 { 65 } else { (256 / narrowest + 1).max(2) }
}

/// Prompt indices, longest first, so that equal lengths are prefilled together and the last to finish start early.
fn by_length(prompts: &[&[u32]]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..prompts.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(prompts[i].len()));
    order
}
