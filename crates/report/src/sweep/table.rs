//! A sweep as text for people and as rows for programs.

use serde_json::{Map, Value, json};

use super::group::Combination;
use super::jobs::Sweep;
use burnish_util::number::{four_digits, short};

impl Sweep {
    /// Returns the table of combinations: state, count, mean and standard deviation of the last value of the metric.
    pub fn text(&self) -> String {
        let combinations = self.combinations();
        let metric = self.metric.as_ref().map_or("no results yet", |(name, _)| name.as_str());
        let mut rows = vec![["", "N", metric, "JOBS"].map(str::to_owned).to_vec()];
        rows.extend(combinations.iter().map(|one| {
            let (count, value) = match one.spread {
                None => ("0".to_owned(), "-".to_owned()),
                Some(spread) => {
                    let deviation = spread.deviation.map_or(String::new(), |deviation| format!(" ± {}", short(round(deviation))));
                    (spread.count.to_string(), format!("{}{deviation}", four_digits(spread.mean)))
                }
            };
            vec![one.label.clone(), count, value, self.states(one)]
        }));
        format!("sweep {}: mean ± standard deviation over the seeds\n{}", self.dir.display(), in_columns(&rows))
    }

    /// Counts the states of a combination's jobs: `2 finished, 1 failed`.
    fn states(&self, one: &Combination) -> String {
        let mut counts: Vec<(&str, usize)> = vec![];
        for state in one.jobs.iter().map(|job| self.jobs[*job].state()) {
            match counts.iter_mut().find(|(known, _)| *known == state) {
                Some((_, count)) => *count += 1,
                None => counts.push((state, 1)),
            }
        }
        counts.iter().map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
    }

    /// Returns a row per combination, with null for numbers that are not known or not finite: its values by their keys, the metric, and the statistics.
    pub fn table(&self) -> Vec<Map<String, Value>> {
        let row = |one: &Combination| {
            let mut row = self.values(one.jobs[0], &self.compared_keys());
            let spread = one.spread;
            let number = |of: Option<f64>| json!(of);
            row.insert("metric".into(), json!(self.metric.as_ref().map(|(name, _)| name)));
            row.insert("count".into(), json!(spread.map_or(0, |spread| spread.count)));
            row.insert("mean".into(), number(spread.map(|spread| spread.mean)));
            row.insert("sd".into(), number(spread.and_then(|spread| spread.deviation)));
            row.insert("min".into(), number(spread.map(|spread| spread.least)));
            row.insert("max".into(), number(spread.map(|spread| spread.greatest)));
            row.insert("jobs".into(), json!(self.states(one)));
            row
        };
        self.combinations().iter().map(row).collect()
    }

    /// Returns a row per job and step, with all swept values and all metrics. Numbers that are not finite are null.
    pub fn rows(&self) -> Vec<Map<String, Value>> {
        let keys: Vec<usize> = (0..self.record.keys.len()).collect();
        let mut rows = vec![];
        for (index, job) in self.jobs.iter().enumerate() {
            for step in job.series.steps() {
                let mut row = self.values(index, &keys);
                row.insert("job".into(), json!(job.job.name));
                row.insert("step".into(), json!(step));
                row.extend(job.series.at(step).map(|(name, value)| (name.to_owned(), json!(value))));
                rows.push(row);
            }
        }
        rows
    }

    fn values(&self, job: usize, keys: &[usize]) -> Map<String, Value> {
        keys.iter().map(|key| (self.record.keys[*key].clone(), self.value(job, *key))).collect()
    }

    /// Returns the value of a swept key: a number if all its values are, or else its text.
    fn value(&self, job: usize, key: usize) -> Value {
        let number = |text: &str| serde_json::from_str::<serde_json::Number>(text).ok();
        let text = &self.jobs[job].job.values[key];
        match self.record.jobs.iter().all(|job| number(&job.values[key]).is_some()) {
            true => json!(number(text)),
            false => json!(text.trim_matches(['\'', '"'])),
        }
    }
}

/// Returns rows as lines with aligned columns.
fn in_columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, text)| format!("{text:<width$}", width = width(column)));
        format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Rounds to two significant digits.
fn round(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}
