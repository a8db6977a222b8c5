//! `trainer reward check`: calls reward functions on the responses in a file, as training does, and keeps every failure.

use anyhow::{Error, Result, ensure};
use serde_json::{Map, Value};

use super::super::evaluate::{line, read_responses};
use burnish_config::Loaded;
use burnish_config::schema::EvalConfig;
use burnish_reward::ResponseScore;

/// A response and its score.
pub(crate) struct CheckedResponse {
    /// File and place of the row.
    pub(crate) place: String,
    /// Number of the response in its row.
    pub(crate) response: usize,
    /// Score of the response, or the reason for its absence.
    pub(crate) score: Result<ResponseScore, String>,
    /// The score as an object, with what the functions reported; or `row`, `response` and `error`.
    pub(crate) object: Map<String, Value>,
}

/// Scores all responses together, as training does. If that fails, each is scored alone, so that every failure is found.
///
/// # Errors
/// If `data.output_path` is set, the functions cannot be started, or the rows cannot be scored. Also if the functions fail for
/// all responses together but for no single response.
pub(crate) fn check(loaded: Loaded<EvalConfig>) -> Result<Vec<CheckedResponse>> {
    ensure!(
        loaded.config.data.output_path.is_none(),
        "data.output_path has no effect on `trainer reward check`: --json prints all"
    );
    read_responses(loaded, |read| {
        let inputs = read.inputs();
        let mut scores: Vec<Result<ResponseScore, String>> = match read.scores(&inputs) {
            Ok(scores) => scores.into_iter().map(Ok).collect(),
            Err(together) => {
                let alone: Vec<_> = inputs.iter().map(|input| read.score(input)).collect();
                if alone.iter().all(Result::is_ok) {
                    return Err(together);
                }
                alone.into_iter().map(|score| score.map_err(|error| cause(&error))).collect()
            }
        };
        for score in &mut scores {
            if let Some(number) = score.as_ref().ok().and_then(|score| score.score).filter(|number| !number.is_finite()) {
                *score = Err(format!("the score is {number}"));
            }
        }
        let checked = scores.into_iter().enumerate().map(|(at, score)| CheckedResponse {
            place: read.place(at),
            response: read.places[at].1,
            object: match &score {
                Ok(score) => line(read.places[at], &inputs[at], score),
                Err(error) => failed(read.places[at], error),
            },
            score,
        });
        Ok(checked.collect())
    })
}

/// Returns the error of a function, without the place of the response in front of it.
fn cause(error: &Error) -> String {
    error.chain().skip(1).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn failed((row, response): (usize, usize), error: &str) -> Map<String, Value> {
    let fields = [("row", row.into()), ("response", response.into()), ("error", error.into())];
    fields.into_iter().map(|(name, value): (&str, Value)| (name.to_owned(), value)).collect()
}
