//! Trackers that can be reached only by their own Python package: a small process imports the package and is sent the rows.

mod process;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use super::outbox::{Carrier, Content, Outbox, PATIENCE, Row, Trouble};
use super::{Cell, Entry, Exit, Session, Tracker};
use process::Process;

/// The time limit for importing a package and beginning a run; MLflow creates a database of fifty tables in that time.
const OPENING: Duration = Duration::from_secs(120);

/// A Python package and how to use it.
pub(super) struct Sdk {
    /// The name in `trainer.logger`, and the key of the class in bridge.py.
    pub name: &'static str,
    /// The module that is imported.
    pub module: &'static str,
    /// The name for `pip install`; `None` if the package is not on PyPI.
    pub package: Option<&'static str>,
    /// The settings of the run, in the form that the package gets.
    pub config: Value,
    /// The package's name for a metric.
    pub rename: fn(&str) -> String,
}

pub(super) const SWANLAB: Entry = Entry {
    name: "swanlab",
    doc: "A SwanLab experiment, by the swanlab package and its variables: SWANLAB_API_KEY, SWANLAB_MODE (cloud, local, offline, disabled), \
          SWANLAB_LOG_DIR",
    reads: &[],
    open: |session| open(session, Sdk::plain("swanlab", "swanlab", Some("swanlab"), session)),
};

pub(super) const TRACKIO: Entry = Entry {
    name: "trackio",
    doc: "A Trackio run, by the trackio package and its variables: TRACKIO_DIR, TRACKIO_SPACE_ID",
    reads: &[],
    open: |session| open(session, Sdk::plain("trackio", "trackio", Some("trackio"), session)),
};

pub(super) const CLEARML: Entry = Entry {
    name: "clearml",
    doc: "A ClearML task, by the clearml package and its settings (clearml.conf, CLEARML_*); a value that is not finite is a line of its \
          console, since its curves would show 0",
    reads: &[],
    open: |session| open(session, Sdk::plain("clearml", "clearml", Some("clearml"), session)),
};

pub(super) const VEMLP_WANDB: Entry = Entry {
    name: "vemlp_wandb",
    doc: "Volcengine's copy of W&B, by the volcengine_ml_platform package and VOLC_ACCESS_KEY_ID, VOLC_SECRET_ACCESS_KEY, \
          MLP_TRACKING_REGION",
    reads: &[],
    open: |session| open(session, Sdk::plain("vemlp_wandb", "volcengine_ml_platform", None, session)),
};

impl Sdk {
    fn plain(name: &'static str, module: &'static str, package: Option<&'static str>, session: &Session) -> Self {
        Self { name, module, package, config: session.config.clone(), rename: str::to_owned }
    }
}

/// Starts the process and waits until the package has begun a run.
///
/// # Errors
/// If there is no Python or no such package, or if the package cannot begin a run.
pub(super) fn open(session: &Session, sdk: Sdk) -> Result<Box<dyn Tracker>> {
    let name = sdk.name;
    let process = Process::spawn(name, &session.python, &session.dir.join(format!("{name}.log")))?;
    let killer = process.killer();
    let outbox = Outbox::start(name, Bridge { process, sdk, session: session.clone() }, PATIENCE)?;
    if !outbox.opened(OPENING)? {
        bail!(
            "the package of {name} did not begin a run within {OPENING:?}; what it printed is in {name}.log of the run's folder"
        );
    }
    // The process is killed when the outbox is dropped.
    Ok(Box::new(outbox.with(killer)))
}

struct Bridge {
    process: Process,
    sdk: Sdk,
    session: Session,
}

impl Bridge {
    fn begin(&mut self) -> Result<()> {
        let Self { sdk, session, .. } = &*self;
        let request = json!({
            "tracker": sdk.name, "module": sdk.module, "project": session.project, "experiment": session.experiment,
            "config": sdk.config, "remembered": session.remembered(sdk.name),
        });
        let answer = self.process.ask(&request.to_string())?;
        let Self { sdk, session, .. } = &*self;
        if answer["missing"] == true {
            let (name, python) = (sdk.name, &session.python);
            let how = match sdk.package {
                Some(package) => format!("run `{python} -m pip install {package}`"),
                None => "install it as its makers say".to_owned(),
            };
            bail!(
                "trainer.logger names {name}, but {python} has no package {}: {how}, or name the interpreter that has it in reward.python",
                sdk.module
            );
        }
        if let Some(error) = answer["error"].as_str() {
            bail!("trainer.logger names {}, which cannot begin a run: {error}", sdk.name);
        }
        if let Some(id) = answer["remember"].as_str() {
            session.remember(sdk.name, id)?;
        }
        Ok(())
    }

    fn say(&mut self, line: &str, what: &str) -> Result<()> {
        let answer = self.process.ask(line).with_context(|| what.to_owned())?;
        answer["error"].as_str().map_or(Ok(()), |error| Err(anyhow!("{what}: {error}")))
    }
}

impl Carrier for Bridge {
    fn open(&mut self) -> Result<(), Trouble> {
        self.begin().map_err(|error| Trouble::Lasting(0, error))
    }

    fn reach(&self, _: &VecDeque<Row>) -> usize {
        1
    }

    fn carry(&mut self, rows: &[Row]) -> Result<(), Trouble> {
        rows.iter().try_for_each(|row| {
            let what = match &row.content {
                Content::Metrics(_) => format!("step {}", row.step),
                Content::Table(table) => format!("the table '{}' of step {}", table.name, row.step),
            };
            let line = line(row, self.sdk.rename);
            self.say(&line, &what).map_err(|error| Trouble::Lasting(1, error))
        })
    }

    fn close(&mut self, exit: Exit) -> Result<(), Trouble> {
        let exit = match exit {
            Exit::Finished => "finished",
            Exit::Interrupted => "interrupted",
            Exit::Failed => "failed",
        };
        let said = self.say(&json!({"exit": exit}).to_string(), "the end of the run");
        said.map_err(|error| Trouble::Lasting(0, error))
    }
}

/// A row as JSON, with Python's words for the numbers that JSON lacks.
fn line(row: &Row, rename: fn(&str) -> String) -> String {
    let step = row.step;
    match &row.content {
        Content::Metrics(metrics) => {
            let time = row.time.duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis());
            let mut line = format!("{{\"step\":{step},\"time\":{time},\"metrics\":{{");
            for (i, (name, value)) in metrics.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                _ = write!(line, "{comma}{}:{}", Value::from(rename(name)), number(value));
            }
            line.push_str("}}");
            line
        }
        Content::Table(table) => {
            let rows: Vec<String> = table.rows.iter().map(|row| list(row.iter().map(cell))).collect();
            let (name, columns) = (Value::from(table.name), Value::from(table.columns.clone()));
            format!("{{\"step\":{step},\"name\":{name},\"columns\":{columns},\"rows\":{}}}", list(rows))
        }
    }
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => Value::from(text.as_str()).to_string(),
        Cell::Number(value) => number(*value),
        Cell::None => "null".to_owned(),
    }
}

fn number(value: f64) -> String {
    match value {
        value if value.is_finite() => Value::from(value).to_string(),
        value if value.is_nan() => "NaN".to_owned(),
        value => if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
    }
}
