//! A sequence whose turn is being generated.

use std::sync::Arc;

use crate::sampling::{DrawRow, Drawn, LogitChanges, TokenHistory, sample, score};
use burnish_model::kv_cache::BlockTable;
use burnish_model::ops::BLOCK;
use burnish_rollout::{Finish, Response, Sampling, Stops, TokenScores, TurnRequest, TurnScores, TurnSettings};

pub(super) struct Running {
    /// Number by which the source of turns identifies the sequence.
    pub sequence: usize,
    /// Blocks of the sequence in the cache.
    pub table: BlockTable,
    /// Row in the steps that run ahead of the host.
    pub(crate) ahead_row: Option<usize>,
    /// True if a token was read that the source has not been given yet.
    pub(crate) has_new_token: bool,
    turn: TurnRequest,
    /// Number of tokens whose keys and values the cache has.
    cached: usize,
    /// Number of tokens that the device has drawn, or is drawing, and the host has not read.
    unread: usize,
    /// Token limit of the turn.
    max: usize,
    /// Tokens under penalties.
    history: TokenHistory,
    ids: Vec<u32>,
    log_probs: Vec<f32>,
    rollout_log_probs: Vec<f32>,
    scores: TurnScores,
    /// Set when the turn is complete.
    pub finish: Option<Finish>,
}

impl Running {
    /// Creates a turn of at most `max` tokens. The cache has the keys and values of its first `cached` tokens.
    pub(super) fn new(sequence: usize, turn: TurnRequest, table: BlockTable, cached: usize, max: usize) -> Self {
        let history = TokenHistory::new(&turn.ids, &turn.sampling);
        let (ids, log_probs, rollout_log_probs, finish) = Default::default();
        let (ahead_row, has_new_token, unread) = (None, false, 0);
        Self {
            sequence,
            table,
            ahead_row,
            has_new_token,
            turn,
            cached,
            unread,
            max,
            history,
            ids,
            log_probs,
            rollout_log_probs,
            scores: TurnScores::default(),
            finish,
        }
    }

    /// Takes the scores of the prompt, if the turn wants them.
    #[must_use]
    pub(super) fn with_prompt_scores(mut self, scores: Option<&Arc<TokenScores>>) -> Self {
        self.scores.prompt = scores.filter(|_| self.turn.scores.prompt.is_some()).cloned();
        self
    }

    /// Returns the number of most probable tokens to score in the place of each sampled token; 0 if these are not scored.
    pub(super) fn scored(&self) -> usize {
        self.turn.scores.sampled
    }

    /// Scores the token that was drawn last, in the logits from which it was drawn, before any change to them.
    pub(super) fn add_score(&mut self, logits: &[f32]) {
        let top = self.scored();
        if let Some(token) = self.last().filter(|_| top > 0) {
            score(logits, token, top).append_to(&mut self.scores.sampled);
        }
    }

    /// Takes the scores of the turn; `None` if it wants none.
    pub(super) fn take_scores(&mut self) -> Option<TurnScores> {
        (!self.turn.scores.is_empty()).then(|| std::mem::take(&mut self.scores))
    }

    /// Returns the number of tokens so far, of this turn and all before it.
    fn len(&self) -> usize {
        self.turn.ids.len() + self.ids.len()
    }

    /// Returns the token at a position.
    fn token(&self, position: usize) -> u32 {
        match position.checked_sub(self.turn.ids.len()) {
            None => self.turn.ids[position],
            Some(own) => self.ids[own],
        }
    }

