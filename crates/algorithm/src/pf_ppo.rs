//! PF-PPO: the batch is resampled with replacement, so that informative responses occur more often.
//!
//! In verl it follows `gae`, after the advantages are computed, and draws as many sequences as the batch has.

/// Added to every weight, so that a batch in which all weights are 0 is sampled uniformly.
const EPSILON: f64 = 1e-8;

/// A row of [`REWEIGHTINGS`].
pub struct Reweighting {
    /// The value of `algorithm.pf_ppo.reweight_method`.
    pub name: &'static str,
    /// The documentation of the entry, in the format of [`Estimator::doc`](super::advantage::Estimator::doc).
    pub doc: &'static str,
    /// Returns the weight of a score in a batch, given the lowest and the highest score of the batch.
    weight: fn(score: f64, min: f64, greatest: f64, power: f64) -> f64,
}

/// Every method that `algorithm.pf_ppo.reweight_method` can name.
pub static REWEIGHTINGS: &[Reweighting] = &[
    Reweighting {
        name: "pow",
        doc: "The further a score is from 0, the more often it is drawn.\n\
              Formula: w = |s|^weight_pow + 1e-8.\n\
              Paper: Shen and Zhang 2024, Policy filtration in RLHF, arXiv:2409.06957.\n\
              verl: compute_pf_ppo_reweight_data.\n\
              When: scores are centred, so that those near 0 say the least.",
        weight: |score, _, _, power| score.abs().powf(power),
    },
    Reweighting {
        name: "max_min",
        doc: "Only the best and the worst are drawn.\n\
              Formula: w = 1 + 1e-8 if s is the greatest or the least score of the batch, else 1e-8.\n\
              Paper: Shen and Zhang 2024, Policy filtration in RLHF, arXiv:2409.06957.\n\
              verl: compute_pf_ppo_reweight_data.\n\
              When: scores in between are not to be trusted.",
        weight: |score, min, greatest, _| f64::from(u8::from(score == greatest || score == min)),
    },
    Reweighting {
        name: "max_random",
        doc: "The best are drawn four times as often as any other.\n\
              Formula: w = 0.4 + 1e-8 if s is the greatest score of the batch, else 0.1 + 1e-8.\n\
              Paper: Shen and Zhang 2024, Policy filtration in RLHF, arXiv:2409.06957.\n\
              verl: compute_pf_ppo_reweight_data.\n\
              When: good responses are rare.",
        weight: |score, _, greatest, _| if score == greatest { 0.4 } else { 0.1 },
    },
];

/// Returns the method with this name.
pub fn find(name: &str) -> Option<&'static Reweighting> {
    REWEIGHTINGS.iter().find(|method| method.name == name)
}

/// Returns all names, for messages and documentation.
pub fn names() -> Vec<&'static str> {
    REWEIGHTINGS.iter().map(|method| method.name).collect()
}

impl Reweighting {
    /// Returns the weight of each sequence. A sequence without a score is never drawn. If no sequence has a score, all weights
    /// are equal. `power` is `algorithm.pf_ppo.weight_pow`, at least 0.
    pub fn weights(&self, scores: &[Option<f64>], power: f64) -> Vec<f64> {
        let given = || scores.iter().copied().flatten();
        let min = given().fold(f64::INFINITY, f64::min);
        let greatest = given().fold(f64::NEG_INFINITY, f64::max);
        let of_none = if given().next().is_none() { EPSILON } else { 0.0 };
        let weight = |score: f64| (self.weight)(score, min, greatest, power) + EPSILON;
        scores.iter().map(|score| score.map_or(of_none, weight)).collect()
    }
}

/// Returns `n` indices of `weights`, drawn with replacement in proportion to their weights. `uniform` draws from [0, 1). Empty if
/// no weight is above 0.
pub fn resample(weights: &[f64], n: usize, uniform: &mut dyn FnMut() -> f64) -> Vec<usize> {
    let Some(last) = weights.iter().rposition(|&weight| weight > 0.0) else { return Vec::new() };
    let mut total = 0.0;
    let ends: Vec<f64> = weights
        .iter()
        .map(|weight| {
            total += weight;
            total
        })
        .collect();
    let mut draw = || {
        let position = total * uniform();
        // The product may be rounded up to the total weight, which is above the last index.
        ends.partition_point(|&end| end <= position).min(last)
    };
    (0..n).map(|_| draw()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn indices_come_up_as_often_as_they_weigh() {
        let weights = [1.0, 0.0, 3.0, 0.0];
        let mut next = 0.0;
        let drawn = resample(&weights, 400, &mut || {
            next += 1.0 / 400.0;
            next - 1.0 / 400.0
        });
        assert_eq!([0, 1, 2, 3].map(|i| drawn.iter().filter(|&&d| d == i).count()), [100, 0, 300, 0]);
        assert_eq!(resample(&weights, 2, &mut || 1.0), [2, 2]);
        assert!(resample(&[0.0], 2, &mut || 0.5).is_empty() && resample(&[], 2, &mut || 0.5).is_empty());
    }

    #[test]
    fn only_a_batch_without_any_score_draws_what_has_none() {
        for method in REWEIGHTINGS {
            assert_eq!(method.weights(&[None, None], 2.0), [1e-8, 1e-8], "{}", method.name);
            let weights = method.weights(&[None, Some(0.0)], 2.0);
            assert!(weights[0] == 0.0 && weights[1] > 0.0, "{}", method.name);
            assert!(find(method.name).is_some() && method.doc.contains("\nverl: ") && method.doc.contains("\nFormula: "));
        }
        assert_eq!(names(), ["pow", "max_min", "max_random"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_cannot_be_drawn_is_not(weights in prop::collection::vec(prop::option::of(1e-8..10.0f64), 1..8), draws in prop::collection::vec(0.0..1.0f64, 20)) {
            let weights: Vec<f64> = weights.into_iter().map(Option::unwrap_or_default).collect();
            let mut draws = draws.into_iter();
            let drawn = resample(&weights, 20, &mut || draws.next().unwrap());
            prop_assert!(drawn.iter().all(|&i| weights[i] > 0.0));
            prop_assert_eq!(drawn.len(), if weights.iter().any(|&w| w > 0.0) { 20 } else { 0 });
        }
    }
}
