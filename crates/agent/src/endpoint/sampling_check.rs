//! A check of sampling settings that a request may not change, because the run trains on the response.

use super::error::ApiError;
use super::options::RequestOptions;
use burnish_rollout::Sampling;

/// Checks that a request does not change the run's sampling settings `defaults`. It may set the length and the stop conditions.
///
/// # Errors
/// If the request changes a setting; the error names the field and the setting of the run.
pub(crate) fn check_sampling(options: &RequestOptions, defaults: &Sampling) -> Result<(), ApiError> {
    let numbers = [
        ("temperature", options.temperature, defaults.temperature),
        ("top_p", options.top_p, defaults.top_p),
        ("min_p", options.min_p, defaults.min_p),
        ("repetition_penalty", options.repetition_penalty, defaults.repetition_penalty),
        ("presence_penalty", options.presence_penalty, defaults.presence_penalty),
        ("frequency_penalty", options.frequency_penalty, defaults.frequency_penalty),
    ];
    let counts = [("top_k", options.top_k, defaults.top_k), ("min_tokens", options.min_tokens, defaults.min_tokens)];
    let numbers =
        numbers.into_iter().filter(|(_, requested, default)| requested.is_some_and(|requested| requested as f32 != *default));
    let numbers =
        numbers.map(|(name, requested, default)| (name, requested.unwrap_or_default().to_string(), default.to_string()));
    let counts = counts.into_iter().filter(|(_, requested, default)| requested.is_some_and(|requested| requested != *default));
    let counts = counts.map(|(name, requested, default)| (name, requested.unwrap_or_default().to_string(), default.to_string()));
    if let Some((name, requested, default)) = numbers.chain(counts).next() {
        let message = format!(
            "`{name}` is {requested}, but this run samples with {default}, because it trains on the responses: leave the field out, or set \
             actor_rollout_ref.rollout.{name} of the run"
        );
        return Err(ApiError::field(name, message));
    }
    let scores = [
        ("echo", options.echo),
        ("prompt_logprobs", options.prompt_log_probs.is_some()),
        ("logprobs", options.top_log_probs > 0),
    ];
    if let Some((name, _)) = scores.into_iter().find(|(_, asked)| *asked) {
        let message =
            format!("`{name}` is not supported in a run: only sampled tokens have log-probabilities; `trainer serve` has others");
        return Err(ApiError::field(name, message));
    }
    match options.seed {
        Some(_) => Err(ApiError::field("seed", "`seed` must be left out: trainer.seed of the run determines it")),
        None => Ok(()),
    }
}