    /// Takes up to `max` of the tokens whose keys and values the cache lacks, with their positions.
    pub(super) fn take(&mut self, max: usize) -> impl Iterator<Item = (u32, usize)> + '_ {
        let first = self.cached;
        self.cached = self.len().min(first + max);
        (first..self.cached).map(|position| (self.token(position), position))
    }

    /// Returns the number of tokens whose keys and values the cache lacks; at 0, the next token is drawn.
    pub(super) fn behind(&self) -> usize {
        self.len() + self.unread - self.cached
    }

    /// Returns true if drawing the next token does not require the host to know the earlier ones.
    pub(crate) fn can_run_ahead(&self, settings: &TurnSettings) -> bool {
        let rules = settings.rules.is_none_or(|r| r.allowed.is_none() && r.bad_words.is_empty() && r.biases.is_empty());
        self.behind() == 1 && rules && self.scored() == 0 && !self.turn.sampling.penalises() && !self.forbids(settings)
    }

    /// Returns the number of blocks to add for `tokens` further tokens in the cache.
    pub(super) fn lacks(&self, tokens: usize) -> usize {
        (self.cached + tokens).div_ceil(BLOCK).saturating_sub(self.table.len())
    }

    /// Returns true if the turn has room for a token after the unread ones.
    pub(crate) fn has_room(&self) -> bool {
        self.ids.len() + self.unread < self.max
    }

    /// Returns the largest number of positions that the sequence can reach.
    pub(super) fn longest(&self) -> usize {
        self.turn.ids.len() + self.max
    }

    /// Takes the token whose keys and values the cache lacks (unless it is unread), and its position. The device draws the next.
    pub(crate) fn take_ahead(&mut self) -> (Option<u32>, usize) {
        let position = self.cached;
        let token = (self.unread == 0).then(|| self.token(position));
        self.cached += 1;
        self.unread += 1;
        (token, position)
    }

    /// Appends a token that was drawn ahead.
    pub(super) fn read(&mut self, drawn: Drawn, settings: &TurnSettings) {
        self.unread -= 1;
        self.push(drawn, settings);
    }

    /// Ends the turn if it was cancelled.
    pub(crate) fn end_if_cancelled(&mut self) {
        if self.turn.is_cancelled() {
            self.finish = Some(Finish::Stop);
        }
    }

    pub(super) fn sampling(&self) -> &Sampling {
        &self.turn.sampling
    }

    /// Takes the sequence's blocks, and the tokens whose keys and values they hold.
    pub(crate) fn take_cached(&mut self) -> (BlockTable, Vec<u32>) {
        let ids = (0..self.cached).map(|position| self.token(position)).collect();
        (std::mem::take(&mut self.table), ids)
    }

    /// Draws the next token at a uniform number; `logits` is scratch.
    pub(super) fn draw(&mut self, logits: &mut [f32], settings: &TurnSettings, u: f64) {
        let unchanged = (self.scored() > 0).then(|| logits.to_vec());
        let forbidden = self.forbidden(settings);
        let drawn = sample(logits, &self.turn.sampling, self.row(settings, &forbidden, u).changes, || u);
        self.push(drawn, settings);
        if let Some(unchanged) = unchanged {
            self.add_score(&unchanged);
        }
    }

    /// Returns the tokens that may not be drawn next.
    pub(super) fn forbidden(&self, settings: &TurnSettings) -> Vec<u32> {
        let stops = if self.forbids(settings) { settings.eos } else { &[] };
        let completing = settings.rules.into_iter().flat_map(|rules| rules.forbidden_after(&self.ids));
        stops.iter().copied().chain(completing).collect()
    }

    /// Returns the inputs for drawing the next token, at a uniform number.
    pub(super) fn row<'a>(&'a self, settings: &'a TurnSettings, forbidden: &'a [u32], u: f64) -> DrawRow<'a> {
        let rules = settings.rules;
        let changes = LogitChanges {
            allowed: rules.and_then(|rules| rules.allowed.as_deref()),
            forbidden,
            biases: rules.map_or(&[], |rules| &rules.biases),
            penalized: self.history.penalized(),
        };
        DrawRow { sampling: &self.turn.sampling, u, changes }
    }

    /// Returns true if stop tokens may not be drawn yet.
    fn forbids(&self, settings: &TurnSettings) -> bool {
        self.ids.len() < self.turn.sampling.min_tokens && !settings.eos.is_empty()
    }

    /// Returns the uniform number for the next token; `None` with greedy sampling.
    pub(super) fn uniform(&mut self) -> f64 {
        if self.turn.sampling.temperature > 0.0 { self.turn.stream.uniform() } else { 0.0 }
    }

    /// Appends a token that was drawn.
    pub(super) fn push(&mut self, Drawn { token, log_prob, rollout_log_prob }: Drawn, settings: &TurnSettings) {
        let may_stop = self.ids.len() >= self.turn.sampling.min_tokens;
        self.has_new_token = true;
        self.ids.push(token);
        self.log_probs.push(log_prob);
        self.rollout_log_probs.push(rollout_log_prob);
        self.history.add(token);
        let is_stop = settings.eos.contains(&token);
        let completes = |stops: Stops| may_stop && stops(&self.ids);
        let turn_stops = || self.turn.stops.as_ref().is_some_and(|stops| may_stop && stops(&self.ids));
        self.finish = if is_stop || settings.stops.is_some_and(completes) || turn_stops() {
            Some(Finish::Stop)
        } else {
            (self.ids.len() >= self.max).then_some(Finish::Length)
        };
    }

    /// Returns the last token of the turn.
    pub(super) fn last(&self) -> Option<u32> {
        self.ids.last().copied()
    }

    /// Returns the complete turn.
    pub(super) fn response(self, finish: Finish) -> Response {
        Response { ids: self.ids, log_probs: self.log_probs, rollout_log_probs: self.rollout_log_probs, finish }
    }
}
