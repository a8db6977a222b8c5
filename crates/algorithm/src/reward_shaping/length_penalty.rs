//! A penalty for the length of a response, relative to the longest response to the same prompt.

use std::collections::BTreeMap;

use super::shaping::Shaping;
use crate::advantage::stats::mean;

pub(crate) const SHAPING: Shaping = Shaping {
    name: "length_penalty",
    doc: "A response loses a share of the mean score of its group, by its tokens and turns relative to the longest of the group.\n\
          Formula: s ← s − mean·(a·out/max out + b·in/max in + c·turns/max turns), each maximum of the group and at least 1; out: \
          sampled tokens; in: all others, of the prompt too; a, b, c: num_output_tokens_weight, num_input_tokens_weight, num_turns_weight.\n\
          Source: prime-rl 559b447, orchestrator/algo/grpo.py.\n\
          prime-rl: GRPOAlgorithm with length_penalty.\n\
          Deviation: in a group whose mean score is negative nothing changes; prime-rl rewards length there.\n\
          When: solved tasks should be solved with fewer tokens or turns, and groups without a solution should not learn brevity.",
};

/// The weights of the penalty, each 0 or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LengthPenalty {
    pub output_tokens: f64,
    pub input_tokens: f64,
    pub turns: f64,
}

/// The size of a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResponseSize {
    /// Tokens that the policy sampled.
    pub output_tokens: usize,
    /// All other tokens: of the prompt, of tools and of users.
    pub input_tokens: usize,
    /// Turns of the policy.
    pub turns: usize,
}

/// One of the numbers of a size.
type SizePart = fn(&ResponseSize) -> usize;

impl LengthPenalty {
    /// Changes the scores in place. `group`: the prompt of each response. Responses without a score stay without one, and do not count.
    pub fn apply(&self, scores: &mut [Option<f64>], group: &[usize], sizes: &[ResponseSize]) {
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for i in (0..scores.len()).filter(|&i| scores[i].is_some()) {
            members.entry(group[i]).or_default().push(i);
        }
        for own in members.values() {
            let centre = mean(&own.iter().filter_map(|&i| scores[i]).collect::<Vec<_>>());
            if centre <= 0.0 {
                continue;
            }
            let longest = |of: SizePart| own.iter().map(|&i| of(&sizes[i])).fold(1, usize::max);
            let parts: [(f64, SizePart); 3] = [
                (self.output_tokens, |size| size.output_tokens),
                (self.input_tokens, |size| size.input_tokens),
                (self.turns, |size| size.turns),
            ];
            let parts = parts.map(|(weight, of)| (weight, of, longest(of) as f64));
            for &i in own {
                let share: f64 = parts.iter().map(|(weight, of, longest)| weight * of(&sizes[i]) as f64 / longest).sum();
                scores[i] = scores[i].map(|score| score - centre * share);
            }
        }
    }
}
