//! verl's metrics file: one JSON object per step, `{"step":3,"data":{"actor/pg_loss":-0.012345678,…}}`.
//!
//! The content depends only on the metrics: equal runs write equal bytes. Numbers are the shortest text that reads back as the
//! same `f64`. The three values that JSON lacks are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`, which Python's `float`
//! and Rust's `parse` understand (verl writes `null` for all three).

use std::path::PathBuf;

use anyhow::Result;

use super::{Ending, Metrics, StepTable, TrackedRun, Tracker, TrackerEntry};
use burnish_util::jsonl::StepLog;

pub(super) const TRACKER: TrackerEntry = TrackerEntry {
    name: "file",
    doc: "JSON lines {\"step\":N,\"data\":{…}} in $VERL_FILE_LOGGER_PATH, else $VERL_FILE_LOGGER_ROOT/<project>/<experiment>.jsonl, \
          else <default_local_dir>/metrics.jsonl; every run writes it, named or not, since `trainer report` reads it; a fresh run starts \
                a new file, a resumed run continues it; tables are in samples.jsonl of the run's folder",
    reads: &[],
    open: |session| {
        let (path, resumed) = (place(session), session.resumed_step);
        let is_own = path == session.dir.join(METRICS);
        let log = if is_own { StepLog::open_own(&path, resumed) } else { StepLog::open(&path, resumed) };
        Ok(Box::new(MetricsFile(log?)))
    },
};

struct MetricsFile(StepLog);

impl Tracker for MetricsFile {
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        self.0.append(&row(step, metrics)?)
    }

    fn table(&mut self, _: u64, _: &StepTable) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &Ending) -> Result<()> {
        self.0.flush()
    }
}

/// Name of the metrics file of a run whose folder does not name another.
pub const METRICS: &str = "metrics.jsonl";

/// Returns the path of a run's metrics file.
pub fn place(session: &TrackedRun) -> PathBuf {
    path(session, |variable| std::env::var_os(variable).map(PathBuf::from))
}

fn path(session: &TrackedRun, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let set = |name| variable(name).filter(|path| !path.as_os_str().is_empty());
    let in_root = |root: PathBuf| root.join(&session.project).join(format!("{}.jsonl", session.experiment));
    set("VERL_FILE_LOGGER_PATH")
        .or_else(|| set("VERL_FILE_LOGGER_ROOT").map(in_root))
        .unwrap_or_else(|| session.dir.join(METRICS))
}

fn row(step: u64, metrics: &Metrics) -> Result<String> {
    let fields = metrics.iter().map(|(name, value)| Ok(format!("{}:{}", serde_json::to_string(name)?, number(value)?)));
    let fields: Vec<String> = fields.collect::<Result<_>>()?;
    Ok(format!("{{\"step\":{step},\"data\":{{{}}}}}", fields.join(",")))
}

fn number(value: f64) -> Result<String> {
    Ok(match value {
        _ if value.is_nan() => "\"NaN\"".into(),
        f64::INFINITY => "\"Infinity\"".into(),
        f64::NEG_INFINITY => "\"-Infinity\"".into(),
        _ => serde_json::to_string(&value)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_json_with_exact_numbers_in_order() {
        let values = [("b\"", 0.1 + 0.2), ("a", 1.0), ("c", f64::NAN), ("d", f64::NEG_INFINITY), ("e", 1e-300)];
        let row = row(7, &values.into_iter().collect()).unwrap();
        let expected = r#"{"step":7,"data":{"b\"":0.30000000000000004,"a":1.0,"c":"NaN","d":"-Infinity","e":1e-300}}"#;
        assert_eq!(row, expected);
        serde_json::from_str::<serde_json::Value>(&row).unwrap();
    }

    #[test]
    fn the_environment_moves_the_file() {
        let session = TrackedRun { project: "p".into(), experiment: "e".into(), ..TrackedRun::in_folder("local".into(), None) };
        let place = |known: &[(&str, &str)]| {
            path(&session, |name| known.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value)))
        };
        assert_eq!(place(&[]), PathBuf::from("local/metrics.jsonl"));
        assert_eq!(place(&[("VERL_FILE_LOGGER_ROOT", "root")]), PathBuf::from("root/p/e.jsonl"));
        assert_eq!(place(&[("VERL_FILE_LOGGER_ROOT", "root"), ("VERL_FILE_LOGGER_PATH", "x")]), PathBuf::from("x"));
    }
}
