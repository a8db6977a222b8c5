//! Metrics of the pairs and steps of a whole batch, under TRL's names.

use super::PairScores;

/// The pairs of a batch.
#[derive(Clone, Debug, Default)]
pub struct PairTally {
    /// All scores; the scores of a pair follow each other.
    scores: Vec<f64>,
    /// Pairs whose chosen score is higher.
    right: usize,
    /// Σ r⁺ − r⁻
    gaps: f64,
}

impl PairTally {
    pub fn add(&mut self, pair: PairScores) {
        self.scores.extend([pair.chosen, pair.rejected]);
        self.right += usize::from(pair.chosen > pair.rejected);
        self.gaps += pair.chosen - pair.rejected;
    }

    /// The metrics of TRL's RewardTrainer; empty without pairs.
    pub fn metrics(&self) -> Vec<(&'static str, f64)> {
        if self.scores.is_empty() {
            return Vec::new();
        }
        let pairs = (self.scores.len() / 2) as f64;
        let (min, max) = (f64::min as fn(f64, f64) -> f64, f64::max as fn(f64, f64) -> f64);
        vec![
            ("accuracy", self.right as f64 / pairs),
            ("margin", self.gaps / pairs),
            ("min_reward", self.scores.iter().copied().fold(f64::INFINITY, min)),
            ("mean_reward", self.mean()),
            ("max_reward", self.scores.iter().copied().fold(f64::NEG_INFINITY, max)),
        ]
    }

    /// The metrics that OpenRLHF's evaluation adds: mean and deviation (n − 1) of all scores.
    pub fn spread(&self) -> Vec<(&'static str, f64)> {
        if self.scores.is_empty() {
            return Vec::new();
        }
        let mean = self.mean();
        let squares: f64 = self.scores.iter().map(|score| (score - mean) * (score - mean)).sum();
        vec![("reward_mean", mean), ("reward_std", (squares / (self.scores.len() - 1) as f64).sqrt().max(1e-8))]
    }

    fn mean(&self) -> f64 {
        self.scores.iter().sum::<f64>() / self.scores.len() as f64
    }
}

/// The labelled steps of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepTally {
    steps: usize,
    right: usize,
}

impl StepTally {
    pub fn add(&mut self, right: bool) {
        self.steps += 1;
        self.right += usize::from(right);
    }

    /// The metrics of TRL's PRMTrainer; empty without steps.
    pub fn metrics(&self) -> Vec<(&'static str, f64)> {
        if self.steps == 0 { Vec::new() } else { vec![("accuracy", self.right as f64 / self.steps as f64)] }
    }
}
