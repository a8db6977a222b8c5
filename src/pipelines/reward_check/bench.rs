//! Calls of the reward functions under examination, within a time limit.

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use super::calls::{Answer, Attempt, Outcome};
use super::row::KnownRow;
use burnish_data::Tokenizer;
use burnish_reward::python::Pool;
use burnish_reward::reward_error::{RewardError, RewardFailure};
use burnish_reward::{ResponseScore, Rewards};
use burnish_util::excerpt::beginning_of;

/// Number of characters of a text that the record keeps.
const KEPT: usize = 200;
/// Calls that may hang before the examination ends early.
const HANGS: usize = 2;
/// Calls at a time when it is tried whether parallel calls agree.
const PARALLEL: usize = 2;

/// The time for the examination is over.
pub(super) struct OutOfTime;

/// The functions under examination.
pub(super) struct Bench<'a> {
    rewards: &'a Rewards,
    /// The processes of the user's functions, if there are any.
    pool: Option<Arc<Pool>>,
    rows: &'a [KnownRow],
    tokenizer: Option<&'a Tokenizer>,
    deadline: Instant,
    record: RefCell<Vec<Recorded>>,
    /// True while texts are tried that no model is likely to write.
    pub(super) odd: Cell<bool>,
}

/// A call that was made.
#[derive(Clone)]
pub(super) struct Recorded {
    /// The text, cut to its beginning.
    pub(super) attempt: Attempt,
    pub(super) outcome: Outcome,
    pub(super) is_odd: bool,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        rewards: &'a Rewards,
        pool: Option<Arc<Pool>>,
        rows: &'a [KnownRow],
        tokenizer: Option<&'a Tokenizer>,
        deadline: Instant,
    ) -> Self {
        Self { rewards, pool, rows, tokenizer, deadline, record: RefCell::default(), odd: Cell::new(false) }
    }

    pub(super) fn rewards(&self) -> &Rewards {
        self.rewards
    }

    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns all calls so far.
    pub(super) fn record(&self) -> Vec<Recorded> {
        self.record.borrow().clone()
    }

    /// Returns the number of lines that the functions printed; `None` if they run in this process.
    pub(super) fn printed_lines(&self) -> Option<usize> {
        self.pool.as_ref().map(|pool| pool.printed_lines())
    }

    /// Loads the user's code in a new process, with other random seeds unless `salt` is 0.
    pub(super) fn renew(&self, salt: u64) -> Result<(), OutOfTime> {
        self.in_time()?;
        // A file that was loaded before loads again, or the next call tells why not.
        if let Some(pool) = &self.pool {
            pool.renew(salt).map_err(|_| OutOfTime)?;
        }
        Ok(())
    }

    /// Calls the functions for each attempt alone, one after another.
    pub(super) fn alone(&self, attempts: &[Attempt]) -> Result<Vec<Answer>, OutOfTime> {
        attempts.iter().map(|attempt| self.one(attempt, attempt.row)).collect()
    }

    /// Calls the functions for one attempt, as if it were the response to the row `context`.
    pub(super) fn one(&self, attempt: &Attempt, context: usize) -> Result<Answer, OutOfTime> {
        self.in_time()?;
        let answer = ask(self.rewards, &self.rows[context], &attempt.text, &self.tokens(&attempt.text));
        self.note(attempt, &answer);
        Ok(answer)
    }

    /// Calls the functions for all attempts as a step of training does: a function that takes a batch gets all of them at once.
    pub(super) fn together(&self, attempts: &[Attempt]) -> Result<Vec<Answer>, OutOfTime> {
        if !self.rewards.sees_batches() {
            return self.alone(attempts);
        }
        self.in_time()?;
        let tokens: Vec<Vec<u32>> = attempts.iter().map(|attempt| self.tokens(&attempt.text)).collect();
        let inputs: Vec<_> = attempts.iter().zip(&tokens).map(|(one, ids)| self.rows[one.row].input(&one.text, ids)).collect();
        let start = Instant::now();
        let scored = self.rewards.begin_all(&inputs, 1);
        let scored = scored.and_then(|pending| self.rewards.complete(&inputs, pending, |_| "scoring a batch".to_owned()));
        let Ok(scores) = scored else { return self.alone(attempts) };
        let took = start.elapsed() / attempts.len().max(1) as u32;
        let answers: Vec<Answer> = scores.iter().map(|score| answer(score, took)).collect();
        attempts.iter().zip(&answers).for_each(|(attempt, answer)| self.note(attempt, answer));
        Ok(answers)
    }

    /// Calls the functions for each attempt alone, several at a time.
    pub(super) fn parallel(&self, attempts: &[Attempt]) -> Result<Vec<Answer>, OutOfTime> {
        self.in_time()?;
        let tokens: Vec<Vec<u32>> = attempts.iter().map(|attempt| self.tokens(&attempt.text)).collect();
        let (rewards, rows) = (self.rewards, self.rows);
        let ask = |(one, ids): (&Attempt, &Vec<u32>)| ask(rewards, &rows[one.row], &one.text, ids);
        let threads = ThreadPoolBuilder::new().num_threads(PARALLEL).build().map_err(|_| OutOfTime)?;
        Ok(threads.install(|| attempts.par_iter().zip(&tokens).map(ask).collect()))
    }

    fn in_time(&self) -> Result<(), OutOfTime> {
        let hung = self.record.borrow().iter().filter(|call| matches!(call.outcome, Outcome::TooSlow)).count();
        if self.left().is_zero() || hung >= HANGS { Err(OutOfTime) } else { Ok(()) }
    }

    /// Returns the tokens of a text; without a tokenizer, one per word.
    fn tokens(&self, text: &str) -> Vec<u32> {
        let word = |word: &str| {
            let mut hasher = DefaultHasher::new();
            word.hash(&mut hasher);
            hasher.finish() as u32
        };
        let ids = self.tokenizer.and_then(|tokenizer| tokenizer.encode(text).ok());
        ids.unwrap_or_else(|| text.split_whitespace().map(word).collect())
    }

    fn note(&self, attempt: &Attempt, answer: &Answer) {
        let attempt = Attempt { row: attempt.row, text: beginning_of(&attempt.text, KEPT) };
        let (outcome, is_odd) = (answer.outcome.clone(), self.odd.get());
        self.record.borrow_mut().push(Recorded { attempt, outcome, is_odd });
    }
}

fn ask(rewards: &Rewards, row: &KnownRow, text: &str, tokens: &[u32]) -> Answer {
    let start = Instant::now();
    let score = rewards.score(&row.input(text, tokens)).context("scoring a response");
    let took = start.elapsed();
    match score {
        Ok(score) => answer(&score, took),
        Err(error) => Answer { outcome: failed(&error), parts: Vec::new(), took },
    }
}

fn answer(score: &ResponseScore, took: Duration) -> Answer {
    let parts = score.components.iter().map(|part| part.reward).collect();
    let outcome = score.score.map_or(Outcome::Abstained, |score| Outcome::Score(f64::from(score)));
    Answer { outcome, parts, took }
}

fn failed(error: &Error) -> Outcome {
    let kind = error.downcast_ref::<RewardError>().map(|failure| failure.kind);
    if kind == Some(RewardFailure::Timeout) {
        return Outcome::TooSlow;
    }
    let text = error.root_cause().to_string();
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Outcome::Raised(last.trim().to_owned())
}
