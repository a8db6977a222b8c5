//! The comparison of a replayed row with the recorded one, metric by metric.

use std::collections::HashMap;

use super::recorded::MetricRow;

/// Metrics that a replay does not compare: a beginning of their names, with `*` for any part, and the reason.
pub(super) const MEASURED: &[(&str, &str)] = &[
    ("timing_s/", "seconds of a phase"),
    ("timing_per_token_ms/", "seconds of a phase, per token"),
    ("reward/*/latency_ms/", "milliseconds of a call of a reward function"),
    ("perf/throughput", "tokens per second"),
    ("perf/time_per_step", "seconds of the step"),
    ("perf/max_memory", "memory of the process or the GPU"),
    ("perf/cpu_memory", "memory of the process"),
    ("alarm/", "an alarm, which compares the step with steps before it"),
    ("eps", "episodes per second, of `trainer.metric_names: trl`"),
];

/// A metric whose two values differ; `None` for a row without it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MetricPair {
    pub name: String,
    pub record: Option<String>,
    pub replay: Option<String>,
}

/// Result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Comparison {
    /// Number of metrics compared.
    pub compared: usize,
    /// Number of metrics left out by [`MEASURED`].
    pub measured: usize,
    /// Metrics that differ, in the order of the record.
    pub different: Vec<MetricPair>,
}

/// Returns true if a metric is not compared.
pub(super) fn is_measured(name: &str) -> bool {
    let begins = |beginning: &str| match beginning.split_once('*') {
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| rest.contains(after)),
        None => name.starts_with(beginning),
    };
    MEASURED.iter().any(|(beginning, _)| begins(beginning) && (*beginning != "eps" || name == "eps"))
}

/// Compares two rows, byte for byte. `part`: true if the replay may lack metrics, because it did not validate.
pub(super) fn compare(record: &MetricRow, replay: &MetricRow, part: bool) -> Comparison {
    // The first value of a name counts.
    let by_name = |row: &'_ MetricRow| -> HashMap<String, String> { row.iter().rev().cloned().collect() };
    let (of_record, of_replay) = (by_name(record), by_name(replay));
    let further = replay.iter().filter(|(name, _)| !of_record.contains_key(name));
    let mut comparison = Comparison::default();
    for (name, _) in record.iter().chain(further) {
        let (record, replay) = (of_record.get(name).cloned(), of_replay.get(name).cloned());
        if is_measured(name) {
            comparison.measured += 1;
        } else if !(part && replay.is_none()) {
            comparison.compared += 1;
            comparison.different.extend((record != replay).then(|| MetricPair { name: name.clone(), record, replay }));
        }
    }
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search through all names for each name took 12 s.
    #[test]
    fn many_names_are_compared_in_linear_time() {
        let row: MetricRow = (0..200_000).map(|i| (format!("k{i}"), "1".to_owned())).collect();
        let started = std::time::Instant::now();
        let found = compare(&row, &row[1..].to_vec(), false);
        assert_eq!((found.compared, found.different.len(), found.different[0].name.as_str()), (200_000, 1, "k0"));
        assert!(started.elapsed().as_secs() < 15, "{:?}", started.elapsed());
    }

    #[test]
    fn every_bit_counts_but_those_of_clocks() {
        let row = |of: &[(&str, &str)]| -> MetricRow {
            of.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let record = row(&[("a", "1.0"), ("timing_s/step", "2.0"), ("eps", "3.0"), ("epsilon", "4.0"), ("val/x", "5.0")]);
        assert!(is_measured("reward/mine/latency_ms/p50") && !is_measured("reward/mine/mean"));
        let same = row(&[("a", "1.0"), ("timing_s/step", "9.0"), ("epsilon", "4.0")]);
        let found = compare(&record, &same, true);
        assert_eq!((found.compared, found.measured, found.different.len()), (2, 2, 0));
        let found = compare(&record, &row(&[("a", "1"), ("epsilon", "4.0"), ("new", "NaN")]), false);
        let names: Vec<&str> = found.different.iter().map(|pair| pair.name.as_str()).collect();
        assert_eq!(names, ["a", "val/x", "new"]);
        assert_eq!((found.different[0].record.as_deref(), found.different[2].record.as_deref()), (Some("1.0"), None));
    }
}
