//! Mixtures of experts: feed-forward layers that send each token to a few of many MLPs.
//!
//! - `mixture_config.rs`, `grouped_experts.rs`: shape and switches, from config.json;
//! - `layer.rs`: the modules and their forward pass, on the operations of `ops/grouped.rs`;
//! - `router.rs`: the choice of experts and their weights;
//! - `balance.rs`: the router's losses, and statistics of a pass's routing;
//! - `expert_names.rs`, `expert_files.rs`: the tensors of files, one for each expert or one for all.

mod balance;
mod expert_files;
mod expert_names;
mod grouped_experts;
mod layer;
mod mixture_config;
mod router;

pub(crate) use balance::{RoutedLayer, RouterPass, RouterTerms};
pub use balance::{RouterLog, RouterStats};
pub use expert_files::values_of;
pub(crate) use expert_files::{PutValues, read_experts, written_experts};
pub(crate) use expert_names::FileExperts;
pub(crate) use grouped_experts::GroupedDefaults;
pub use layer::{Experts, FeedForward, Mixture};
pub use mixture_config::{ExpertAct, ExpertLayout, MixtureConfig, RouterConfig, RouterScores, SharedExpert};
