//! The sizes of passes and of a generation.

use burnish_model::Cut;
use burnish_model::ops::attention::QUERIES;

/// Numbers of attention's scores of one head, seen or not, of queries that come after a stem: each range of queries is multiplied with
/// the keys up to its end, about half of a long sequence's.
fn scores(queries: usize, stem: usize) -> f64 {
    let [queries, stem, most] = [queries, stem, QUERIES].map(|size| size as f64);
    let full = (queries / most).floor();
    full * most * (stem + most * (full + 1.0) / 2.0) + (queries - full * most) * (stem + queries)
}

/// The tokens of the passes of one process over its part of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tokens {
    /// Tokens that go through the trunk: a prompt once for all its responses in a micro-batch.
    pub rows: f64,
    /// Tokens that the head is read for.
    pub predicted: f64,
    /// The keys that all rows see, summed.
    pub keys: f64,
    /// Numbers of attention's scores of one head, seen or not; 0 where attention keeps them on the chip.
    pub scores: f64,
    pub micro_batches: f64,
}

impl Tokens {
    /// One sequence of so many tokens, of which the head is read for `predicted`.
    pub fn of(length: usize, predicted: usize) -> Self {
        let n = length as f64;
        Self { rows: n, predicted: predicted as f64, keys: n * (n + 1.0) / 2.0, scores: scores(length, 0), micro_batches: 0.0 }
    }

    /// These and others.
    pub fn and(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            predicted: self.predicted + other.predicted,
            keys: self.keys + other.keys,
            scores: self.scores + other.scores,
            micro_batches: self.micro_batches + other.micro_batches,
        }
    }

    /// One of so many equal parts.
    pub fn part(self, parts: usize) -> Self {
        let parts = parts.max(1) as f64;
        Self {
            rows: self.rows / parts,
            predicted: self.predicted / parts,
            keys: self.keys / parts,
            scores: self.scores / parts,
            micro_batches: self.micro_batches / parts,
        }
    }
}

/// Sequences that are all alike, and how one process cuts them.
#[derive(Clone, Copy, Debug)]
pub struct Sequences {
    /// The sequences of this process.
    pub count: usize,
    /// Tokens of a prompt.
    pub prompt: usize,
    /// Tokens of a response.
    pub response: usize,
    /// Responses to a prompt that may go through the trunk with it.
    pub together: usize,
    /// Slices of this process, which are cut one by one.
    pub slices: usize,
    pub cut: Cut,
}

impl Sequences {
    /// The tokens of a pass over all of them.
    pub fn tokens(self) -> Tokens {
        let [count, slices] = [self.count, self.slices].map(|size| size.max(1));
        let slice = count.div_ceil(slices);
        let most = match self.cut {
            Cut::Sequences(most) => most,
            Cut::Tokens(most) => most / self.prompt.saturating_add(self.response).max(1),
        };
        let micro = most.clamp(1, slice);
        let micro_batches = slices as f64 * slice.div_ceil(micro) as f64;
        let (n, p, r) = (count as f64, self.prompt as f64, self.response as f64);
        let prompts = n / self.together.clamp(1, micro) as f64;
        Tokens {
            rows: prompts * p + n * r,
            predicted: n * r,
            keys: prompts * p * (p + 1.0) / 2.0 + n * r * (p + (r + 1.0) / 2.0),
            scores: prompts * scores(self.prompt, 0) + n * scores(self.response, self.prompt),
            micro_batches,
        }
    }
}

/// A generation of one process, whose responses are all as long as they may be.
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    pub prompts: usize,
    /// Responses to each prompt.
    pub samples: usize,
    /// The most sequences that decode side by side.
    pub slots: usize,
    /// Tokens of a prompt.
    pub prompt: usize,
    /// Tokens of a response.
    pub response: usize,
    /// The most tokens of prompts in one pass.
    pub budget: usize,
}

impl Generation {
    fn sequences(self) -> f64 {
        self.prompts as f64 * self.samples as f64
    }

    /// Tokens that are sampled.
    pub fn sampled(self) -> f64 {
        self.sequences() * self.response as f64
    }

    /// Rounds of sequences that begin and end together.
    fn rounds(self) -> f64 {
        (self.sequences() / self.slots.max(1) as f64).ceil()
    }

    /// Decode steps.
    pub fn steps(self) -> f64 {
        self.rounds() * self.response as f64
    }

    /// The mean number of keys that a sampled token sees.
    pub fn mean_keys(self) -> f64 {
        self.prompt as f64 + (self.response as f64 + 1.0) / 2.0
    }

    /// The passes over the prompts, each once for all its responses; the head is read for their last tokens.
    pub fn prefill(self) -> Tokens {
        let (n, p) = (self.prompts as f64, self.prompt as f64);
        let by_budget = (n * p / self.budget.max(self.prompt).max(1) as f64).ceil();
        let passes = by_budget.max(self.rounds().min(n));
        Tokens {
            rows: n * p,
            predicted: n,
            keys: n * p * (p + 1.0) / 2.0,
            scores: n * scores(self.prompt, 0),
            micro_batches: passes,
        }
    }
}
