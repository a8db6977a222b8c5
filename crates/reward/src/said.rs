//! The answer of a reward function on its way to another process: its score, or its error with what else depends on that.

use anyhow::{Error, Result, anyhow};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::failure::{Failure, FailureKind};
use super::score::Score;
use burnish_util::interrupt::Interrupted;

#[derive(Serialize, Deserialize)]
enum Said {
    Score(Score),
    /// The kind of its [`Failure`], where it has one, and its whole text.
    Failed(Option<FailureKind>, String),
    Interrupted(String),
}

pub fn serialize<S: Serializer>(said: &Result<Score>, serializer: S) -> Result<S::Ok, S::Error> {
    let said = match said {
        Ok(score) => Said::Score(score.clone()),
        Err(error) if error.is::<Interrupted>() => Said::Interrupted(format!("{error:#}")),
        Err(error) => Said::Failed(error.downcast_ref::<Failure>().map(|failure| failure.kind), format!("{error:#}")),
    };
    said.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Result<Score>, D::Error> {
    let error: Error = match Said::deserialize(deserializer)? {
        Said::Score(score) => return Ok(Ok(score)),
        Said::Interrupted(message) => Interrupted(message).into(),
        Said::Failed(Some(kind), message) => Failure { kind, message }.into(),
        Said::Failed(None, message) => anyhow!(message),
    };
    Ok(Err(error))
}
