//! verl's metrics file: one JSON object per step, `{"step":3,"data":{"actor/pg_loss":-0.012345678,…}}`.
//!
//! It is a function of the metrics alone: equal runs write equal bytes. Numbers are the shortest text that reads back as
//! the same `f64`; the three values JSON lacks are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`, which Python's
//! `float` and Rust's `parse` understand (verl writes `null` for all three).

use std::path::{Path, PathBuf};

use anyhow::Result;

use serde_json::{Map, Value};

use super::{Entry, Metrics, Session, Table, Tracker};
use crate::util::jsonl::StepLog;

pub(super) const TRACKER: Entry = Entry {
    name: "file",
    doc: "JSON lines {\"step\":N,\"data\":{…}} in $VERL_FILE_LOGGER_PATH, else $VERL_FILE_LOGGER_ROOT/<project>/<experiment>.jsonl, \
          else <default_local_dir>/metrics.jsonl; rows of tables in a file of their own beside it, metrics.TABLE.jsonl; a fresh run starts the file anew, a resumed run continues it",
    open: |session| {
        let path = path(session, |variable| std::env::var_os(variable).map(PathBuf::from));
        let rows = StepLog::open(&path, session.resumed_step)?;
        Ok(Box::new(MetricsFile { path, rows, resumed_step: session.resumed_step, tables: Vec::new() }))
    },
};

struct MetricsFile {
    path: PathBuf,
    rows: StepLog,
    resumed_step: Option<u64>,
    /// By name; opened with the first table.
    tables: Vec<(&'static str, StepLog)>,
}

impl Tracker for MetricsFile {
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        self.rows.append(&row(step, metrics)?)
    }

    fn table(&mut self, step: u64, table: &Table) -> Result<()> {
        let known = self.tables.iter().position(|(name, _)| *name == table.name);
        let at = match known {
            Some(at) => at,
            None => {
                let log = StepLog::open(&beside(&self.path, table.name), self.resumed_step)?;
                self.tables.push((table.name, log));
                self.tables.len() - 1
            }
        };
        for row in &table.rows {
            let texts = table.columns.iter().zip(row).map(|(column, text)| (column.clone(), text.clone().into()));
            let row: Map<String, Value> = std::iter::once(("step".to_owned(), step.into())).chain(texts).collect();
            self.tables[at].1.append(&serde_json::to_string(&row)?)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

fn path(session: &Session, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let set = |name| variable(name).filter(|path| !path.as_os_str().is_empty());
    let in_root = |root: PathBuf| root.join(&session.project).join(format!("{}.jsonl", session.experiment));
    set("VERL_FILE_LOGGER_PATH")
        .or_else(|| set("VERL_FILE_LOGGER_ROOT").map(in_root))
        .unwrap_or_else(|| session.dir.join("metrics.jsonl"))
}

/// `metrics.jsonl` → `metrics.NAME.jsonl`.
fn beside(path: &Path, name: &str) -> PathBuf {
    path.with_extension(format!("{name}.jsonl"))
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
    use super::super::Progress;
    use super::*;

    #[test]
    fn rows_are_json_with_exact_numbers_in_order() {
        let values = [("b\"", 0.1 + 0.2), ("a", 1.0), ("c", f64::NAN), ("d", f64::NEG_INFINITY), ("e", 1e-300)];
        let row = row(7, &values.into_iter().collect()).unwrap();
        let expected = r#"{"step":7,"data":{"b\"":0.30000000000000004,"a":1.0,"c":"NaN","d":"-Infinity","e":1e-300}}"#;
        assert_eq!(row, expected);
        serde_json::from_str::<serde_json::Value>(&row).unwrap();
    }

    fn session(dir: PathBuf, resumed_step: Option<u64>) -> Session {
        let [project, experiment, config_json] = ["p", "e", "{}"].map(String::from);
        Session { project, experiment, dir, resumed_step, config_json, progress: Progress::hidden() }
    }

    #[test]
    fn rows_of_tables_have_a_file_of_their_own_that_a_resumed_run_continues() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.jsonl");
        let log = |resumed_step, steps: &[u64]| {
            let rows = StepLog::open(&path, resumed_step).unwrap();
            let mut tracker = MetricsFile { path: path.clone(), rows, resumed_step, tables: Vec::new() };
            for &step in steps {
                let rows = vec![vec!["1 + 1".into(), "2\n".into()], vec!["1 + 2".into(), step.to_string()]];
                tracker.table(step, &Table { name: "texts", columns: vec!["query".into(), "response".into()], rows }).unwrap();
            }
            std::fs::read_to_string(dir.path().join("run.texts.jsonl")).unwrap()
        };
        let first =
            "{\"step\":1,\"query\":\"1 + 1\",\"response\":\"2\\n\"}\n{\"step\":1,\"query\":\"1 + 2\",\"response\":\"1\"}\n";
        assert_eq!(log(None, &[1]), first);
        let whole = log(None, &[1, 2, 3]);
        assert!(whole.starts_with(first));
        assert_eq!(log(Some(2), &[3]), whole);
    }

    #[test]
    fn the_environment_moves_the_file() {
        let session = session("local".into(), None);
        let place = |known: &[(&str, &str)]| {
            path(&session, |name| known.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value)))
        };
        assert_eq!(place(&[]), PathBuf::from("local/metrics.jsonl"));
        assert_eq!(place(&[("VERL_FILE_LOGGER_ROOT", "root")]), PathBuf::from("root/p/e.jsonl"));
        assert_eq!(place(&[("VERL_FILE_LOGGER_ROOT", "root"), ("VERL_FILE_LOGGER_PATH", "x")]), PathBuf::from("x"));
    }
}
