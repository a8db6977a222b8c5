//! One call of the engine: prompts are prefilled, their samples decode together, and each that ends makes room for the next.

use std::collections::VecDeque;

use burn::tensor::Tensor;
use rayon::prelude::*;

use super::running::Running;
use crate::model::CausalLm;
use crate::model::device::is_cpu;
use crate::model::kv_cache::{BlockTable, KvCache, place};
use crate::model::ops::{BLOCK, Packed, index};
use crate::rollout::sampling::sample_on_device;
use crate::rollout::{GenerationProgress, GenerationRequest, Response};

/// The number of sequences that decode together, and of prompt tokens that are prefilled together.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    pub sequences: usize,
    pub prompt_tokens: usize,
}

/// A prompt whose samples are being admitted.
struct Prefilled {
    prompt: usize,
    /// The logits of the first response token.
    logits: Vec<f32>,
    table: BlockTable,
    /// The number of samples admitted.
    admitted: usize,
}

/// The state of one call of the engine.
pub struct Generation<'a> {
    limits: BatchLimits,
    model: CausalLm,
    request: &'a GenerationRequest<'a>,
    /// The number of tokens that the response to each prompt may have.
    budgets: Vec<usize>,
    cache: KvCache,
    /// The prompts that have not been prefilled.
    waiting: VecDeque<usize>,
    ready: VecDeque<Prefilled>,
    running: Vec<Running>,
    responses: Vec<Option<Response>>,
    progress: GenerationProgress,
    /// The logits of a pass; kept between steps to reuse the memory.
    logits: Vec<f32>,
}

impl<'a> Generation<'a> {
    /// Prepares a call. `budgets`: the number of tokens that the response to each prompt may have.
    pub fn new(limits: BatchLimits, model: &CausalLm, request: &'a GenerationRequest, budgets: Vec<usize>) -> Self {
        Self {
            limits,
            model: model.inference(),
            request,
            budgets,
            cache: model.cache(),
            waiting: by_length(request.prompts),
            ready: VecDeque::new(),
            running: Vec::new(),
            responses: vec![None; request.prompts.len() * request.n],
            progress: GenerationProgress { finished: 0, total: request.prompts.len() * request.n, tokens: 0 },
            logits: Vec::new(),
        }
    }

    /// Runs every sample to its end and returns the responses, those of one prompt together.
    pub fn run(mut self) -> Vec<Response> {
        while self.admit() {
            self.step();
        }
        debug_assert_eq!(self.cache.used(), 0, "every block was given back");
        self.responses.into_iter().map(|r| r.expect("every sample was admitted and ran to its end")).collect()
    }

    /// Fills the free places; returns true if any sequence is running.
    fn admit(&mut self) -> bool {
        loop {
            let free = self.limits.sequences - self.running.len();
            if free == 0 || self.ready.is_empty() && self.waiting.is_empty() {
                return !self.running.is_empty();
            }
            if self.ready.is_empty() {
                self.prefill(free.div_ceil(self.request.n));
            }
            let (request, cache, budgets) = (self.request, &mut self.cache, &self.budgets);
            let mut admitted: Vec<(Running, &[f32])> = Vec::new();
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
            let fits = taken.is_empty() || layout.rows() + len <= self.limits.prompt_tokens;
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
            let mut table = BlockTable::new();
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
        let plain = request.sampling.is_plain(vocab) && request.rules.is_none();
        let plain = plain && !self.running.iter().any(|sequence| sequence.forbids(request));
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
