//! Transport of rows to the process that imports the package.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;

use super::line::line;
use super::process::BridgeProcess;
use super::sdk::Sdk;
use crate::outbox::{Content, DeliveryError, Outbox, QueuedRow, RETRY_POLICY, Transport};
use crate::{Exit, TrackedRun, Tracker};

/// Time limit for importing a package and beginning a run; MLflow creates a database of fifty tables in that time.
const OPENING: Duration = Duration::from_secs(120);

/// Starts the process and waits until the package has begun a run.
///
/// # Errors
/// If Python or the package is missing, or if the package cannot begin a run.
pub(crate) fn open(session: &TrackedRun, sdk: Sdk) -> Result<Box<dyn Tracker>> {
    let name = sdk.name;
    let process = BridgeProcess::spawn(name, &session.python, &session.dir.join(format!("{name}.log")))?;
    let killer = process.killer();
    let outbox = Outbox::start(name, Bridge { process, sdk, session: session.clone() }, RETRY_POLICY)?;
    if !outbox.opened(OPENING)? {
        bail!("the package of {name} did not begin a run within {OPENING:?}; its output is in {name}.log of the run's folder");
    }
    // The process is killed when the outbox is dropped.
    Ok(Box::new(outbox.with(killer)))
}

struct Bridge {
    process: BridgeProcess,
    sdk: Sdk,
    session: TrackedRun,
}

impl Bridge {
    fn begin(&mut self) -> Result<()> {
        let Self { sdk, session, .. } = &*self;
        let request = json!({
            "tracker": sdk.name, "module": sdk.module, "project": session.project, "experiment": session.experiment,
            "config": sdk.config, "remembered": session.remembered(sdk.name),
        });
        let reply = self.process.ask(&request.to_string())?;
        let Self { sdk, session, .. } = &*self;
        if reply["missing"] == true {
            let (name, python) = (sdk.name, &session.python);
            let how = match sdk.package {
                Some(package) => format!("run `{python} -m pip install {package}`"),
                None => "install it as its documentation describes".to_owned(),
            };
            bail!(
                "trainer.logger names {name}, but {python} has no package {}: {how}, or set reward.python to an interpreter that has it",
                sdk.module
            );
        }
        if let Some(error) = reply["error"].as_str() {
            bail!("trainer.logger names {}, which cannot begin a run: {error}", sdk.name);
        }
        if let Some(id) = reply["remember"].as_str() {
            session.remember(sdk.name, id)?;
        }
        Ok(())
    }

    fn request(&mut self, line: &str, purpose: &str) -> Result<()> {
        let reply = self.process.ask(line).with_context(|| purpose.to_owned())?;
        reply["error"].as_str().map_or(Ok(()), |error| Err(anyhow!("{purpose}: {error}")))
    }
}

impl Transport for Bridge {
    fn open(&mut self) -> Result<(), DeliveryError> {
        self.begin().map_err(|error| DeliveryError::Permanent(0, error))
    }

    fn batch_size(&self, _: &VecDeque<QueuedRow>) -> usize {
        1
    }

    fn send(&mut self, rows: &[QueuedRow]) -> Result<(), DeliveryError> {
        rows.iter().try_for_each(|row| {
            let purpose = match &row.content {
                Content::Metrics(_) => format!("step {}", row.step),
                Content::Table(table) => format!("the table '{}' of step {}", table.name, row.step),
            };
            let line = line(row, self.sdk.rename);
            self.request(&line, &purpose).map_err(|error| DeliveryError::Permanent(1, error))
        })
    }

    fn close(&mut self, exit: Exit) -> Result<(), DeliveryError> {
        let exit = match exit {
            Exit::Finished => "finished",
            Exit::Interrupted => "interrupted",
            Exit::Failed => "failed",
        };
        let reply = self.request(&json!({"exit": exit}).to_string(), "the end of the run");
        reply.map_err(|error| DeliveryError::Permanent(0, error))
    }
}
