//! The parts of every training run: its loop, its checkpoints, its record, its dry run. Reinforcement learning (`src/trainer/`)
//! and the supervised stages (`src/pipelines/`) each implement [`Pipeline`] and share the rest.
//!
//! [`Run`] is the loop: step, validate, log, save, until the last step or a stop request. A pipeline fills in [`RunSettings`],
//! builds its [`Pipeline`], and calls [`Run::start`] and [`Run::run`].

pub mod agents;
mod alarms;
pub(crate) mod built_in;
pub mod checkpoint_parts;
pub mod clock;
mod context;
pub mod device_memory;
pub mod disk;
pub mod dry_run;
mod earlier_settings;
mod early_stopping;
pub mod generation;
mod hub_model;
pub mod hub_names;
pub mod inputs;
pub mod lora_settings;
pub(crate) mod measure;
pub mod memory_estimate;
pub mod merged_weights;
pub mod models;
pub mod nonfinite;
pub mod openai;
pub mod optim_choices;
mod pipeline;
pub(crate) mod plan_facts;
pub mod probe;
pub mod problems;
pub mod rank_device;
pub mod replay;
pub mod resume;
pub mod reward_plan;
mod run;
pub mod run_folder;
mod saved;
pub mod saved_model;
pub mod second_model;
mod settings;
pub mod sharding_plan;
pub mod sources;
mod start;
pub mod teacher;
pub mod template_date;
pub mod token_rules;
pub mod unused_options;
pub mod unused_schedule;
pub(crate) mod whole_model;
pub mod words;

pub use context::Context;
pub use early_stopping::EarlyStopping;
pub use pipeline::{NothingUpdated, Pipeline};
pub use run::Run;
pub use settings::RunSettings;
