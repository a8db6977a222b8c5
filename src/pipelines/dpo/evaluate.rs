//! The loss of pairs or of labelled responses.

use super::example::PreferenceExample;
use super::loss::Loss;
use burnish_algorithm::preference::{Answer, AnswerGrads, AnsweredPair, LabelledAnswer, PairCounts};

/// The contribution of some rows to the loss of their batch, and its gradients by the sums of each response of each row.
pub(super) struct Evaluated {
    pub loss: f64,
    pub grads: Vec<Vec<AnswerGrads>>,
}

impl Loss {
    /// Returns true if [`evaluate`](Self::evaluate) needs all rows of a batch.
    pub(super) fn needs_batch(&self) -> bool {
        match self {
            Self::Pairs(objective) => objective.needs_batch(),
            Self::Rows(objective) => objective.needs_batch(),
        }
    }

    /// Returns true if the probability under the policy weights each pair.
    pub(super) fn weighs(&self) -> bool {
        matches!(self, Self::Pairs(objective) if objective.use_weighting)
    }

    /// Returns the contribution of some rows, with the statistics of their `answers`, to the loss of a batch with these counts. `z`: KTO's,
    /// if the loss reads it.
    pub(super) fn evaluate(
        &self,
        rows: &[&PreferenceExample],
        answers: &[Vec<Answer>],
        counts: &PairCounts,
        z: f64,
    ) -> Evaluated {
        match self {
            Self::Pairs(objective) => {
                let all = objective.evaluate(&pairs(answers), counts);
                let (of_golds, of_gold) = objective.evaluate_gold(&golds(answers), counts);
                let mut of_gold = of_gold.into_iter();
                let with_gold = |(sides, answers): ([AnswerGrads; 2], &Vec<Answer>)| {
                    sides.into_iter().chain(of_gold.by_ref().take(answers.len() - 2)).collect()
                };
                Evaluated { loss: all.loss + of_golds, grads: all.grads.into_iter().zip(answers).map(with_gold).collect() }
            }
            Self::Rows(objective) => {
                let all = objective.evaluate(&labelled(rows, answers), z, counts.pairs);
                let of_row = |log_prob| vec![AnswerGrads { log_prob, ..AnswerGrads::default() }];
                Evaluated { loss: all.loss, grads: all.grads.into_iter().map(of_row).collect() }
            }
        }
    }

    /// Returns TRL's metrics of all rows of a batch.
    pub(super) fn metrics(&self, rows: &[&PreferenceExample], answers: &[Vec<Answer>], z: f64) -> Vec<(&'static str, f64)> {
        match self {
            Self::Pairs(objective) => {
                let mut metrics = objective.metrics(&pairs(answers));
                metrics.retain(|(name, _)| objective.compares() || !name.starts_with("rewards/"));
                let golds = golds(answers);
                let tokens: usize = golds.iter().map(|gold| gold.tokens).sum();
                let nll = -golds.iter().map(|gold| gold.plain).sum::<f64>() / tokens.max(1) as f64;
                metrics.extend((tokens > 0).then_some(("nll_loss", nll)));
                metrics
            }
            Self::Rows(objective) => objective.metrics(&labelled(rows, answers), z),
        }
    }
}

/// Returns the counts of a batch; losses of labelled responses read only the number of rows.
pub(super) fn counts(rows: &[&PreferenceExample]) -> PairCounts {
    PairCounts {
        pairs: rows.len(),
        chosen_tokens: rows.iter().map(|row| row.answers()[0].response.len()).sum(),
        prompt_tokens: rows.iter().map(|row| row.prompt_tokens()).sum(),
        gold_tokens: rows.iter().filter_map(|row| Some(row.answers().get(2)?.response.len())).sum(),
    }
}

fn pairs(answers: &[Vec<Answer>]) -> Vec<AnsweredPair> {
    answers.iter().map(|sides| [sides[0], sides[1]]).collect()
}

/// Returns the gold answers of the rows that have one.
fn golds(answers: &[Vec<Answer>]) -> Vec<Answer> {
    answers.iter().filter_map(|sides| sides.get(2).copied()).collect()
}

fn labelled(rows: &[&PreferenceExample], answers: &[Vec<Answer>]) -> Vec<LabelledAnswer> {
    let of_row = |(row, answers): (&&PreferenceExample, &Vec<Answer>)| LabelledAnswer {
        answer: answers[0],
        desirable: row.labelled().label,
    };
    rows.iter().zip(answers).map(of_row).collect()
}
