//! Combinations of swept values, with statistics over the seeds.

use super::super::compare::short_key;
use super::jobs::{ReadJob, Sweep};

/// The jobs with the same values of all swept keys but the seeds.
#[derive(Debug)]
pub(super) struct Combination {
    /// The values as short settings, such as `lr=1e-6 n=4`.
    pub label: String,
    /// Indices of the jobs.
    pub jobs: Vec<usize>,
    /// The last values of the metric of finished jobs: the values of others are those of earlier steps.
    pub spread: Option<Spread>,
}

/// Statistics of a few numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub count: usize,
    pub mean: f64,
    /// Standard deviation of the sample, with `count - 1`; `None` for one number.
    pub deviation: Option<f64>,
    pub least: f64,
    pub greatest: f64,
}

impl Spread {
    /// Returns the statistics of the finite numbers; `None` without any.
    pub(super) fn of(numbers: &[f64]) -> Option<Self> {
        let finite: Vec<f64> = numbers.iter().copied().filter(|number| number.is_finite()).collect();
        let count = finite.len();
        let mean = finite.iter().sum::<f64>() / count as f64;
        let squares: f64 = finite.iter().map(|number| (number - mean).powi(2)).sum();
        let deviation = (count > 1).then(|| (squares / (count - 1) as f64).sqrt());
        let least = finite.iter().copied().reduce(f64::min)?;
        Some(Self { count, mean, deviation, least, greatest: finite.iter().copied().reduce(f64::max)? })
    }
}

/// Returns true for a key whose values repeat a run.
fn is_seed(key: &str) -> bool {
    key.rsplit('.').next().is_some_and(|last| last == "seed" || last.ends_with("_seed"))
}

impl Sweep {
    /// Returns the swept keys without seeds, by their indices.
    pub(super) fn compared_keys(&self) -> Vec<usize> {
        (0..self.record.keys.len()).filter(|index| !is_seed(&self.record.keys[*index])).collect()
    }

    /// Returns the combinations, the best first; those without results last.
    pub(super) fn combinations(&self) -> Vec<Combination> {
        let compared = self.compared_keys();
        let keys: Vec<&str> = self.record.keys.iter().map(String::as_str).collect();
        let values = |job: &ReadJob| compared.iter().map(|key| job.job.values[*key].clone()).collect::<Vec<_>>();
        let mut found: Vec<(Vec<String>, Vec<usize>)> = vec![];
        for (index, job) in self.jobs.iter().enumerate() {
            let values = values(job);
            match found.iter_mut().find(|(known, _)| *known == values) {
                Some((_, jobs)) => jobs.push(index),
                None => found.push((values, vec![index])),
            }
        }
        let label = |values: &[String]| {
            let settings = compared.iter().zip(values).map(|(key, value)| format!("{}={value}", short_key(keys[*key], &keys)));
            settings.collect::<Vec<_>>().join(" ")
        };
        let mut combinations: Vec<Combination> = found
            .into_iter()
            .map(|(values, jobs)| {
                let label = if compared.is_empty() { "all jobs".to_owned() } else { label(&values) };
                let numbers: Vec<f64> =
                    jobs.iter().filter(|job| self.jobs[**job].is_finished()).filter_map(|job| self.result(*job)).collect();
                Combination { label, spread: Spread::of(&numbers), jobs }
            })
            .collect();
        let greater = self.metric.as_ref().is_none_or(|(_, greater)| *greater);
        let rank =
            |one: &Combination| one.spread.map_or(f64::INFINITY, |spread| if greater { -spread.mean } else { spread.mean });
        combinations.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
        combinations
    }

    /// Returns the last value of the metric of a job.
    pub(super) fn result(&self, job: usize) -> Option<f64> {
        let (metric, _) = self.metric.as_ref()?;
        Some(self.jobs[job].series.last(metric)?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_a_sample() {
        let spread = Spread::of(&[2.0, 4.0, f64::NAN, 6.0]).unwrap();
        assert_eq!(spread, Spread { count: 3, mean: 4.0, deviation: Some(2.0), least: 2.0, greatest: 6.0 });
        assert_eq!(Spread::of(&[1.5]).unwrap().deviation, None);
        assert!(Spread::of(&[f64::NAN]).is_none() && Spread::of(&[]).is_none());
        assert_eq!(["trainer.seed", "data.shuffle_seed", "seed", "a.seeds", "lr"].map(is_seed), [true, true, true, false, false]);
    }
}
