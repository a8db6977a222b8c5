//! MLflow: by its REST interface if the address is a server's, by MLflow's Python package for all other addresses.
//!
//! As in verl, `trainer.project_name` is MLflow's experiment and `trainer.experiment_name` is the name of the run;
//! `MLFLOW_RUN_ID` names an existing run to write to instead. Other kinds of storage (SQL databases, folders, Databricks) and
//! ways to log in are left to the package.

mod names;
mod run;
mod server;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::bridge::{self, Sdk};
use super::outbox::{Outbox, PATIENCE, Patience};
use super::{Entry, Session, Tracker};
use run::Run;
use server::{Credentials, Server};

pub(super) const TRACKER: Entry = Entry {
    name: "mlflow",
    doc: "An MLflow run of the experiment <project_name>: on the server of $MLFLOW_TRACKING_URI if that is http(s)://, else by the \
          mlflow package, at sqlite:////tmp/mlruns.db unless the variable says otherwise; tables as files of the run",
    reads: &[],
    open,
};

/// The address if MLFLOW_TRACKING_URI is unset, as in verl.
const DEFAULT_URI: &str = "sqlite:////tmp/mlruns.db";
/// The longest wait for the server at the start of the program; after that, training starts and rows wait in the queue.
const OPENING: Duration = Duration::from_secs(10);
/// The beginnings of settings and addresses that only the package supports.
const BY_PACKAGE: [&str; 6] = [
    "MLFLOW_TRACKING_AUTH",
    "MLFLOW_TRACKING_AWS_SIGV4",
    "MLFLOW_TRACKING_CLIENT_CERT_PATH",
    "MLFLOW_TRACKING_SERVER_CERT_PATH",
    "MLFLOW_TRACKING_INSECURE_TLS",
    "MLFLOW_WORKSPACE",
];

fn open(session: &Session) -> Result<Box<dyn Tracker>> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let uri = set("MLFLOW_TRACKING_URI").unwrap_or_else(|| DEFAULT_URI.to_owned());
    let is_server = ["http://", "https://"].iter().any(|scheme| uri.to_ascii_lowercase().starts_with(scheme));
    if is_server && BY_PACKAGE.iter().all(|name| set(name).is_none()) {
        let server = Server::new(&uri, &Credentials::from_environment())?;
        return Ok(Box::new(deliver(Run::new(server, session.clone(), set("MLFLOW_RUN_ID")), PATIENCE)?));
    }
    let params = names::params(&session.config);
    let params: Value = params.into_iter().map(|(key, value)| (key, Value::String(value))).collect();
    bridge::open(
        session,
        Sdk { name: "mlflow", module: "mlflow", package: Some("mlflow"), config: params, rename: names::sanitized },
    )
}

/// Starts to deliver rows. They wait in the queue until the server can be reached.
fn deliver(run: Run, patience: Patience) -> Result<Outbox> {
    let outbox = Outbox::start(TRACKER.name, run, patience)?;
    outbox.opened(OPENING)?;
    Ok(outbox)
}
