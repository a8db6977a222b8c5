//! Registry entry of MLflow.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::names;
use super::run::MlflowRun;
use super::server::{Credentials, MlflowServer};
use crate::bridge::{self, Sdk};
use crate::outbox::{Outbox, RETRY_POLICY, RetryPolicy};
use crate::{TrackedRun, Tracker, TrackerEntry};

pub(crate) const TRACKER: TrackerEntry = TrackerEntry {
    name: "mlflow",
    doc: "An MLflow run of the experiment <project_name>: on the server of $MLFLOW_TRACKING_URI if that is http(s)://, else by the \
          mlflow package, which writes to sqlite:////tmp/mlruns.db unless the variable is set; tables as files of the run",
    reads: &[],
    open,
};

/// Address if MLFLOW_TRACKING_URI is unset, as in verl.
const DEFAULT_URI: &str = "sqlite:////tmp/mlruns.db";
/// Longest wait for the server at the start of the program; after that, training starts and rows wait in the queue.
const OPENING: Duration = Duration::from_secs(10);
/// Prefixes of settings and addresses that only the package supports.
const BY_PACKAGE: [&str; 6] = [
    "MLFLOW_TRACKING_AUTH",
    "MLFLOW_TRACKING_AWS_SIGV4",
    "MLFLOW_TRACKING_CLIENT_CERT_PATH",
    "MLFLOW_TRACKING_SERVER_CERT_PATH",
    "MLFLOW_TRACKING_INSECURE_TLS",
    "MLFLOW_WORKSPACE",
];

fn open(session: &TrackedRun) -> Result<Box<dyn Tracker>> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let uri = set("MLFLOW_TRACKING_URI").unwrap_or_else(|| DEFAULT_URI.to_owned());
    let is_server = ["http://", "https://"].iter().any(|scheme| uri.to_ascii_lowercase().starts_with(scheme));
    if is_server && BY_PACKAGE.iter().all(|name| set(name).is_none()) {
        let server = MlflowServer::new(&uri, &Credentials::from_environment())?;
        return Ok(Box::new(deliver(MlflowRun::new(server, session.clone(), set("MLFLOW_RUN_ID")), RETRY_POLICY)?));
    }
    let params = names::params(&session.config);
    let params: Value = params.into_iter().map(|(key, value)| (key, Value::String(value))).collect();
    bridge::open(
        session,
        Sdk { name: "mlflow", module: "mlflow", package: Some("mlflow"), config: params, rename: names::sanitized },
    )
}

/// Starts to deliver rows. They wait in the queue until the server can be reached.
pub(super) fn deliver(run: MlflowRun, policy: RetryPolicy) -> Result<Outbox> {
    let outbox = Outbox::start(TRACKER.name, run, policy)?;
    outbox.opened(OPENING)?;
    Ok(outbox)
}
