//! Serialization of a function's result, to send it to another process: the score, or the error with its kind.

use anyhow::{Error, Result, anyhow};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::reward_error::{RewardError, RewardFailure};
use super::score::Score;
use burnish_util::interrupt::Interrupted;

#[derive(Serialize, Deserialize)]
enum WireResult {
    Score(Score),
    /// Kind of the [`RewardError`], if the error is one, and the whole text.
    Failed(Option<RewardFailure>, String),
    Interrupted(String),
}

pub(crate) fn serialize<S: Serializer>(result: &Result<Score>, serializer: S) -> Result<S::Ok, S::Error> {
    let result = match result {
        Ok(score) => WireResult::Score(score.clone()),
        Err(error) if error.is::<Interrupted>() => WireResult::Interrupted(format!("{error:#}")),
        Err(error) => WireResult::Failed(error.downcast_ref::<RewardError>().map(|failure| failure.kind), format!("{error:#}")),
    };
    result.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Result<Score>, D::Error> {
    let error: Error = match WireResult::deserialize(deserializer)? {
        WireResult::Score(score) => return Ok(Ok(score)),
        WireResult::Interrupted(message) => Interrupted(message).into(),
        WireResult::Failed(Some(kind), message) => RewardError { kind, message }.into(),
        WireResult::Failed(None, message) => anyhow!(message),
    };
    Ok(Err(error))
}
