//! Scores of responses. They come from the scorer of a row's data source ([`SCORERS`]), from reward functions chosen by name,
//! from several functions at once ([`Rewards`]), or from anything that implements [`Judge`].
//!
//! A scorer is one file and one line of [`SCORERS`]. A reward function that belongs to no data source is one file and one line of
//! [`FUNCTIONS`]. Each sees one response and its row. A response that cannot be scored is an error, never a silent 0. A scorer
//! abstains from a row that it cannot judge, such as one without a ground truth.

pub mod arithmetic;
mod calculator;
mod combine;
mod complete;
mod conversation;
#[cfg(test)]
mod conversation_tests;
mod cosine_scaled;
#[cfg(test)]
mod example;
mod failed_scores;
mod function;
mod function_setting;
mod functions;
mod geo3k;
pub mod gsm8k;
mod hendrycks;
#[cfg(test)]
mod hostile;
mod integer_format;
mod judge_call;
pub mod math_dapo;
mod math_reward;
pub mod math_verify;
mod math_verify_functions;
mod plan;
pub mod prime_math;
pub mod python;
pub mod remote;
pub mod repetition_penalty;
pub mod reward_error;
mod reward_function;
mod rewards;
pub mod sandbox;
mod score;
mod score_input;
mod scorers;
mod search_r1;
mod services;
mod soft_overlong;
mod start;
pub mod stats;
#[cfg(test)]
mod tests;
mod think_format;
mod wire;

pub use conversation::{Conversation, completion};
pub use function::{Function, RowPart};
pub use function_setting::{FunctionSetting, Takes};
pub use functions::{FUNCTIONS, function, function_names};
pub use judge_call::PendingScores;
pub use plan::RewardOptions;
pub use reward_function::{OnError, Reward, Runs};
pub use rewards::{Rewards, Tagged};
pub use score::{FunctionReward, ResponseScore};
pub use score::{NO_ANSWER, Score};
pub use score_input::{BatchJudge, Judge, ScoreInput, Scorer};
pub use scorers::{SCORERS, check_sources, find};
pub use services::{RewardService, Services};
