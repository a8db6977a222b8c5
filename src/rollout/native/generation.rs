//! One call of the engine: new sequences are prefilled, all decode together, and each whose turn ends makes room for the next. It keeps its
//! blocks of the cache until it goes on or is over.

use std::collections::VecDeque;

use burn::tensor::Tensor;
use rayon::prelude::*;

use super::ahead::Ahead;
use super::running::Running;
use super::waiting::{Beginning, Parked, Waiting};
use crate::model::CausalLm;
use crate::model::kv_cache::{BlockTable, KvCache, place};
use crate::model::ops::{BLOCK, Packed, index};
use crate::rollout::sampling::{Row, draws_on_device, sample_on_device};
use crate::rollout::{Arrival, Finish, GenerationProgress, Response, TurnRequest, TurnSettings, Turns};

/// The bounds of a call.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// The number of sequences that decode together. As many again may be between two turns.
    pub sequences: usize,
    /// The number of tokens of prompts, and of what is put between turns, that are worked on together.
    pub tokens: usize,
    /// The number of tokens of a sequence.
    pub longest: usize,
    /// True if decode steps are recorded and replayed where a device can do so.
    pub records: bool,
}

/// A beginning whose sequences are being admitted.
struct Prefilled {
    beginning: Beginning,
    /// The row of its logits.
    row: usize,
    table: BlockTable,
}

/// Logits [rows, vocabulary] where tokens are drawn from them.
// One value per pass: its size does not matter.
#[allow(clippy::large_enum_variant)]
enum Logits {
    OnHost(Vec<f32>),
    OnDevice(Tensor<2>),
}

/// The state of one call of the engine.
pub struct Generation<'a> {
    limits: BatchLimits,
    model: CausalLm,
    settings: &'a TurnSettings<'a>,
    turns: &'a dyn Turns,
    cache: KvCache,
    waiting: Waiting,
    ready: VecDeque<Prefilled>,
    /// The logits of the first tokens of those.
    first: Logits,
    running: Vec<Running>,
    /// The steps that run ahead of the host, while there are such.
    ahead: Option<Ahead>,
    /// False where steps cannot run ahead.
    can_run_ahead: bool,
    progress: GenerationProgress,
    /// The memory of the logits of a pass, for the next.
    logits: Vec<f32>,
}

impl<'a> Generation<'a> {
    /// Prepares a call.
    pub fn new(limits: BatchLimits, model: &CausalLm, settings: &'a TurnSettings<'a>, turns: &'a dyn Turns) -> Self {
        Self {
            limits,
            model: model.inference(),
            settings,
            turns,
            cache: model.cache(),
            waiting: Waiting::default(),
            ready: VecDeque::new(),
            first: Logits::OnHost(Vec::new()),
            running: Vec::new(),
            ahead: None,
            can_run_ahead: draws_on_device(&model.device, model.config.vocab_size),
            progress: GenerationProgress { finished: 0, total: 0, tokens: 0 },
            logits: Vec::new(),
        }
    }

    /// Runs until no turn will come any more.
    pub fn run(mut self) {
        let (mut more, mut is_idle) = (true, true);
        while more || !is_idle {
            if more {
                match self.turns.arrived(is_idle) {
                    Some(arrivals) => arrivals.into_iter().for_each(|arrival| self.take_in(arrival)),
                    None => more = false,
                }
            }
            is_idle = !self.admit();
            if !is_idle {
                self.step();
            }
        }
        self.end_ahead();
        for (_, parked) in std::mem::take(&mut self.waiting.parked) {
            self.cache.release(parked.table);
        }
        debug_assert_eq!(self.cache.used(), 0, "every block was given back");
    }

    fn take_in(&mut self, arrival: Arrival) {
        self.progress.total += usize::from(arrival.turn.is_some());
        if let Some(table) = self.waiting.take_in(arrival) {
            self.cache.release(table);
        }
    }

