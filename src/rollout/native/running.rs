//! A sequence that is being generated.

use crate::model::kv_cache::BlockTable;
use crate::rollout::sampling::{Drawn, History, LogitChanges, sample};
use crate::rollout::{Finish, GenerationRequest, Response, Stops};
use crate::util::rng::Stream;

pub struct Running {
    /// The index of its response in the output: prompt · n + sample.
    pub output: usize,
    /// Its blocks of the cache.
    pub table: BlockTable,
    /// The number of tokens of its prompt.
    prompt: usize,
    /// The number of tokens that its response may have.
    most: usize,
    stream: Stream,
    /// The tokens under penalties.
    history: History,
    ids: Vec<u32>,
    log_probs: Vec<f32>,
    rollout_log_probs: Vec<f32>,
    /// Set when the response is complete.
    pub finish: Option<Finish>,
}

impl Running {
    pub fn new(prompt: usize, sample: usize, most: usize, table: BlockTable, request: &GenerationRequest) -> Self {
        let ids = request.prompts[prompt];
        Self {
            output: prompt * request.n + sample,
            table,
            prompt: ids.len(),
            most,
            stream: (request.stream)(prompt, sample),
            history: History::new(ids, &request.sampling),
            ids: Vec::new(),
            log_probs: Vec::new(),
            rollout_log_probs: Vec::new(),
            finish: None,
        }
    }

    /// The last token, which is the input of the next step.
    pub fn last(&self) -> u32 {
        *self.ids.last().expect("admitted with its first token")
    }

    /// The position of the last token.
    pub fn position(&self) -> usize {
        self.prompt + self.ids.len() - 1
    }

    /// Draws the next token; `logits` is scratch.
    pub fn draw(&mut self, logits: &mut [f32], request: &GenerationRequest) {
        let stops = if self.forbids(request) { request.eos } else { &[] };
        let rules = request.rules;
        let completing = rules.into_iter().flat_map(|rules| rules.forbidden_after(&self.ids));
        let forbidden: Vec<u32> = stops.iter().copied().chain(completing).collect();
        let changes = LogitChanges {
            allowed: rules.and_then(|rules| rules.allowed.as_deref()),
            forbidden: &forbidden,
            biases: rules.map_or(&[], |rules| &rules.biases),
            seen: self.history.seen(),
        };
        let drawn = sample(logits, &request.sampling, changes, || self.stream.uniform());
        self.push(drawn, request);
    }

    /// True if stop tokens may not be drawn yet.
    pub fn forbids(&self, request: &GenerationRequest) -> bool {
        self.ids.len() < request.sampling.min_tokens && !request.eos.is_empty()
    }

    /// The uniform number for the next token.
    pub fn uniform(&mut self) -> f64 {
        self.stream.uniform()
    }

    /// Appends a token that was drawn.
    pub fn push(&mut self, Drawn { token, log_prob, rollout_log_prob }: Drawn, request: &GenerationRequest) {
        let sampling = &request.sampling;
        let may_stop = self.ids.len() >= sampling.min_tokens;
        self.ids.push(token);
        self.log_probs.push(log_prob);
        self.rollout_log_probs.push(rollout_log_prob);
        self.history.add(token);
        let is_stop = request.eos.contains(&token);
        let completes = |stops: Stops| may_stop && stops(&self.ids);
        self.finish = if is_stop || request.stops.is_some_and(completes) {
            Some(Finish::Stop)
        } else {
            (self.ids.len() >= self.most).then_some(Finish::Length)
        };
    }

    /// The complete response.
    pub fn response(self, finish: Finish) -> Response {
        Response { ids: self.ids, log_probs: self.log_probs, rollout_log_probs: self.rollout_log_probs, finish }
    }
}
