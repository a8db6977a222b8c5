//! Decoding one step ahead of the host: a step reads the tokens of the previous step on the device, and the host reads them while
//! the device computes. A sequence that ends has then been computed one step too far.

use super::running::Running;
use crate::sampling::{Drawn, drawn_rows, row_settings};
use burnish_model::CausalLm;
use burnish_model::decode_graph::{DecodeGraph, DecodeInput, PendingTokens};
use burnish_model::kv_cache::{BlockTable, KvCache};
use burnish_model::ops::BLOCK;
use burnish_rollout::Sampling;
use burnish_rollout::TurnSettings;

/// Number of steps after which half of the rows are dropped if they were empty all the time.
const PATIENCE: usize = 16;

/// Sequences in the rows of a step with a fixed shape.
pub(crate) struct Lookahead {
    graph: DecodeGraph,
    vocab: usize,
    /// Sequence of each row.
    rows: Vec<Option<usize>>,
    /// Blocks of each row's sequence, [rows, width].
    tables: Vec<i32>,
    /// True if the device lacks some of the tables.
    tables_changed: bool,
    /// Block that rows without a sequence write to.
    spare: BlockTable,
    /// Step that was not read yet, and the sequences that it draws for.
    flying: Option<(PendingTokens, Vec<Option<usize>>)>,
    /// Number of steps for which half of the rows would have been enough.
    half_empty: usize,
}

impl Lookahead {
    /// Returns `None` if steps cannot run ahead: on the CPU, and for some models.
    pub(super) fn new(model: &CausalLm, cache: &mut KvCache, running: &[Running], records: bool) -> Option<Self> {
        let (rows, width) = (running.len().next_power_of_two(), width(running));
        let graph = DecodeGraph::new(model, rows, width, records)?;
        let mut spare = BlockTable::new();
        cache.extend(&mut spare, 1);
        let (rows, tables) = (vec![None; rows], vec![0; rows * width]);
        Some(Self {
            graph,
            vocab: model.config.vocab_size,
            rows,
            tables,
            tables_changed: true,
            spare,
            flying: None,
            half_empty: 0,
        })
    }

    /// Returns true if the graph has a row for each sequence and room for its blocks, and has not been half empty for long.
    pub(super) fn fits(&mut self, running: &[Running]) -> bool {
        let is_half_empty = running.len() * 2 <= self.graph.rows();
        self.half_empty = if is_half_empty { self.half_empty + 1 } else { 0 };
        running.len() <= self.graph.rows() && width(running) <= self.graph.width() && self.half_empty < PATIENCE
    }

    /// Starts a step of the sequences that have room for a token, and then reads the tokens of the previous step.
    pub(super) fn step(&mut self, cache: &mut KvCache, running: &mut [Running], settings: &TurnSettings) {
        let before = self.flying.take();
        if running.iter().any(Running::has_room) {
            self.flying = Some(self.start(cache, running));
        }
        read(before, running, settings);
    }

    /// Reads the tokens of the last step, and removes all sequences from their rows.
    pub(super) fn pause(&mut self, running: &mut [Running], settings: &TurnSettings) {
        read(self.flying.take(), running, settings);
        running.iter_mut().for_each(|sequence| sequence.ahead_row = None);
        self.rows.fill(None);
    }

    /// Removes a finished sequence from its row. The token being drawn for it is not read.
    pub(super) fn leave(&mut self, row: usize) {
        self.rows[row] = None;
        if let Some((_, drawing_for)) = &mut self.flying {
            drawing_for[row] = None;
        }
    }

    /// Drops the recording of the step.
    pub(super) fn forget(&mut self) {
        self.graph.forget();
    }

    /// Returns false if steps cannot be recorded.
    pub(super) fn records(&self) -> bool {
        self.graph.records()
    }

    /// Ends the steps of this shape, which must be paused. Returns their own blocks.
    pub(super) fn close(self) -> BlockTable {
        self.spare
    }

    fn start(&mut self, cache: &mut KvCache, running: &mut [Running]) -> (PendingTokens, Vec<Option<usize>>) {
        let (rows, width) = (self.graph.rows(), self.graph.width());
        let greedy = Sampling { temperature: 0.0, ..Sampling::PLAIN };
        let of_row = |sampling: &Sampling, u: f64| row_settings(sampling, u, self.vocab, 0..0);
        let mut inputs = vec![DecodeInput { token: Some(0), position: 0, block: self.spare[0] }; rows];
        let mut settings = vec![of_row(&greedy, 0.0); rows];
        let mut drawing_for = vec![None; rows];
        for sequence in running.iter_mut().filter(|sequence| sequence.has_room()) {
            let (token, position) = sequence.take_ahead();
            cache.extend(&mut sequence.table, position + 1);
            let row = *sequence.ahead_row.get_or_insert_with(|| {
                let row = self.rows.iter().position(Option::is_none).expect("a row for each sequence");
                self.rows[row] = Some(sequence.sequence);
                let places = self.tables[row * width..].iter_mut();
                places.zip(sequence.table.iter()).for_each(|(place, &block)| *place = block as i32);
                self.tables_changed = true;
                row
            });
            let block = sequence.table[position / BLOCK];
            self.tables[row * width + position / BLOCK] = block as i32;
            inputs[row] = DecodeInput { token, position, block };
            let u = sequence.uniform();
            settings[row] = of_row(sequence.sampling(), u);
            drawing_for[row] = Some(sequence.sequence);
        }
        if std::mem::take(&mut self.tables_changed) {
            self.graph.set_tables(&self.tables);
        }
        (self.graph.step(cache, &inputs, settings.as_flattened()), drawing_for)
    }
}

/// Hands the tokens of a step to their sequences.
fn read(step: Option<(PendingTokens, Vec<Option<usize>>)>, running: &mut [Running], settings: &TurnSettings) {
    let Some((drawing, drawn_for)) = step else { return };
    let drawn: Vec<Drawn> = drawn_rows(&drawing.wait()).collect();
    for sequence in running {
        if let Some(row) = sequence.ahead_row.filter(|&row| drawn_for[row] == Some(sequence.sequence)) {
            sequence.read(drawn[row], settings);
        }
    }
}

/// Returns the number of blocks that the longest of these sequences can need, with a margin for longer ones later.
fn width(running: &[Running]) -> usize {
    running.iter().map(|sequence| sequence.longest().div_ceil(BLOCK)).max().unwrap_or(1).next_power_of_two()
}
