//! A run on an MLflow server: it is found or created, receives metrics, and is ended.

use std::collections::{HashMap, VecDeque};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use serde_json::{Map, Value, json};

use super::super::outbox::{Content, DeliveryError, QueuedRow, Transport};
use super::super::{Cell, Exit, Metrics, StepTable, TrackedRun};
use super::names;
use super::server::{MlflowError, MlflowServer};

/// MLflow's limits per call.
const MAX_METRICS: usize = 1000;
const MAX_PARAMS: usize = 100;

/// Name under which the run's id is stored in the run's folder.
const REMEMBERED: &str = "mlflow";

pub(super) struct MlflowRun {
    server: MlflowServer,
    session: TrackedRun,
    /// `MLFLOW_RUN_ID`: an existing run, created by another program.
    existing_id: Option<String>,
    open_run: Option<FoundRun>,
    /// Parameters that the server does not have yet.
    params: Vec<(String, String)>,
}

struct FoundRun {
    id: String,
    artifacts: String,
}

impl MlflowRun {
    pub(super) fn new(server: MlflowServer, session: TrackedRun, existing_id: Option<String>) -> Self {
        let params = names::params(&session.config);
        Self { server, session, existing_id, open_run: None, params }
    }

    /// Finds or creates the run to write to. The status of a resumed run is set to running again.
    fn find(&mut self) -> Result<FoundRun, DeliveryError> {
        let (id, existing_id) = match (&self.existing_id, self.session.remembered(REMEMBERED)) {
            (Some(id), _) => (id.clone(), true),
            (None, Some(id)) => (id, false),
            (None, None) => return self.create(),
        };
        match self.resume(&id) {
            Ok(found) => Ok(found),
            Err(failure) if failure.is_temporary() => Err(failure.into_delivery_error(0)),
            Err(failure) if existing_id => Err(DeliveryError::Permanent(0, anyhow!("MLFLOW_RUN_ID={id}: {failure}"))),
            Err(failure) if failure.status == Some(404) || failure.status == Some(200) => {
                tracing::warn!("mlflow: cannot resume the run {id}, so a new one begins: {failure}");
                self.create()
            }
            Err(failure) => Err(failure.into_delivery_error(0)),
        }
    }

    fn resume(&mut self, id: &str) -> Result<FoundRun, MlflowError> {
        let reply = self.server.get("runs/get", &[("run_id", id)])?;
        let run = &reply["run"];
        if run["info"]["lifecycle_stage"] == "deleted" {
            return Err(MlflowError::malformed_reply("the run was deleted"));
        }
        let found = parse_run(run)?;
        self.server.post("runs/update", &json!({"run_id": found.id, "status": "RUNNING"}))?;
        self.keep_new_params(run["data"]["params"].as_array().map_or(&[], Vec::as_slice));
        Ok(found)
    }

    /// Drops the parameters that the run already has. MLflow never changes a parameter, and rejects a whole call that contains
    /// one with a different value.
    fn keep_new_params(&mut self, known: &[Value]) {
        let known: HashMap<&str, &str> =
            known.iter().filter_map(|param| Some((param["key"].as_str()?, param["value"].as_str()?))).collect();
        let mut changed = Vec::new();
        self.params.retain(|(key, value)| match known.get(key.as_str()) {
            Some(before) if before != value => {
                changed.push(format!("{key}={value} (was {before})"));
                false
            }
            known => known.is_none(),
        });
        if !changed.is_empty() {
            tracing::warn!(
                "mlflow: parameters of an MLflow run cannot change; it keeps its old values of {}",
                changed.join(", ")
            );
        }
    }

    fn create(&self) -> Result<FoundRun, DeliveryError> {
        let experiment = self.experiment()?;
        let user = ["USER", "USERNAME"].iter().find_map(|name| std::env::var(name).ok()).unwrap_or_default();
        let tags = [("mlflow.user", user.as_str()), ("mlflow.source.name", "trainer"), ("mlflow.source.type", "LOCAL")];
        let tags: Vec<Value> =
            tags.iter().filter(|(_, value)| !value.is_empty()).map(|(key, value)| json!({"key": key, "value": value})).collect();
        let started = milliseconds(self.session.started);
        let run = json!({"experiment_id": experiment, "run_name": self.session.experiment, "start_time": started, "tags": tags});
        let reply = self.server.post("runs/create", &run).map_err(|failure| failure.into_delivery_error(0))?;
        let found = parse_run(&reply["run"]).map_err(|failure| failure.into_delivery_error(0))?;
        if let Err(error) = self.session.remember(REMEMBERED, &found.id) {
            tracing::warn!("mlflow: a resumed run will not find its run {} again: {error:#}", found.id);
        }
        tracing::info!("mlflow: {}/#/experiments/{experiment}/runs/{}", self.server.address(), found.id);
        Ok(found)
    }

