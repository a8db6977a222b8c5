//! MLflow: by its REST interface if the address is the address of a server, by MLflow's Python package for all other addresses.
//!
//! `trainer.project_name` is MLflow's experiment and `trainer.experiment_name` is the name of the run, as in verl.
//! `MLFLOW_RUN_ID` names an existing run to write to instead. Other kinds of storage (SQL databases, folders, Databricks) and
//! other ways to log in are left to the package.

mod entry;
mod names;
mod run;
mod server;
#[cfg(test)]
mod tests;

pub(super) use entry::TRACKER;
