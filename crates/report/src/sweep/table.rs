//! A sweep as text for people and as rows for programs.

use serde_json::{Map, Value, json};

use super::group::Combination;
use super::jobs::Sweep;
use burnish_util::excerpt::cell;
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
            vec![cell(&one.label), count, value, self.states(one)]
        }));
        format!("sweep {}: mean ± standard deviation of finished jobs over the seeds\n{}", self.dir.display(), in_columns(&rows))
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

    /// Returns a row per combination: its values by their keys, the metric, and the statistics. Numbers that are not known or not
    /// finite are null.
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::page;
    use super::*;
    use burnish_run::{JobState, RunInfo, RunState, SweepJob, SweepRecord};

    /// A sweep of two rates and two seeds. One job has not begun.
    fn write(dir: &Path, metric: &str) {
        let values = [["1e-6", "1"], ["1e-6", "2"], ["1e-5", "1"], ["1e-5", "2"]];
        let job = |values: &[&str; 2]| SweepJob {
            name: values.join("_"),
            values: values.map(str::to_owned).to_vec(),
            settings: String::new(),
            state: JobState::Waiting,
            process: None,
        };
        let keys = ["a.optim.lr", "trainer.seed"].map(str::to_owned).to_vec();
        let jobs: Vec<SweepJob> = values.iter().map(job).collect();
        for (job, last) in jobs.iter().zip([0.25, 0.75, 0.625]) {
            let dir = dir.join(&job.name);
            fs::create_dir_all(&dir).unwrap();
            RunInfo { state: RunState::Finished, step: 2, ..RunInfo::new("ppo", "p", "e") }.write(&dir).unwrap();
            let row = |step: u64, value: f64| format!("{}\n", json!({"step": step, "data": {metric: value, "actor/entropy": 1}}));
            fs::write(dir.join("metrics.jsonl"), row(1, 0.125) + &row(2, last)).unwrap();
        }
        SweepRecord { version: String::new(), command: vec!["trainer".into(), "-m".into()], keys, jobs }.write(dir).unwrap();
    }

    #[test]
    fn seeds_are_averaged_and_the_best_combination_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "val-core/x/acc/mean@1");
        let sweep = Sweep::read(dir.path()).unwrap();
        let text = sweep.text();
        let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["lr=1e-5", "1", "0.6250", "1", "finished,", "1", "waiting"]);
        assert_eq!(lines[2], ["lr=1e-6", "2", "0.5000", "±", "0.35", "2", "finished"]);
        let table = sweep.table();
        assert_eq!((&table[1]["a.optim.lr"], &table[1]["mean"], &table[1]["max"]), (&json!(1e-6), &json!(0.5), &json!(0.75)));
        assert_eq!((&table[0]["sd"], &table[0]["count"]), (&Value::Null, &json!(1)));
        let rows = sweep.rows();
        assert_eq!(rows.len(), 6);
        assert_eq!((&rows[3]["trainer.seed"], &rows[3]["step"], &rows[3]["actor/entropy"]), (&json!(2), &json!(2), &json!(1.0)));
        assert!(page(&sweep).contains(r#"[2,[2,0.5,"#));
        assert_eq!(
            Sweep::folders([dir.path().join("1e-6_1"), dir.path().join("1e-6_2")].iter().map(|run| run.as_path())),
            [dir.path()]
        );
        assert!(Sweep::folders([dir.path().join("other")].iter().map(|run| run.as_path())).is_empty());
    }

    #[test]
    fn a_loss_is_best_when_it_is_small() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "val/loss");
        assert!(Sweep::read(dir.path()).unwrap().text().lines().nth(2).unwrap().contains("lr=1e-6"));
    }
}
