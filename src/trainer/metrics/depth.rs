//! The difference between generation and training by the depth of a token in its response.

use burnish_algorithm::sequences;

/// First depths of the buckets, in tokens from the beginning of the response, and the metric of each: the mean of verl's
/// `training/rollout_probs_diff_mean` over the tokens of the bucket.
const BUCKETS: [(usize, &str); 5] = [
    (0, "training/rollout_probs_diff_mean/0-15"),
    (16, "training/rollout_probs_diff_mean/16-63"),
    (64, "training/rollout_probs_diff_mean/64-255"),
    (256, "training/rollout_probs_diff_mean/256-1023"),
    (1024, "training/rollout_probs_diff_mean/1024+"),
];

/// A metric with the sum and the number of its values.
pub(crate) type DepthSum = (&'static str, f64, f64);

/// Returns Σ |π of generation − π of training| and the number of tokens of each bucket that has any. Log-probabilities are columns,
/// cut by `offsets`; `reads`: true for tokens that were sampled.
pub(crate) fn probability_differences(
    offsets: &[usize],
    reads: impl Fn(usize) -> bool,
    generation: &[f32],
    training: &[f32],
) -> Vec<DepthSum> {
    let mut sums = BUCKETS.map(|(_, name)| (name, 0.0, 0.0));
    for tokens in sequences(offsets) {
        let start = tokens.start;
        for t in tokens.filter(|&t| reads(t)) {
            let bucket = BUCKETS.iter().rposition(|(first, _)| t - start >= *first).unwrap_or(0);
            sums[bucket].1 += (f64::from(generation[t]).exp() - f64::from(training[t]).exp()).abs();
            sums[bucket].2 += 1.0;
        }
    }
    sums.into_iter().filter(|(_, _, count)| *count > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_counted_from_the_beginning_of_each_response() {
        // Two responses: in the first, of 20 tokens, the last four differ by 0.25; in the second, of 70, the last by 0.5.
        let generation = vec![0.5_f32.ln(); 90];
        let mut training = generation.clone();
        training[16..20].fill(0.25_f32.ln());
        training[89] = 1.0_f32.ln();
        let found = probability_differences(&[0, 20, 90], |t| t != 0, &generation, &training);
        let expected = [("0-15", 0.0, 31.0), ("16-63", 0.25 * 4.0, 52.0), ("64-255", 0.5, 6.0)];
        assert_eq!(found.len(), expected.len());
        for ((name, sum, count), (end, a, b)) in found.into_iter().zip(expected) {
            assert!(name.ends_with(end) && (sum - a).abs() < 1e-6 && count == b, "{name} {sum} {count}");
        }
    }
}
