//! The score of a token in a row of logits.

use super::distribution::Distribution;
use burnish_model::ops::LargestLogits;
use burnish_rollout::TokenScores;

/// The score of one token.
pub(crate) struct TokenScore {
    log_prob: f32,
    rank: u32,
    /// The most probable tokens, with their log-probabilities.
    top: Vec<(u32, f32)>,
}

/// Scores a token in a row of logits, at temperature 1, with the `top` most probable tokens; of equal ones the lower id is first.
/// Equal logits have equal log-probabilities.
pub(crate) fn score(logits: &[f32], token: u32, top: usize) -> TokenScore {
    let normaliser = Distribution::default().fill(&mut logits.to_vec(), 1.0);
    let logit = logits[token as usize];
    let rank = logits.iter().filter(|&&other| other >= logit).count() as u32;
    let mut largest = LargestLogits::new(top.min(logits.len()));
    if top > 0 {
        largest.add(0, logits);
    }
    let top = largest.entries.iter().map(|&(logit, id)| (id, normaliser.log_prob(logit))).collect();
    TokenScore { log_prob: normaliser.log_prob(logit), rank, top }
}

impl TokenScore {
    /// Appends the score to those of the tokens before; all have the same number of most probable tokens.
    pub(crate) fn append_to(self, scores: &mut TokenScores) {
        scores.top = self.top.len();
        scores.log_probs.push(self.log_prob);
        scores.ranks.push(self.rank);
        scores.top_ids.extend(self.top.iter().map(|(id, _)| id));
        scores.top_log_probs.extend(self.top.iter().map(|(_, log_prob)| log_prob));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_log_probs_of_a_row() {
        let logits = [0.0, 3.0, 1.0, 3.0, f32::NEG_INFINITY];
        let sum = logits.iter().map(|x| f64::from(*x).exp()).sum::<f64>().ln();
        let mut scores = TokenScores::default();
        [(1, 2), (3, 2), (2, 3), (4, 5)].iter().for_each(|(token, _)| score(&logits, *token, 3).append_to(&mut scores));
        assert_eq!(scores.ranks, [2, 2, 3, 5], "equal tokens have the lower rank, as in vLLM");
        assert_eq!((scores.top, &scores.top_ids[..3]), (3, &[1, 3, 2][..]));
        assert_eq!(scores.top(1, 2).map(|(id, _)| id).collect::<Vec<_>>(), [1, 3]);
        assert!((f64::from(scores.log_probs[0]) - (3.0 - sum)).abs() < 1e-6);
        assert_eq!((scores.log_probs[0], scores.log_probs[3]), (scores.top_log_probs[0], f32::NEG_INFINITY));
        assert!(score(&logits, 0, 0).top.is_empty() && score(&logits, 0, 9).top.len() == 5);
    }
}
