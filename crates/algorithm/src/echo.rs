//! ECHO: the policy also learns to predict what its environment writes (prime-rl's algorithm `echo`).
//!
//! The term is Σ_j λ_j·(−log π_j) / #{j: λ_j ≠ 0} over the tokens of the mini-batch that the environment wrote after the first sampled
//! token, with one weight λ per role. The count is of tokens, not of weights: with one role the term is λ times the mean negative
//! log-likelihood.

/// A message of a conversation in tokens.
#[derive(Clone, Copy, Debug)]
pub struct EchoMessage<'a> {
    pub role: &'a str,
    /// True if the policy sampled it.
    pub sampled: bool,
    pub tokens: usize,
    /// For each token, true if it is content rather than a role or another word of the template; `None` if that is unknown.
    pub content: Option<&'a [bool]>,
}

/// Returns λ of each token of each message. Messages before the first sampled one, and sampled ones, have 0. Where the content is
/// known, the words of the template have 0 too.
pub fn weights(messages: &[EchoMessage], weight_of: impl Fn(&str) -> f64) -> Vec<Vec<f64>> {
    let first = messages.iter().position(|message| message.sampled).unwrap_or(messages.len());
    let of_message = |(place, message): (usize, &EchoMessage)| {
        let weight = if message.sampled || place < first { 0.0 } else { weight_of(message.role) };
        let is_content = |t: usize| message.content.is_none_or(|content| content[t]);
        (0..message.tokens).map(|t| if is_content(t) { weight } else { 0.0 }).collect()
    };
    messages.iter().enumerate().map(of_message).collect()
}

/// The term of some tokens of a mini-batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EchoTerm {
    pub loss: f64,
    /// d loss / d log π of every token.
    pub d_log_prob: Vec<f32>,
    /// The sum of −log π over the tokens with a weight, in nats, and their number.
    pub nll: (f64, f64),
}

/// Returns the term of these tokens. `count` is the number of tokens with a weight in the whole mini-batch; terms of its parts add up.
pub fn term(log_prob: &[f32], weights: &[f32], count: usize) -> EchoTerm {
    let mut term = EchoTerm { d_log_prob: vec![0.0; log_prob.len()], ..EchoTerm::default() };
    for (t, (&log_prob, &weight)) in log_prob.iter().zip(weights).enumerate().filter(|(_, (_, weight))| **weight != 0.0) {
        let (nll, share) = (-f64::from(log_prob), f64::from(weight) / count as f64);
        term.loss += share * nll;
        term.d_log_prob[t] = -share as f32;
        term.nll = (term.nll.0 + nll, term.nll.1 + 1.0);
    }
    term
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_environment_answered_is_learnt() {
        let message = |role, sampled| EchoMessage { role, sampled, tokens: 2, content: None };
        let conversation = [message("tool", false), message("assistant", true), message("tool", false), message("user", false)];
        let weights = weights(&conversation, |role| if role == "tool" { 0.1 } else { 0.0 });
        assert_eq!(weights.concat(), [0.0, 0.0, 0.0, 0.0, 0.1, 0.1, 0.0, 0.0]);
    }

    #[test]
    fn parts_add_up_to_the_mean() {
        let (log_prob, weights) = ([-1.0, -2.0, -3.0, f32::NAN], [0.5, 0.5, 0.5, 0.0]);
        let whole = term(&log_prob, &weights, 3);
        assert_eq!((whole.loss, whole.nll), (1.0, (6.0, 3.0)));
        let parts = term(&log_prob[..2], &weights[..2], 3).loss + term(&log_prob[2..], &weights[2..], 3).loss;
        assert!((parts - 1.0).abs() < 1e-12);
        assert_eq!(whole.d_log_prob[3], 0.0);
    }
}
