//! The loss of answers, be they pairs or answers with a label.

use super::example::PreferenceExample;
use super::loss::Loss;
use burnish_algorithm::preference::{Answer, AnswerGrads, AnsweredPair, LabelledAnswer, PairCounts};

/// The part that some rows have in the loss of their batch, and its gradients by the sums of each answer of each row.
pub struct Evaluated {
    pub loss: f64,
    pub grads: Vec<Vec<AnswerGrads>>,
}

impl Loss {
    /// True if [`evaluate`](Self::evaluate) takes all rows of a batch only.
    pub fn needs_batch(&self) -> bool {
        match self {
            Self::Pairs(objective) => objective.needs_batch(),
            Self::Rows(objective) => objective.needs_batch(),
        }
    }

    /// True if pairs have weights by how likely the policy is to write them.
    pub fn weighs(&self) -> bool {
        matches!(self, Self::Pairs(objective) if objective.use_weighting)
    }

    /// The part of some rows, with the numbers of their `answers`, in the loss of a batch with these counts. `z`: KTO's, where it is
    /// read.
    pub fn evaluate(&self, rows: &[&PreferenceExample], answers: &[Vec<Answer>], counts: &PairCounts, z: f64) -> Evaluated {
        match self {
            Self::Pairs(objective) => {
                let all = objective.evaluate(&pairs(answers), counts);
                Evaluated { loss: all.loss, grads: all.grads.into_iter().map(Vec::from).collect() }
            }
            Self::Rows(objective) => {
                let all = objective.evaluate(&labelled(rows, answers), z, counts.pairs);
                let of_row = |log_prob| vec![AnswerGrads { log_prob, ..AnswerGrads::default() }];
                Evaluated { loss: all.loss, grads: all.grads.into_iter().map(of_row).collect() }
            }
        }
    }

    /// What TRL reports of all rows of a batch.
    pub fn metrics(&self, rows: &[&PreferenceExample], answers: &[Vec<Answer>], z: f64) -> Vec<(&'static str, f64)> {
        match self {
            Self::Pairs(objective) => {
                let mut metrics = objective.metrics(&pairs(answers));
                metrics.retain(|(name, _)| objective.compares() || !name.starts_with("rewards/"));
                metrics
            }
            Self::Rows(objective) => objective.metrics(&labelled(rows, answers), z),
        }
    }
}

/// The counts of a batch; of answers with a label the number of rows is all that is read.
pub fn counts(rows: &[&PreferenceExample]) -> PairCounts {
    PairCounts {
        pairs: rows.len(),
        chosen_tokens: rows.iter().map(|row| row.answers()[0].response.len()).sum(),
        prompt_tokens: rows.iter().map(|row| row.prompt_tokens()).sum(),
    }
}

fn pairs(answers: &[Vec<Answer>]) -> Vec<AnsweredPair> {
    answers.iter().map(|sides| [sides[0], sides[1]]).collect()
}

fn labelled(rows: &[&PreferenceExample], answers: &[Vec<Answer>]) -> Vec<LabelledAnswer> {
    let of_row = |(row, answers): (&&PreferenceExample, &Vec<Answer>)| LabelledAnswer {
        answer: answers[0],
        desirable: row.labelled().label,
    };
    rows.iter().zip(answers).map(of_row).collect()
}