    /// Fills the free places; returns true if any sequence is running. Those that go on come first: their blocks are taken already.
    fn admit(&mut self) -> bool {
        loop {
            let mut free = self.limits.sequences.saturating_sub(self.running.len());
            while free > 0
                && let Some((sequence, parked, turn)) = self.waiting.going_on.pop_front()
            {
                self.go_on(sequence, parked, turn);
                free -= 1;
            }
            free = free.min((2 * self.limits.sequences).saturating_sub(self.waiting.open));
            if free == 0 || self.ready.is_empty() && self.waiting.new.is_empty() {
                return !self.running.is_empty();
            }
            if self.ready.is_empty() {
                self.prefill(free);
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
            let begin = self.ready.iter().zip(&counts);
            let forks = self.cache.fork_all(begin.map(|(p, &count)| (p.table.as_slice(), p.beginning.ids.len(), count)));
            let (first, mut rows) = (self.running.len(), Vec::new());
            for (Prefilled { beginning, row, .. }, forks) in self.ready.iter_mut().zip(forks) {
                let len = beginning.ids.len();
                rows.extend(std::iter::repeat_n(*row, forks.len()));
                let begun = beginning.sequences.drain(..forks.len()).zip(forks);
                self.running.extend(begun.map(|((sequence, turn), fork)| {
                    let most = turn.sampling.max_tokens.min(longest - len);
                    Running::new(sequence, turn, fork, len, most)
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
            self.collect(first);
        }
    }

    /// Prefills waiting beginnings together: as many as give `count` sequences and the budget of tokens allows, but at least one. Those that
    /// leave no room for a token end at once.
    fn prefill(&mut self, count: usize) {
        let (mut layout, mut taken, mut sequences) = (Packed::default(), Vec::new(), 0);
        while let Some(Beginning { ids, .. }) = self.waiting.new.front() {
            let len = ids.len();
            let fits = taken.is_empty() || layout.rows() + len <= self.limits.tokens;
            if len < self.limits.longest && (sequences >= count || !fits) {
                break;
            }
            let Some(beginning) = self.waiting.new.pop_front() else { break };
            if len >= self.limits.longest {
                beginning.sequences.iter().for_each(|(sequence, _)| self.turns.ended(*sequence, Response::none()));
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
        self.cache.reserve(prompts().map(|ids| ids.len().div_ceil(BLOCK)).sum());
        let (mut tables, mut places, mut last) = (Vec::new(), Vec::new(), Vec::new());
        for ids in prompts() {
            let mut table = BlockTable::new();
            self.cache.extend(&mut table, ids.len());
            places.extend((0..ids.len()).map(|position| place(&table, position)));
            last.push(places.len() - 1);
            tables.push(table);
        }
        let ids: Vec<u32> = prompts().flat_map(|ids| ids.iter().copied()).collect();
        let hidden = self.model.prefill(&ids, &layout.into(), &places.into(), &mut self.cache);
        let last = hidden.select(0, index(last.into_iter(), &self.model.device));
        self.first = self.logits_of(last);
        let begun = taken.into_iter().zip(tables).enumerate();
        self.ready.extend(begun.map(|(row, (beginning, table))| Prefilled { beginning, row, table }));
    }

    /// The logits of hidden states [rows, h], where tokens can be drawn from them: all logits copied from a GPU would take longer than
    /// they take to compute.
    fn logits_of(&mut self, hidden: Tensor<2>) -> Logits {
        let draws_there = draws_on_device(&self.model.device, self.model.config.vocab_size);
        if draws_there && self.settings.rules.is_none_or(|rules| rules.allowed.is_none()) {
            return Logits::OnDevice(self.model.logits_on_device(hidden));
        }
        let mut logits = std::mem::take(&mut self.logits);
        self.model.logits(hidden, &mut logits);
        Logits::OnHost(logits)
    }

    /// Begins a further turn of a sequence. Of what the cache has, the part stays that the new tokens begin with; the last token is worked on
    /// in any case, because the next is drawn from its hidden state.
    fn go_on(&mut self, sequence: usize, parked: Parked, turn: TurnRequest) {
        let room = self.limits.longest.saturating_sub(turn.ids.len());
        if room == 0 {
            self.waiting.parked.insert(sequence, parked);
            self.turns.ended(sequence, Response::none());
            return;
        }
        let Parked { mut table, ids } = parked;
        let common = ids.iter().zip(turn.ids.iter()).take_while(|(old, new)| old == new).count();
        let kept = common.min(turn.ids.len() - 1);
        if kept < ids.len() {
            // Others may share the blocks that are written to from here on.
            let own = self.cache.fork(&table, kept, 1).pop().unwrap_or_default();
            self.cache.release(std::mem::replace(&mut table, own));
        }
        let most = turn.sampling.max_tokens.min(room);
        self.running.push(Running::new(sequence, turn, table, kept, most));
    }

    /// Works on the next token of every running sequence: ahead of the host where nothing has to be known of the tokens before.
    fn step(&mut self) {
        if self.can_run_ahead && self.running.iter().all(|sequence| sequence.can_run_ahead(self.settings)) {
            self.step_ahead();
        } else {
            self.end_ahead();
            self.step_here();
        }
    }

    /// Starts a step and reads the one before.
    fn step_ahead(&mut self) {
        if self.ahead.as_mut().is_some_and(|ahead| !ahead.fits(&self.running)) {
            self.end_ahead();
        }
        if self.ahead.is_none() {
            self.ahead = Ahead::new(&self.model, &mut self.cache, &self.running, self.limits.records);
            self.can_run_ahead = self.ahead.is_some();
        }
        let Some(ahead) = &mut self.ahead else { return };
        ahead.step(&mut self.cache, &mut self.running, self.settings);
        self.collect(0);
    }

    /// Reads what was drawn ahead, and ends the steps that ran so.
    fn end_ahead(&mut self) {
        let Some(mut ahead) = self.ahead.take() else { return };
        ahead.land(&mut self.running, self.settings);
        self.cache.release(ahead.close(&mut self.running));
        self.collect(0);
    }

    /// Works on the next token of every running sequence, or on several of one that has just gone on, and draws the next of those that
    /// lack none.
    fn step_here(&mut self) {
        if self.running.is_empty() {
            return;
        }
        // One row for each at least; what is left of the budget goes to the first that lack more.
        let mut budget = self.limits.tokens.saturating_sub(self.running.len());
        let (mut ids, mut positions, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for sequence in &mut self.running {
            let most = sequence.behind().min(1 + budget);
            budget -= most - 1;
            for (id, position) in sequence.take(most) {
                ids.push(id);
                positions.push(position);
            }
            self.cache.extend(&mut sequence.table, positions[positions.len() - 1] + 1);
            rows.push(most);
        }
        let tables = self.running.iter().zip(&rows).flat_map(|(s, &rows)| std::iter::repeat_n(s.table.as_slice(), rows));
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

    /// Draws the next token of every running sequence that lacks none, from its hidden state [rows, h].
    fn draw(&mut self, hidden: Tensor<2>) {
        let (settings, vocab, logits) = (self.settings, self.model.config.vocab_size, self.logits_of(hidden));
        let mut drawing: Vec<&mut Running> = self.running.iter_mut().filter(|sequence| sequence.behind() == 0).collect();
        match logits {
            Logits::OnDevice(logits) => draw_on_device(&mut drawing, logits, settings),
            Logits::OnHost(mut logits) => {
                drawing.into_par_iter().zip(logits.par_chunks_exact_mut(vocab)).for_each(|(sequence, logits)| {
                    let u = sequence.uniform();
                    sequence.draw(logits, settings, u);
                });
                self.logits = logits;
            }
        }
    }

    /// Hands over the turns that ended, of the sequences from `first`, and parks these.
    fn collect(&mut self, first: usize) {
        let (drawn, before) = (self.running.split_off(first), self.progress.tokens);
        for mut sequence in drawn {
            if std::mem::take(&mut sequence.has_news)
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
            let (table, ids) = sequence.parked();
            self.waiting.parked.insert(sequence.sequence, Parked { table, ids });
            self.progress.finished += 1;
            self.turns.ended(sequence.sequence, sequence.response(finish));
        }
        if let Some(tell) = self.settings.progress.filter(|_| self.progress.tokens > before) {
            tell(self.progress);
        }
    }
}

/// Draws the next token of each of these sequences from its logits [rows, vocabulary].
fn draw_on_device(drawing: &mut [&mut Running], logits: Tensor<2>, settings: &TurnSettings) {
    let u: Vec<f64> = drawing.iter_mut().map(|sequence| sequence.uniform()).collect();
    let forbidden: Vec<Vec<u32>> = drawing.iter().map(|sequence| sequence.forbidden(settings)).collect();
    let rows = drawing.iter().zip(&forbidden).zip(&u);
    let rows: Vec<Row> = rows.map(|((sequence, forbidden), &u)| sequence.row(settings, forbidden, u)).collect();
    let drawn = sample_on_device(logits, &rows);
    drawing.iter_mut().zip(drawn).for_each(|(sequence, drawn)| sequence.push(drawn, settings));
}

impl Response {
    /// A turn for which there was no room.
    fn none() -> Self {
        Self { ids: Vec::new(), log_probs: Vec::new(), rollout_log_probs: Vec::new(), finish: Finish::Length }
    }
}
