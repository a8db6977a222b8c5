//! DAPO's soft overlong punishment: a penalty that grows over the last tokens before the limit.

use super::shaping::Shaping;

pub(crate) const SHAPING: Shaping = Shaping {
    name: "overlong_buffer",
    doc: "A penalty that grows over the last L tokens before the limit.\n\
          Formula: s ← s + min(−(length − (max_resp_len − L))/L·penalty_factor, 0).\n\
          Paper: Yu et al. 2025, DAPO, arXiv:2503.14476, eq. 13.\n\
          verl: DAPORewardManager.\n\
          OpenRLHF: apply_overlong_penalty.\n\
          TRL: get_soft_overlong_punishment, whose factor is 1.\n\
          Deviation: beyond max_resp_len the penalty keeps growing, as in verl; the paper, OpenRLHF and TRL stop at \
          −penalty_factor. Up to there, usually the longest allowed response, all are equal.\n\
          When: responses run into the length limit, and a correct long one should still be worth something.",
};

/// Named values, one per sequence; `None` for sequences without a score.
pub type Extras = Vec<(String, Vec<Option<f64>>)>;

/// The settings of the step `overlong_buffer`.
#[derive(Clone, Debug, PartialEq)]
pub struct OverlongBuffer {
    /// L in tokens, above 0 and at most `max_resp_len`.
    pub len: usize,
    /// The length at which the penalty reaches its full size.
    pub max_resp_len: usize,
    pub penalty_factor: f64,
    /// True if `overlong_reward` and `overlong` are logged.
    pub log: bool,
}

impl OverlongBuffer {
    fn penalty(&self, length: usize) -> f64 {
        let exceed = length as f64 - (self.max_resp_len as f64 - self.len as f64);
        // A short response must lose 0 and not −0.
        if exceed > 0.0 { -exceed / self.len as f64 * self.penalty_factor } else { 0.0 }
    }

    pub(super) fn apply(&self, scores: &mut [Option<f64>], lengths: &[usize]) -> Extras {
        let mut penalties = Vec::with_capacity(scores.len());
        for (score, &length) in scores.iter_mut().zip(lengths) {
            let penalty = score.map(|_| self.penalty(length));
            *score = score.zip(penalty).map(|(score, penalty)| score + penalty);
            penalties.push(penalty);
        }
        if !self.log {
            return Extras::new();
        }
        let is_overlong = penalties.iter().map(|penalty| penalty.map(|p| f64::from(u8::from(p < 0.0)))).collect();
        vec![("overlong_reward".into(), penalties), ("overlong".into(), is_overlong)]
    }
}

#[cfg(test)]
mod tests {
    use super::OverlongBuffer;

    #[test]
    fn the_penalty_begins_at_the_buffer_and_is_whole_at_the_limit() {
        let overlong = OverlongBuffer { len: 4, max_resp_len: 10, penalty_factor: 0.5, log: false };
        assert_eq!([0, 6, 7, 10, 12].map(|length| overlong.penalty(length)), [0.0, 0.0, -0.125, -0.5, -0.75]);
    }
}
