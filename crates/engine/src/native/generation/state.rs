//! State of a call of the engine.

use std::collections::VecDeque;
use std::sync::Arc;

use burn::tensor::Tensor;

use crate::native::lookahead::Lookahead;
use crate::native::running::Running;
use crate::native::waiting::{NewPrompt, Waiting};
use crate::sampling::draws_on_device;
use burnish_model::CausalLm;
use burnish_model::kv_cache::{BlockTable, KvCache};
use burnish_rollout::{GenerationProgress, TokenScores, TurnSettings, Turns};

/// Limits of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    /// Number of sequences that decode together. The same number may be between two turns.
    pub sequences: usize,
    /// Number of tokens, of prompts and of text between turns, that are computed together.
    pub tokens: usize,
    /// Token limit of a sequence.
    pub longest: usize,
    /// True if decode steps are recorded and replayed on devices that support it.
    pub records: bool,
}

/// A prompt whose sequences are being admitted.
pub(crate) struct Prefilled {
    pub beginning: NewPrompt,
    /// Row of its logits.
    pub row: usize,
    pub table: BlockTable,
    /// Scores of the prompt, if a sequence wants them.
    pub scores: Option<Arc<TokenScores>>,
}

/// Logits [rows, vocabulary], in the place where tokens are drawn.
// One value per pass, so its size does not matter.
#[allow(clippy::large_enum_variant)]
pub(super) enum Logits {
    OnHost(Vec<f32>),
    OnDevice(Tensor<2>),
}

/// State of one call of the engine.
pub(crate) struct GenerationState<'a> {
    pub(super) limits: BatchLimits,
    pub(super) model: CausalLm,
    pub(super) settings: &'a TurnSettings<'a>,
    pub(super) turns: &'a dyn Turns,
    pub(super) cache: KvCache,
    pub(super) waiting: Waiting,
    pub(super) ready: VecDeque<Prefilled>,
    /// Logits of the first tokens of the `ready` ones.
    pub(super) first: Logits,
    pub(super) running: Vec<Running>,
    /// Steps that run ahead of the host, if any.
    pub(super) ahead: Option<Lookahead>,
    /// False if steps cannot run ahead.
    pub(super) can_run_ahead: bool,
    pub(super) progress: GenerationProgress,
    /// Memory of a pass's logits, reused by the next.
    pub(super) logits: Vec<f32>,
}

impl<'a> GenerationState<'a> {
    /// Prepares a call.
    pub(crate) fn new(limits: BatchLimits, model: &CausalLm, settings: &'a TurnSettings<'a>, turns: &'a dyn Turns) -> Self {
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
