//! The state of a call of the engine.

use std::collections::VecDeque;

use burn::tensor::Tensor;

use crate::native::ahead::Ahead;
use crate::native::running::Running;
use crate::native::waiting::{Beginning, Waiting};
use crate::sampling::draws_on_device;
use burnish_model::CausalLm;
use burnish_model::kv_cache::{BlockTable, KvCache};
use burnish_rollout::{GenerationProgress, TurnSettings, Turns};

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
pub struct Prefilled {
    pub beginning: Beginning,
    /// The row of its logits.
    pub row: usize,
    pub table: BlockTable,
}

/// Logits [rows, vocabulary] where tokens are drawn from them.
// One value per pass: its size does not matter.
#[allow(clippy::large_enum_variant)]
pub enum Logits {
    OnHost(Vec<f32>),
    OnDevice(Tensor<2>),
}

/// The state of one call of the engine.
pub struct Generation<'a> {
    pub(super) limits: BatchLimits,
    pub(super) model: CausalLm,
    pub(super) settings: &'a TurnSettings<'a>,
    pub(super) turns: &'a dyn Turns,
    pub(super) cache: KvCache,
    pub(super) waiting: Waiting,
    pub(super) ready: VecDeque<Prefilled>,
    /// The logits of the first tokens of those.
    pub(super) first: Logits,
    pub(super) running: Vec<Running>,
    /// The steps that run ahead of the host, while there are such.
    pub(super) ahead: Option<Ahead>,
    /// False where steps cannot run ahead.
    pub(super) can_run_ahead: bool,
    pub(super) progress: GenerationProgress,
    /// The memory of the logits of a pass, for the next.
    pub(super) logits: Vec<f32>,
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
}