    /// Returns the id of the project's experiment; creates the experiment if it does not exist.
    fn experiment(&self) -> Result<String, DeliveryError> {
        let name = self.session.project.as_str();
        let get = || self.server.get("experiments/get-by-name", &[("experiment_name", name)]);
        let known = get().or_else(|failure| {
            if failure.status != Some(404) {
                return Err(failure);
            }
            match self.server.post("experiments/create", &json!({"name": name})) {
                // Another process created it in the meantime.
                Err(failure) if failure.code == "RESOURCE_ALREADY_EXISTS" => get(),
                made => made.map(|reply| json!({"experiment": reply})),
            }
        });
        let known = known.map_err(|failure| failure.into_delivery_error(0))?;
        let experiment = &known["experiment"];
        let Some(id) = experiment["experiment_id"].as_str() else {
            return Err(MlflowError::malformed_reply(format!("{} returned no experiment: {known}", self.server.address()))
                .into_delivery_error(0));
        };
        if experiment["lifecycle_stage"] == "deleted" {
            return Err(DeliveryError::Permanent(
                0,
                anyhow!(
                    "the MLflow experiment '{name}' was deleted: restore it (mlflow experiments restore --experiment-id {id}), or choose \
                     another trainer.project_name"
                ),
            ));
        }
        Ok(id.to_owned())
    }

    fn send_params(&mut self, id: &str) -> Result<(), DeliveryError> {
        while !self.params.is_empty() {
            let count = self.params.len().min(MAX_PARAMS);
            let params: Vec<Value> =
                self.params[..count].iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
            match self.server.post("runs/log-batch", &json!({"run_id": id, "params": params})) {
                Err(failure) if failure.is_temporary() => return Err(failure.into_delivery_error(0)),
                // A run without its settings is better than no run.
                Err(failure) => tracing::warn!("mlflow: {count} settings are not recorded: {failure}"),
                Ok(_) => {}
            }
            self.params.drain(..count);
        }
        Ok(())
    }

    fn send_metrics(&self, rows: &[QueuedRow]) -> Result<(), DeliveryError> {
        let metrics: Vec<Value> = rows.iter().flat_map(metrics_of).collect();
        let mut refused = Vec::new();
        for metrics in metrics.chunks(MAX_METRICS) {
            self.send_batch(metrics, &mut refused)?;
        }
        let Some((first, why)) = refused.first() else { return Ok(()) };
        let mut steps: Vec<&Value> = refused.iter().map(|(metric, _)| &metric["step"]).collect();
        steps.dedup();
        let others = if refused.len() > 1 { format!(" and {} more values", refused.len() - 1) } else { String::new() };
        Err(DeliveryError::Permanent(steps.len(), anyhow!("{} of step {}{others}: {why}", first["key"], first["step"])))
    }

    /// Sends metrics. If the server rejects several metrics, they are halved until the rejected ones are found, so that a bad
    /// name loses no other metric.
    fn send_batch(&self, metrics: &[Value], refused: &mut Vec<(Value, MlflowError)>) -> Result<(), DeliveryError> {
        let id = self.id();
        let sent = self.server.post("runs/log-batch", &json!({"run_id": id, "metrics": metrics}));
        match (sent, metrics) {
            (Ok(_), _) => {}
            (Err(failure), [metric]) if failure.status == Some(400) => refused.push((metric.clone(), failure)),
            (Err(failure), metrics) if failure.status == Some(400) => {
                let (first, second) = metrics.split_at(metrics.len() / 2);
                self.send_batch(first, refused)?;
                self.send_batch(second, refused)?;
            }
            (Err(failure), metrics) => {
                let mut steps: Vec<&Value> = metrics.iter().map(|metric| &metric["step"]).collect();
                steps.dedup();
                return Err(failure.into_delivery_error(steps.len()));
            }
        }
        Ok(())
    }

