//! Parsing of a server's reply to one query.

use serde_json::Value;

use crate::score::Score;

/// The field by which OpenRLHF filters prompts; it is reported with the reward.
const SCORES: &str = "scores";

/// Largest number of further values of one response.
const MAX_LOGS: usize = 1000;

/// Returns the reward of one response, with all other values that the server reports about it.
///
/// # Errors
/// If the reply is malformed, with a description of the problem.
pub fn read(body: &[u8]) -> Result<Score, String> {
    let reply: Value = serde_json::from_slice(body).map_err(|error| {
        let nan = [&b"NaN"[..], b"Infinity"].iter().any(|word| body.windows(word.len()).any(|part| part == *word));
        let hint = if nan { "; NaN and Infinity are not JSON: the server must send a number or null" } else { "" };
        format!("the reply is not JSON ({error}){hint}")
    })?;
    let reply = reply.as_object().ok_or("the reply is not a JSON object")?;
    let rewards = reply.get("rewards").ok_or("the reply has no `rewards`")?;
    let mut score = match only("rewards", rewards)? {
        Value::Null => Score::abstain(),
        reward => Score::new(single("rewards", reward)?),
    };
    if let Some(scores) = reply.get(SCORES).filter(|scores| !scores.is_null()) {
        let value = only(SCORES, scores)?;
        if !value.is_null() {
            score.extras.push((SCORES.to_owned(), single(SCORES, value)?.into()));
        }
    }
    let logs = match reply.get("extra_logs") {
        None | Some(Value::Null) => return Ok(score),
        Some(logs) => logs.as_object().ok_or("`extra_logs` must be an object of numbers")?,
    };
    if logs.len() > MAX_LOGS {
        return Err(format!(
            "`extra_logs` has {} fields, but at most {MAX_LOGS} are allowed, since each becomes metrics",
            logs.len()
        ));
    }
    for (name, value) in logs.iter().filter(|(name, _)| *name != SCORES) {
        let value = value.as_array().and_then(|list| <&[Value; 1]>::try_from(list.as_slice()).ok()).map_or(value, |[one]| one);
        match number(value) {
            Some(number) => score.extras.push((name.clone(), number)),
            None => score.notes.push((name.clone(), value.clone())),
        }
    }
    Ok(score)
}

/// Returns the value for the single query: the item of a list of one, or the value itself.
fn only<'a>(field: &str, value: &'a Value) -> Result<&'a Value, String> {
    match value.as_array().map(Vec::as_slice) {
        None | Some([Value::Array(_)]) => Ok(value),
        Some([one]) => Ok(one),
        Some(several) => Err(format!("`{field}` has {} values for 1 query", several.len())),
    }
}

/// Returns a number; Python's `True` counts as 1.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(f64::from))
}

fn single(field: &str, value: &Value) -> Result<f32, String> {
    let number = number(value).ok_or_else(|| format!("`{field}` must be a number or a list of one, not {value}"))?;
    let single = number as f32;
    if single.is_finite() { Ok(single) } else { Err(format!("`{field}` is {number}, which is out of range")) }
}
