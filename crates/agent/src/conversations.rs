//! Concurrent conversations: while some wait for tools, the engine samples turns of the others.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Error, Result};

use super::{AgentLoop, Episode, NextAction, SampleRequest};
use burnish_rollout::{Arrival, Response, Sampling, TurnRequest, Turns, WantedScores};
use burnish_util::rng::Stream;

/// The limit of conversations that wait for tools at the same time; each takes a thread.
const MAX_THREADS: usize = 256;

/// The time that the engine waits at the start for the first requests of all conversations: identical prompts that arrive
/// together share their prefill.
const GATHERING: Duration = Duration::from_millis(250);

/// The interval between calls of `waiting` while all conversations wait.
const SLICE: Duration = Duration::from_millis(50);

/// Settings and callbacks that all conversations share.
pub struct SharedOptions<'a> {
    /// Sampling settings; each turn sets its own `max_tokens`.
    pub sampling: Sampling,
    /// Returns the random stream of (conversation, turn); the turn is its number or [`SampleRequest::stream_number`].
    pub stream: &'a (dyn Fn(usize, usize) -> Stream + Sync),
    /// Takes each finished conversation, on one of several threads.
    pub finished: &'a (dyn Fn(usize, Episode) + Sync),
    /// Called now and then while all conversations wait.
    pub waiting: &'a (dyn Fn() + Sync),
}

/// A set of conversations, as the engine's source of turns.
pub struct Conversations<'a> {
    common: SharedOptions<'a>,
    loops: Vec<Mutex<Option<Box<dyn AgentLoop>>>>,
    state: Mutex<State>,
    /// Signals that a job was added, or that no more will come.
    job_came: Condvar,
    /// Signals that an arrival was added.
    news_came: Condvar,
}

struct State {
    /// The conversations that are to advance, each with its sampled turn (`None` at the start).
    jobs: VecDeque<(usize, Option<Response>)>,
    /// Arrivals that the engine has not taken yet.
    news: Vec<Arrival>,
    /// The number of turns of each conversation.
    turns: Vec<usize>,
    /// The number of conversations that have not ended.
    running: usize,
    /// The first error that ended the run: (conversation, error), by the index of the conversation.
    failed: Option<(usize, Error)>,
    /// True once the engine has waited for all conversations to begin.
    gathered: bool,
}

impl State {
    /// True if no conversation will advance any more.
    fn is_over(&self) -> bool {
        self.failed.is_some() || self.running == 0
    }
}

