//! Metrics of validation samples: per data source and variable, over the samples of a prompt and then over prompts, under verl's
//! names (`process_validation_metrics`), and pass@k.

use std::collections::BTreeSet;

use super::majority::Votes;
use burnish_tracking::Metrics;

/// One variable of the samples of one prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleGroup {
    pub data_source: String,
    /// `reward`, or the name of a value that scorers report.
    pub variable: String,
    /// Values of the samples that have this variable; at least one.
    pub values: Vec<f64>,
    /// Answers of the same samples, if each has one.
    pub answers: Option<Vec<String>>,
}

/// Returns `val-core/DATA_SOURCE/VARIABLE/mean@N` with `best@N` and `maj@N`, for the variable `acc`, or `reward` if no scorer of
/// the data source reports `acc`. All other variables, and fewer samples, are under `val-aux/`. `n`: samples per prompt.
///
/// mean, std and pass@k use all samples. best, worst and maj are the mean and standard deviation over k samples drawn with
/// replacement, exact instead of verl's 1,000 random draws.
pub fn metrics(groups: &[SampleGroup], n: usize) -> Metrics {
    let mut metrics = Metrics::new();
    let votes = Votes::new(groups.iter().filter_map(|g| g.answers.as_deref()), &draws(n));
    let variables: BTreeSet<(&str, &str)> = groups.iter().map(|g| (g.data_source.as_str(), g.variable.as_str())).collect();
    for &(source, variable) in &variables {
        let groups: Vec<&SampleGroup> = groups.iter().filter(|g| g.data_source == source && g.variable == variable).collect();
        let is_core = variable == if variables.contains(&(source, "acc")) { "acc" } else { "reward" };
        let mut set = |core: bool, name: String, value: Option<f64>| {
            let kind = if core && is_core { "val-core" } else { "val-aux" };
            metrics.extend(value.map(|value| (format!("{kind}/{source}/{variable}/{name}"), value)));
        };
        set(true, format!("mean@{n}"), over(&groups, |g| Some(mean(&g.values))));
        if n == 1 {
            continue;
        }
        set(false, format!("std@{n}"), over(&groups, |g| Some(deviation(&g.values))));
        for draws in draws(n) {
            let statistics: [(&str, bool, Moments); 3] = [
                ("best", draws == n, &|g| Some(extreme(&g.values, draws, 1.0))),
                ("worst", false, &|g| Some(extreme(&g.values, draws, -1.0))),
                ("maj", draws == n, &|g| votes.majority(g.answers.as_ref()?, &g.values, draws)),
            ];
            for (name, core, moments) in statistics {
                let of_prompts: Vec<Option<[f64; 2]>> = groups.iter().map(|group| moments(group)).collect();
                for (i, moment) in ["mean", "std"].into_iter().enumerate() {
                    set(core, format!("{name}@{draws}/{moment}"), over(&of_prompts, |moments| Some(moments.as_ref()?[i])));
                }
            }
        }
        let right_or_wrong = groups.iter().all(|g| g.values.iter().all(|&x| x == 0.0 || x == 1.0));
        for k in std::iter::once(1).chain(draws(n)).filter(|_| is_core && right_or_wrong) {
            set(false, format!("pass@{k}"), over(&groups, |g| pass(&g.values, k)));
        }
    }
    metrics
}

/// Mean and standard deviation of draws from a prompt's samples; `None` without samples to draw.
type Moments<'a> = &'a dyn Fn(&SampleGroup) -> Option<[f64; 2]>;

/// Returns the mean over the prompts that have this value.
fn over<T>(prompts: &[T], number: impl Fn(&T) -> Option<f64>) -> Option<f64> {
    let numbers: Vec<f64> = prompts.iter().filter_map(number).collect();
    (!numbers.is_empty()).then(|| mean(&numbers))
}

/// Returns 2, 4, 8, … below N, and N: the sizes for which verl reports the best, the worst and the majority; empty for N = 1.
fn draws(n: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = std::iter::successors(Some(2), |k| Some(k * 2)).take_while(|&k| k < n).collect();
    sizes.extend((n > 1).then_some(n));
    sizes
}

/// Returns mean and standard deviation of the largest (sign 1) or smallest (sign −1) of `draws` values drawn with replacement:
/// the i-th smallest of N values is the largest of k draws with probability (i/N)ᵏ − ((i−1)/N)ᵏ.
fn extreme(values: &[f64], draws: usize, sign: f64) -> [f64; 2] {
    let mut sorted: Vec<f64> = values.iter().map(|x| sign * x).collect();
    sorted.sort_by(f64::total_cmp);
    let below = |i: usize| (i as f64 / sorted.len() as f64).powi(draws as i32);
    let moment = |power: i32| -> f64 { sorted.iter().enumerate().map(|(i, x)| (below(i + 1) - below(i)) * x.powi(power)).sum() };
    let m = moment(1);
    [sign * m, (moment(2) - m * m).max(0.0).sqrt()]
}

/// Returns the probability that k of these samples, drawn without replacement, include a correct one: 1 − C(n−c, k) / C(n, k),
/// the unbiased estimator of Chen et al. 2021 (arXiv:2107.03374). `None` with fewer than k samples.
fn pass(values: &[f64], k: usize) -> Option<f64> {
    let (n, right) = (values.len(), values.iter().filter(|&&x| x == 1.0).count());
    let none_right: f64 = (n - right + 1..=n).map(|i| 1.0 - k as f64 / i as f64).product();
    (k <= n).then_some(if n - right < k { 1.0 } else { 1.0 - none_right })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the population standard deviation, numpy's default.
fn deviation(values: &[f64]) -> f64 {
    let m = mean(values);
    (values.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_and_worst_of_draws() {
        assert_eq!(draws(1), [0; 0]);
        assert_eq!(draws(2), [2]);
        assert_eq!(draws(12), [2, 4, 8, 12]);
        // Of two draws from {0, 1}, three outcomes in four have a 1, one in four has only ones.
        let [best, std] = extreme(&[1.0, 0.0], 2, 1.0);
        assert!((best - 0.75).abs() < 1e-12 && (std - 0.1875f64.sqrt()).abs() < 1e-12);
        assert!((extreme(&[1.0, 0.0], 2, -1.0)[0] - 0.25).abs() < 1e-12);
        assert_eq!(extreme(&[3.0, 3.0, 3.0], 3, -1.0)[0], 3.0);
    }

    #[test]
    fn pass_is_the_share_of_subsets_with_a_right_sample() {
        for n in 1..=7usize {
            for right in 0..=n {
                let values: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i < right))).collect();
                for k in 1..=n {
                    let subsets: Vec<u32> = (0..1u32 << n).filter(|set| set.count_ones() as usize == k).collect();
                    let passed = subsets.iter().filter(|set| *set & ((1 << right) - 1) != 0).count();
                    let expected = passed as f64 / subsets.len() as f64;
                    assert!((pass(&values, k).unwrap() - expected).abs() < 1e-12, "n {n}, {right} right, k {k}");
                }
                assert_eq!(pass(&values, n + 1), None);
            }
        }
    }
}
