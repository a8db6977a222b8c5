//! burnish: reinforcement-learning post-training of language models on the burn framework.
pub mod algorithm;
pub mod model;
pub mod optim;
pub mod rollout;
pub mod util;
