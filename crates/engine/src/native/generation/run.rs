//! The loop of a call: admit sequences, run a step, return the turns that ended.

use super::state::GenerationState;
use crate::native::lookahead::Lookahead;
use crate::native::running::Running;
use crate::native::waiting::PausedSequence;
use burnish_model::ops::index;
use burnish_rollout::{Arrival, Response};

impl GenerationState<'_> {
    /// Runs until no more turns will arrive.
    pub(crate) fn run(mut self) {
        let (mut more, mut is_idle) = (true, true);
        while more || !is_idle {
            if more {
                match self.turns.arrived(is_idle) {
                    Some(arrivals) => arrivals.into_iter().for_each(|arrival| self.take_in(arrival)),
                    None => more = false,
                }
            }
            self.drop_cancelled();
            is_idle = !self.admit();
            self.turns.running(self.running.len());
            if !is_idle {
                self.step();
            }
        }
        self.end_ahead();
        for (_, paused) in std::mem::take(&mut self.waiting.paused) {
            self.cache.release(paused.table);
        }
        debug_assert_eq!((self.cache.used(), self.cache.used_states()), (0, 0), "every block and state was given back");
    }

    /// Ends the cancelled turns, including those that wait for admission.
    pub(super) fn drop_cancelled(&mut self) {
        for sequence in self.waiting.cancelled() {
            self.turns.ended(sequence, Response::empty());
        }
        self.running.iter_mut().for_each(Running::end_if_cancelled);
        if self.running.iter().any(|sequence| sequence.finish.is_some()) {
            self.collect(0);
        }
    }

    fn take_in(&mut self, arrival: Arrival) {
        self.progress.total += usize::from(arrival.turn.is_some());
        if let Some(table) = self.waiting.take_in(arrival) {
            self.cache.release(table);
        }
    }

    /// Computes the next token of every running sequence, ahead of the host if no earlier token has to be read.
    fn step(&mut self) {
        if self.can_run_ahead && self.running.iter().all(|sequence| sequence.can_run_ahead(self.settings)) {
            self.step_ahead();
        } else {
            self.pause_ahead();
            self.step_here();
        }
    }

    /// Makes room for `blocks` further blocks of the cache. A recording keeps the memory that a growing cache frees, so it is
    /// dropped first.
    pub(super) fn reserve(&mut self, blocks: usize) {
        if blocks > self.cache.free()
            && let Some(ahead) = &mut self.ahead
        {
            ahead.forget();
        }
        self.cache.reserve(blocks);
    }

    /// Starts a step and reads the previous one.
    fn step_ahead(&mut self) {
        if self.ahead.as_mut().is_some_and(|ahead| !ahead.fits(&self.running)) {
            self.end_ahead();
        }
        if self.running.is_empty() {
            return;
        }
        self.reserve(self.running.iter().filter(|sequence| sequence.has_room()).map(|sequence| sequence.lacks(1)).sum());
        if self.ahead.is_none() {
            self.ahead = Lookahead::new(&self.model, &mut self.cache, &self.running, self.limits.records);
            self.can_run_ahead = self.ahead.is_some();
        }
        let Some(ahead) = &mut self.ahead else { return };
        ahead.step(&mut self.cache, &mut self.running, self.settings);
        self.collect(0);
    }

    /// Reads the tokens that were drawn ahead, and empties the rows of these steps.
    fn pause_ahead(&mut self) {
        let Some(ahead) = &mut self.ahead else { return };
        ahead.pause(&mut self.running, self.settings);
        self.collect(0);
    }

    /// Ends the steps that run ahead.
    fn end_ahead(&mut self) {
        self.pause_ahead();
        let Some(ahead) = self.ahead.take() else { return };
        self.limits.records &= ahead.records();
        self.cache.release(ahead.close());
    }

    /// Computes the next token of every running sequence, or several tokens of one that has just resumed. Draws the next token of
    /// the sequences whose tokens are all computed.
    fn step_here(&mut self) {
        if self.running.is_empty() {
            return;
        }
        // At least one row for each sequence; the rest of the budget goes to the first ones that lack more.
        let mut budget = self.limits.tokens.saturating_sub(self.running.len());
        let (mut ids, mut positions, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for sequence in &self.running {
            let max = sequence.behind().min(1 + budget);
            budget -= max - 1;
            rows.push(max);
        }
        self.reserve(self.running.iter().zip(&rows).map(|(sequence, &max)| sequence.lacks(max)).sum());
        for (sequence, &max) in self.running.iter_mut().zip(&rows) {
            for (id, position) in sequence.take(max) {
                ids.push(id);
                positions.push(position);
            }
            self.cache.extend(&mut sequence.table, positions[positions.len() - 1] + 1);
        }
        let tables = self.running.iter().zip(&rows).flat_map(|(s, &rows)| std::iter::repeat_n(&s.table, rows));
        let hidden = self.model.decode(&ids, &positions, &tables.collect::<Vec<_>>(), &mut self.cache);
        let ends = rows.iter().scan(0, |end, rows| {
            *end += rows;
            Some(*end - 1)
        });
        let last: Vec<usize> = ends.zip(&self.running).filter(|(_, s)| s.behind() == 0).map(|(last, _)| last).collect();
        if last.is_empty() {
            return;
        }
        let hidden = match last.len() == ids.len() {
            true => hidden,
            false => hidden.select(0, index(last.into_iter(), &self.model.device)),
        };
        self.draw(hidden);
        self.collect(0);
    }

    /// Returns the turns that ended among the sequences from `first`, and pauses these sequences.
    pub(super) fn collect(&mut self, first: usize) {
        let (drawn, before) = (self.running.split_off(first), self.progress.tokens);
        for mut sequence in drawn {
            if std::mem::take(&mut sequence.has_new_token)
                && let Some(token) = sequence.last()
            {
                self.progress.tokens += 1;
                if let Some(tell) = self.settings.token {
                    tell(sequence.sequence, token);
                }
            }
            let Some(finish) = sequence.finish else {
                self.running.push(sequence);
                continue;
            };
            if let Some((ahead, row)) = self.ahead.as_mut().zip(sequence.ahead_row) {
                ahead.leave(row);
            }
            let (table, ids) = sequence.take_cached();
            self.waiting.paused.insert(sequence.sequence, PausedSequence { table, ids });
            self.progress.finished += 1;
            if let Some(scores) = sequence.take_scores() {
                self.turns.scored(sequence.sequence, scores);
            }
            self.turns.ended(sequence.sequence, sequence.response(finish));
        }
        if let Some(tell) = self.settings.progress.filter(|_| self.progress.tokens > before) {
            tell(self.progress);
        }
    }
}