impl<'a> Conversations<'a> {
    /// Samples these conversations to their ends: calls `converse` with the source of turns.
    ///
    /// # Errors
    /// The errors of `converse`, and the first error of a conversation that ends the run.
    pub fn run(
        loops: Vec<Box<dyn AgentLoop>>,
        common: SharedOptions<'a>,
        converse: impl FnOnce(&dyn Turns) -> Result<()>,
    ) -> Result<()> {
        let count = loops.len();
        let jobs = (0..count).map(|conversation| (conversation, None)).collect();
        let state = State { jobs, news: Vec::new(), turns: vec![0; count], running: count, failed: None, gathered: false };
        let loops = loops.into_iter().map(|one| Mutex::new(Some(one))).collect();
        let conversations =
            Conversations { common, loops, state: state.into(), job_came: Condvar::new(), news_came: Condvar::new() };
        let conversed = thread::scope(|scope| {
            let workers: Vec<_> = (0..count.min(MAX_THREADS)).map(|_| scope.spawn(|| conversations.work())).collect();
            let _watch = Watch(&conversations);
            let conversed = converse(&conversations);
            conversations.end(conversed.is_err());
            workers.into_iter().for_each(join);
            conversed
        });
        let state = conversations.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.failed {
            Some((_, error)) => Err(error),
            None => conversed,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Advances conversations that have a turn to take, until all are over.
    fn work(&self) {
        let _watch = Watch(self);
        while let Some((conversation, turn)) = self.job() {
            let arrival = self.take_turn(conversation, turn);
            let mut state = self.state();
            match arrival {
                Ok(arrival) => {
                    state.running -= usize::from(arrival.turn.is_none());
                    state.news.push(arrival);
                }
                Err(error) => {
                    if state.failed.as_ref().is_none_or(|(first, _)| conversation < *first) {
                        state.failed = Some((conversation, error));
                    }
                    state.jobs.clear();
                }
            }
            if state.is_over() {
                self.job_came.notify_all();
            }
            drop(state);
            self.news_came.notify_one();
        }
    }

    /// Waits for a job; `None` if no more will come.
    fn job(&self) -> Option<(usize, Option<Response>)> {
        let mut state = self.state();
        loop {
            if state.is_over() {
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            state = self.job_came.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn take_turn(&self, conversation: usize, turn: Option<Response>) -> Result<Arrival> {
        let mut place = self.loops[conversation].lock().unwrap_or_else(PoisonError::into_inner);
        let over = Arrival { sequence: conversation, turn: None };
        let Some(agent) = place.as_mut() else { return Ok(over) };
        let NextAction::Generate(ask) = agent.next(turn)? else {
            if let Some(agent) = place.take() {
                (self.common.finished)(conversation, agent.finish());
            }
            return Ok(over);
        };
        let nth = {
            let mut state = self.state();
            state.turns[conversation] += 1;
            state.turns[conversation] - 1
        };
        let SampleRequest { ids, max_tokens, sampling, stops, stream_number } = ask;
        let sampling = Sampling { max_tokens, ..sampling.unwrap_or(self.common.sampling) };
        let stream = (self.common.stream)(conversation, stream_number.unwrap_or(nth));
        let (scores, stops) = (WantedScores::default(), stops.map(|stops| stops.0));
        let turn = TurnRequest { ids: ids.into(), sampling, scores, stream, stops, cancelled: None };
        Ok(Arrival { sequence: conversation, turn: Some(turn) })
    }

    /// Releases the threads, after the engine has returned.
    fn end(&self, failed: bool) {
        let mut state = self.state();
        if failed {
            state.running = 0;
        }
        drop(state);
        self.job_came.notify_all();
    }

    /// Waits for arrivals, for at most this time.
    fn wait<'s>(&self, state: MutexGuard<'s, State>, at_most: Duration) -> MutexGuard<'s, State> {
        self.news_came.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Ends all conversations if its thread panics: otherwise the other threads would wait forever.
struct Watch<'c, 'a>(&'c Conversations<'a>);

impl Drop for Watch<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(true);
            self.0.news_came.notify_one();
        }
    }
}

impl Turns for Conversations<'_> {
    fn ended(&self, sequence: usize, turn: Response) {
        let mut state = self.state();
        if state.failed.is_none() {
            state.jobs.push_back((sequence, Some(turn)));
        }
        drop(state);
        self.job_came.notify_one();
    }

    fn arrived(&self, wait: bool) -> Option<Vec<Arrival>> {
        let mut state = self.state();
        let started = Instant::now();
        while !state.gathered && !state.is_over() && started.elapsed() < GATHERING {
            state = self.wait(state, GATHERING.saturating_sub(started.elapsed()));
            state.gathered = state.news.len() == self.loops.len();
        }
        state.gathered = true;
        if wait && state.news.is_empty() && !state.is_over() {
            state = self.wait(state, SLICE);
            if state.news.is_empty() {
                drop(state);
                (self.common.waiting)();
                state = self.state();
            }
        }
        let is_over = state.failed.is_some() || state.running == 0 && state.news.is_empty();
        (!is_over).then(|| {
            // Sorted by conversation, so that conversations with the same prompt are adjacent.
            let mut news = std::mem::take(&mut state.news);
            news.sort_by_key(|arrival| arrival.sequence);
            news
        })
    }
}

/// Joins a thread, and passes on its panic.
fn join(worker: ScopedJoinHandle<()>) {
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}
