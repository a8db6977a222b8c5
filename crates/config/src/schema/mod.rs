//! The typed configuration. Meanings, allowed values and defaults are in the YAML files of `config/`, and only there.

mod actor;
mod agent;
mod algorithm;
mod consumers;
mod critic;
mod data;
mod distill;
mod distillation;
mod dpo;
mod evaluation;
mod generation;
mod loadable;
mod location_setting;
mod location_settings;
mod lora;
mod multi_turn;
mod optim;
mod ppo;
mod reward;
mod rm;
mod rollout;
mod sampling;
mod sft;
mod stage;
mod trainer;
mod types;
mod validate;
mod validate_agent;
mod validate_algorithm;
mod validate_batches;
mod validate_critic;
mod validate_data;
mod validate_distillation;
mod validate_models;
mod validate_reward;
mod validate_rollout;
mod validate_trainer;

pub use actor::*;
pub use agent::{AGENT_LOOPS, AgentConfig, AgentKeys, AgentStartMethod, DEFAULT_AGENT_LOOP, EnvironmentConfig, LoopChoice};
pub use algorithm::*;
pub use critic::*;
pub use data::*;
pub use distill::*;
pub use distillation::{
    DistillationConfig, DistillationLossConfig, DistillationMode, LossSupport, SdpoConfig, TEACHER, TeacherContext,
    TeacherModelKind,
};
pub use dpo::*;
pub use evaluation::*;
pub use generation::*;
pub use loadable::Schema;
pub use location_setting::{LocationKind, LocationSetting};
pub use lora::LoraKeys;
pub use multi_turn::{FORMAT, MultiTurnConfig, ToolResponseTruncateSide};
pub use optim::*;
pub use ppo::*;
pub use reward::*;
pub use rm::*;
pub use rollout::*;
pub use sampling::{SamplingKeys, TokenRuleKeys, token_id};
pub use sft::*;
pub use stage::{StageConfig, StageData, StageKeys, StageModelConfig, StageTrainerConfig, StageTruncation};
pub use trainer::*;
pub use types::{Device, Dtype, Frequency, Interface, Location, ModelInit, NumberOrText, OneOrMany, OpenMapping};
