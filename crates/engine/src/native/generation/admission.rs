//! Admission of sequences: new ones are prefilled (identical prompts once), and paused ones resume.

use rayon::prelude::*;

use super::drawing::draw_on_device;
use super::state::{GenerationState, Logits, Prefilled};
use crate::native::running::Running;
use crate::native::waiting::{NewPrompt, PausedSequence};
use burnish_model::kv_cache::BlockTable;
use burnish_model::ops::{BLOCK, Packed, index};
use burnish_rollout::{Response, TurnRequest, TurnScores};

impl GenerationState<'_> {
    /// Fills the free places; returns true if any sequence is running. Resuming sequences come first, because their blocks are
    /// already allocated.
    pub(super) fn admit(&mut self) -> bool {
        loop {
            let mut free = self.limits.sequences.saturating_sub(self.running.len());
            while free > 0
                && let Some((sequence, paused, turn)) = self.waiting.resuming.pop_front()
            {
                self.resume(sequence, paused, turn);
                free -= 1;
            }
            free = free.min((2 * self.limits.sequences).saturating_sub(self.waiting.open));
            if free == 0 || self.ready.is_empty() && self.waiting.new.is_empty() {
                return !self.running.is_empty();
            }
            if self.ready.is_empty() {
                // Turns of one token end at once and make room again, so that this loop may run long.
                self.drop_cancelled();
                self.prefill(free);
            }
            if self.ready.is_empty() {
                continue;
            }
            let (settings, longest) = (self.settings, self.limits.longest);
            let vocab = self.model.config.vocab_size;
            let counts: Vec<usize> = self
                .ready
                .iter()
                .map(|prefilled| {
                    let count = prefilled.beginning.sequences.len().min(free);
                    free -= count;
                    count
                })
                .collect();
            self.reserve(counts.iter().sum());
            let begin = self.ready.iter().zip(&counts);
            let forks = self.cache.fork_all(begin.map(|(p, &count)| (&p.table, p.beginning.ids.len(), count)));
            let (first, mut rows) = (self.running.len(), Vec::new());
            for (Prefilled { beginning, row, scores, .. }, forks) in self.ready.iter_mut().zip(forks) {
                let len = beginning.ids.len();
                rows.extend(std::iter::repeat_n(*row, forks.len()));
                let begun = beginning.sequences.drain(..forks.len()).zip(forks);
                self.running.extend(begun.map(|((sequence, turn), fork)| {
                    let max = turn.sampling.max_tokens.min(longest - len);
                    Running::new(sequence, turn, fork, len, max).with_prompt_scores(scores.as_ref())
                }));
            }
            self.waiting.open += rows.len();
            let mut admitted: Vec<&mut Running> = self.running[first..].iter_mut().collect();
            match &self.first {
                Logits::OnDevice(logits) => {
                    let rows = index(rows.into_iter(), &self.model.device);
                    draw_on_device(&mut admitted, logits.clone().select(0, rows), settings);
                }
                Logits::OnHost(logits) => admitted.into_par_iter().zip(rows).for_each(|(sequence, row)| {
                    let u = sequence.uniform();
                    sequence.draw(&mut logits[row * vocab..][..vocab].to_vec(), settings, u);
                }),
            }
            while self.ready.front().is_some_and(|prefilled| prefilled.beginning.sequences.is_empty())
                && let Some(prefilled) = self.ready.pop_front()
            {
                self.cache.release(prefilled.table);
            }
            if self.ready.is_empty() {
                self.first = Logits::OnHost(Vec::new());
            }
            self.collect(first);
        }
    }

    /// Prefills waiting prompts together: as many as fit into `count` sequences and the token budget, but at least one. Turns
    /// without room for a token end at once, and turns that sample nothing end after the prefill.
    fn prefill(&mut self, count: usize) {
        let (mut layout, mut taken, mut sequences) = (Packed::default(), Vec::new(), 0);
        while let Some(NewPrompt { ids, .. }) = self.waiting.new.front() {
            let (len, longest) = (ids.len(), self.limits.longest);
            let fits = taken.is_empty() || layout.rows() + len <= self.limits.tokens;
            if len <= longest && (sequences >= count || !fits) {
                break;
            }
            let Some(mut beginning) = self.waiting.new.pop_front() else { break };
            let is_too_long = |turn: &TurnRequest| len + turn.sampling.max_tokens.min(1) > longest;
            beginning.remove(is_too_long).iter().for_each(|(sequence, _)| self.turns.ended(*sequence, Response::empty()));
            if beginning.sequences.is_empty() {
                continue;
            }
            layout.push(len, &[]);
            sequences += beginning.sequences.len();
            taken.push(beginning);
        }
        if taken.is_empty() {
            return;
        }
        let prompts = || taken.iter().map(|beginning| &beginning.ids);
        self.reserve(prompts().map(|ids| ids.len().div_ceil(BLOCK)).sum());
        let (mut tables, mut last, mut rows) = (Vec::new(), Vec::new(), 0);
        for ids in prompts() {
            let mut table = BlockTable::new();
            self.cache.extend(&mut table, ids.len());
            rows += ids.len();
            last.push(rows - 1);
            tables.push(table);
        }
        let ids: Vec<u32> = prompts().flat_map(|ids| ids.iter().copied()).collect();
        let hidden = self.model.prefill(&ids, &layout.into(), &tables.iter().collect::<Vec<_>>(), &mut self.cache);
        let scores = self.score_prompts(&hidden, &taken);
        let (mut begun, mut drawn_from) = (Vec::new(), Vec::new());
        for (((mut beginning, table), last), scores) in taken.into_iter().zip(tables).zip(last).zip(scores) {
            for (sequence, turn) in beginning.remove(|turn| turn.sampling.max_tokens == 0) {
                let prompt = scores.clone().filter(|_| turn.scores.prompt.is_some());
                self.turns.scored(sequence, TurnScores { prompt, ..TurnScores::default() });
                self.turns.ended(sequence, Response::empty());
            }
            if beginning.sequences.is_empty() {
                self.cache.release(table);
                continue;
            }
            begun.push(Prefilled { beginning, row: drawn_from.len(), table, scores });
            drawn_from.push(last);
        }
        if !begun.is_empty() {
            self.first = self.logits_of(hidden.select(0, index(drawn_from.into_iter(), &self.model.device)));
            self.ready.extend(begun);
        }
    }

    /// Begins a further turn of a sequence. The cached prefix that the new tokens share is kept; recurrent layers keep it only if
    /// the new tokens continue all of it. The last token is always computed, because the next one is drawn from its hidden state.
    fn resume(&mut self, sequence: usize, paused: PausedSequence, turn: TurnRequest) {
        let room = self.limits.longest.saturating_sub(turn.ids.len());
        if room == 0 {
            self.waiting.paused.insert(sequence, paused);
            self.turns.ended(sequence, Response::empty());
            return;
        }
        let PausedSequence { mut table, ids } = paused;
        let common = ids.iter().zip(turn.ids.iter()).take_while(|(old, new)| old == new).count();
        let cached = self.cache.reusable(&table, common.min(turn.ids.len() - 1));
        if cached < ids.len() {
            // Other sequences may share the blocks that are written from here on.
            self.reserve(1);
            let copy = self.cache.fork(&table, cached, 1).pop().unwrap_or_default();
            self.cache.release(std::mem::replace(&mut table, copy));
        }
        let max = turn.sampling.max_tokens.min(room);
        self.running.push(Running::new(sequence, turn, table, cached, max));
    }
}
