//! burnish: reinforcement-learning post-training of language models on the burn framework.
//!
//! Reading order: [`trainer`] is the algorithm, phase by phase; [`pipelines`] holds the stages around it, [`job`] the parts that
//! all training runs share, [`cli`] the commands. Everything below them is a separate crate under `crates/`, re-exported here by
//! its name: [`algorithm`] holds the formulas, [`model`] the network, [`rollout`] generation, [`reward`] the scores, and so on.
//! `CONTRIBUTING.md` lists the crates; `docs/tour.md` follows one training step through them.

pub mod cli;
pub mod job;
pub mod pipelines;
pub mod trainer;

pub use burnish_agent as agent;
pub use burnish_algorithm as algorithm;
pub use burnish_checkpoint as checkpoint;
pub use burnish_config as config;
pub use burnish_convert as convert;
pub use burnish_data as data;
pub use burnish_distributed as distributed;
pub use burnish_doctor as doctor;
pub use burnish_gguf as gguf;
pub use burnish_hub as hub;
pub use burnish_hydra as hydra;
pub use burnish_model as model;
pub use burnish_optim as optim;
pub use burnish_python as python;
pub use burnish_registry as registry;
pub use burnish_report as report;
pub use burnish_reward as reward;
pub use burnish_reward_model as reward_model;
pub use burnish_run as run;
pub use burnish_server as server;
pub use burnish_tracking as tracking;
pub use burnish_util as util;

/// Generation: its plain types, and the engine that runs on burnish's own model.
pub mod rollout {
    pub use burnish_engine::*;
    pub use burnish_rollout::*;
}