    /// Sends a table as an artifact of the run, like verl's validation samples.
    fn send_table(&self, step: u64, table: &StepTable) -> Result<(), DeliveryError> {
        let artifacts = self.open_run.as_ref().map_or("", |found| &found.artifacts);
        let Some(root) = artifacts.strip_prefix("mlflow-artifacts:/").map(|root| root.trim_matches('/')) else {
            return Err(DeliveryError::Permanent(
                1,
                anyhow!(
                    "the table '{}' of step {step}: the run's files are in {artifacts}, which the server does not serve: start it with \
                     --serve-artifacts, or use the mlflow package (MLFLOW_TRACKING_URI without http)",
                    table.name
                ),
            ));
        };
        let path = format!("{root}/{}", file_name(step, table));
        self.server.put_artifact(&path, records(table).to_string().as_bytes()).map_err(|failure| failure.into_delivery_error(1))
    }

    fn id(&self) -> &str {
        self.open_run.as_ref().map_or("", |found| &found.id)
    }
}

impl Transport for MlflowRun {
    fn open(&mut self) -> Result<(), DeliveryError> {
        if self.open_run.is_none() {
            self.open_run = Some(self.find()?);
        }
        let id = self.id().to_owned();
        self.send_params(&id)
    }

    fn batch_size(&self, waiting: &VecDeque<QueuedRow>) -> usize {
        let mut room = MAX_METRICS;
        let fits = |row: &&QueuedRow| match &row.content {
            Content::Metrics(metrics) => {
                let fits = metrics.len() <= room;
                room = room.saturating_sub(metrics.len());
                fits
            }
            Content::Table(_) => false,
        };
        waiting.iter().take_while(fits).count()
    }

    fn send(&mut self, rows: &[QueuedRow]) -> Result<(), DeliveryError> {
        match rows {
            [QueuedRow { step, content: Content::Table(table), .. }] => self.send_table(*step, table),
            rows => self.send_metrics(rows),
        }
    }

    fn close(&mut self, exit: Exit) -> Result<(), DeliveryError> {
        let end = json!({"run_id": self.id(), "status": status(exit), "end_time": milliseconds(SystemTime::now())});
        self.server.post("runs/update", &end).map(|_| ()).map_err(|failure| failure.into_delivery_error(0))
    }
}

pub(super) fn status(exit: Exit) -> &'static str {
    match exit {
        Exit::Finished => "FINISHED",
        Exit::Interrupted => "KILLED",
        Exit::Failed => "FAILED",
    }
}

fn parse_run(run: &Value) -> Result<FoundRun, MlflowError> {
    let text = |name: &str| run["info"][name].as_str().map(str::to_owned);
    match (text("run_id"), text("artifact_uri")) {
        (Some(id), artifacts) => Ok(FoundRun { id, artifacts: artifacts.unwrap_or_default() }),
        _ => Err(MlflowError::malformed_reply(format!("the reply does not name a run: {run}"))),
    }
}

fn metrics_of(row: &QueuedRow) -> Vec<Value> {
    let Content::Metrics(metrics) = &row.content else { return Vec::new() };
    let timestamp = milliseconds(row.time);
    unique(metrics)
        .into_iter()
        .map(|(key, value)| json!({"key": key, "value": number(value), "timestamp": timestamp, "step": row.step}))
        .collect()
}

/// Returns the metrics by their sanitized names. As in verl's dictionary, the last of two metrics with the same name counts.
fn unique(metrics: &Metrics) -> Vec<(String, f64)> {
    let named: Metrics = metrics.iter().map(|(name, value)| (names::sanitized(name), value)).collect();
    named.into_iter().collect()
}

/// Returns a number as JSON; values that JSON lacks are written as by MLflow's client.
fn number(value: f64) -> Value {
    match value {
        value if value.is_finite() => json!(value),
        value if value.is_nan() => json!("NaN"),
        value => json!(if value > 0.0 { "Infinity" } else { "-Infinity" }),
    }
}

fn file_name(step: u64, table: &StepTable) -> String {
    let name: String = table.name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
    format!("{name}_step{step}.json")
}

/// Returns a table as a JSON list of objects, one per row.
fn records(table: &StepTable) -> Value {
    let value = |cell: &Cell| match cell {
        Cell::Text(text) => json!(text),
        Cell::Number(value) => number(*value),
        Cell::None => Value::Null,
    };
    let record = |row: &Vec<Cell>| -> Map<String, Value> { table.columns.iter().cloned().zip(row.iter().map(value)).collect() };
    table.rows.iter().map(record).collect()
}

fn milliseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64)
}
