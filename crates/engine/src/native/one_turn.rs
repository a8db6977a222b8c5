//! One-turn responses to a list of prompts, as a source of turns: all arrive at the start, and each is over when it ends.

use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};

use crate::GenerationRequest;
use burnish_rollout::{Arrival, GenerationProgress, Response, Sampling, TurnRequest, Turns, WantedScores};

/// Responses to the prompts of a request. The sequence of prompt p and sample s is p · n + s.
pub(crate) struct OneTurnSource<'a> {
    request: &'a GenerationRequest<'a>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    responses: Vec<Option<Response>>,
    /// Arrivals that the engine has not taken yet.
    arrivals: Vec<Arrival>,
    left: usize,
}

impl<'a> OneTurnSource<'a> {
    /// Creates the source. `budgets` are the token limits of the response to each prompt. The longest prompts come first, so that
    /// the sequences that finish last start early.
    pub(super) fn new(request: &'a GenerationRequest, budgets: &[usize]) -> Self {
        let (n, prompts) = (request.n, request.prompts);
        let mut order: Vec<usize> = (0..prompts.len()).collect();
        order.sort_by_key(|&i| Reverse(prompts[i].len()));
        let arrivals = order.into_iter().flat_map(|prompt| {
            let ids: std::sync::Arc<[u32]> = prompts[prompt].into();
            let sampling = Sampling { max_tokens: budgets[prompt], ..request.sampling };
            (0..n).map(move |sample| {
                let stream = (request.stream)(prompt, sample);
                let turn = TurnRequest {
                    ids: ids.clone(),
                    sampling,
                    scores: WantedScores::default(),
                    stream,
                    stops: None,
                    cancelled: None,
                };
                Arrival { sequence: prompt * n + sample, turn: Some(turn) }
            })
        });
        let arrivals = arrivals.collect();
        let state = State { responses: vec![None; prompts.len() * n], arrivals, left: prompts.len() * n };
        Self { request, state: state.into() }
    }

    /// Returns every response, in the order of the prompts.
    pub(super) fn responses(self) -> Vec<Response> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.responses.into_iter().map(|r| r.expect("every sample was admitted and ran to its end")).collect()
    }

    /// Reports the progress of a call whose responses are all known from the start.
    pub(super) fn progress(&self, done: GenerationProgress) {
        if let Some(tell) = self.request.progress {
            tell(GenerationProgress { total: self.request.prompts.len() * self.request.n, ..done });
        }
    }
}

impl Turns for OneTurnSource<'_> {
    fn ended(&self, sequence: usize, turn: Response) {
        if let Some(tell) = self.request.finished {
            tell(sequence, &turn);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.responses[sequence] = Some(turn);
        state.arrivals.push(Arrival { sequence, turn: None });
        state.left -= 1;
    }

    fn arrived(&self, _: bool) -> Option<Vec<Arrival>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.left > 0 || !state.arrivals.is_empty()).then(|| std::mem::take(&mut state.arrivals))
    }
}
