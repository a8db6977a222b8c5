//! A check of sampling settings that a request may not change, because the run trains on the response.

use super::error::ApiError;
use super::options::RequestOptions;
use burnish_rollout::Sampling;

/// Checks that a request does not change the run's sampling settings `own`. It may set the length and the stop conditions.
///
/// # Errors
/// If the request changes a setting; the error names the field and the setting of the run.
pub fn check_sampling(options: &RequestOptions, own: &Sampling) -> Result<(), ApiError> {
    let numbers = [
        ("temperature", options.temperature, own.temperature),
        ("top_p", options.top_p, own.top_p),
        ("min_p", options.min_p, own.min_p),
        ("repetition_penalty", options.repetition_penalty, own.repetition_penalty),
        ("presence_penalty", options.presence_penalty, own.presence_penalty),
        ("frequency_penalty", options.frequency_penalty, own.frequency_penalty),
    ];
    let counts = [("top_k", options.top_k, own.top_k), ("min_tokens", options.min_tokens, own.min_tokens)];
    let numbers = numbers.into_iter().filter(|(_, given, own)| given.is_some_and(|given| given as f32 != *own));
    let numbers = numbers.map(|(name, given, own)| (name, given.unwrap_or_default().to_string(), own.to_string()));
    let counts = counts.into_iter().filter(|(_, given, own)| given.is_some_and(|given| given != *own));
    let counts = counts.map(|(name, given, own)| (name, given.unwrap_or_default().to_string(), own.to_string()));
    if let Some((name, given, own)) = numbers.chain(counts).next() {
        let message = format!(
            "`{name}` is {given}, but this run samples with {own}, because it trains on the responses: leave the field out, or set \
             actor_rollout_ref.rollout.{name} of the run"
        );
        return Err(ApiError::field(name, message));
    }
    match options.seed {
        Some(_) => Err(ApiError::field("seed", "`seed` must be left out: trainer.seed of the run determines it")),
        None => Ok(()),
    }
}
