//! The latency and the errors of reward functions: `reward/FUNCTION/latency_ms/*`, `reward/exceptions`, …

use std::time::Duration;

use super::side::SamplingSide;
use burnish_reward::stats::CallCounts;
use burnish_tracking::Metrics;

impl SamplingSide {
    /// Reports all calls since the last row, including the calls of validation. Reports nothing if every function is a built-in
    /// rule, which takes microseconds and whose errors end the run.
    pub(crate) fn report_rewards(&self, metrics: &mut Metrics) {
        let of_ranks = self.ranks.gather(self.rewards.stats.take());
        let mut counts = CallCounts::default();
        of_ranks.into_iter().for_each(|own| counts.add(own));
        if self.rewards.is_remote() || !self.rewards.fails() {
            report(counts, metrics);
        }
    }
}

fn report(counts: CallCounts, metrics: &mut Metrics) {
    for (function, calls) in counts.calls {
        let mut milliseconds: Vec<f64> = calls.iter().map(Duration::as_secs_f64).map(|seconds| seconds * 1e3).collect();
        milliseconds.sort_by(f64::total_cmp);
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
            metrics.set(format!("reward/{function}/latency_ms/{name}"), percentile(&milliseconds, share));
        }
        metrics.set(format!("reward/{function}/calls"), milliseconds.len() as f64);
    }
    for (name, count) in [("exceptions", counts.exceptions), ("timeouts", counts.timeouts), ("crashes", counts.crashes)] {
        metrics.set(format!("reward/{name}"), count as f64);
    }
}

/// Returns the smallest of the sorted values that at least this share of them does not exceed.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!([0.5, 0.9, 0.99, 1.0].map(|share| percentile(&values, share)), [100.0, 180.0, 198.0, 200.0]);
        assert_eq!(percentile(&[7.0], 0.5), 7.0);
    }
}
