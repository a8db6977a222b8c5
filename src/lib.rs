//! burnish: reinforcement-learning post-training of language models on the burn framework.
//!
//! Reading order: [`trainer`] is the algorithm, phase by phase; [`algorithm`] holds its formulas, [`model`] the network,
//! [`rollout`] generation, [`agent`] conversations of many turns, [`reward`] the scores, [`python`] the processes of users' code, [`data`] what comes in, [`checkpoint`] and [`tracking`] what goes out,
//! [`job`] what all training runs share, [`run`] what a run records of itself, `report` what is shown of that, [`server`] what
//! listens for requests, [`config`] what the
//! user says, on top of [`hydra`]. Dependencies point one way:
//! `algorithm` imports nothing else of ours, and only `cli` and `pipelines` import `trainer`.

pub mod agent;
pub mod algorithm;
pub mod checkpoint;
pub mod cli;
pub mod config;
pub mod data;
pub mod distributed;
pub mod hub;
pub mod hydra;
pub mod job;
pub mod model;
pub mod optim;
pub mod pipelines;
pub mod python;
pub mod report;
pub mod reward;
pub mod rollout;
pub mod run;
pub mod server;
pub mod tracking;
pub mod trainer;
pub mod util;
