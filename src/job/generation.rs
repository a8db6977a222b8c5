//! The generation engine and the sampling settings of a run.

use anyhow::{Result, ensure};

use burnish_config::schema::SamplingKeys;
use burnish_engine::NativeEngine;
use burnish_rollout::{Logprobs, Sampling};

/// Returns the native engine.
pub(crate) fn native_engine(keys: &SamplingKeys) -> NativeEngine {
    NativeEngine {
        max_num_seqs: keys.max_num_seqs,
        max_num_batched_tokens: keys.max_num_batched_tokens,
        max_model_len: keys.max_model_len,
        enforce_eager: keys.enforce_eager,
    }
}

/// Checks the log-probabilities of generated tokens. A model whose numbers overflow would otherwise return tokens without a meaning.
///
/// # Errors
/// If one is not finite.
pub(crate) fn check_numbers(log_probs: &[f32]) -> Result<()> {
    ensure!(
        log_probs.iter().all(|log_prob| log_prob.is_finite()),
        "the log-probabilities of the model are not finite: its weights, or the scale or weights of its adapter, are too large or damaged"
    );
    Ok(())
}

/// Returns the sampling settings for responses of at most `max_tokens` tokens; greedy without `do_sample`.
pub fn sampling(keys: &SamplingKeys, max_tokens: usize, logprobs: Logprobs) -> Sampling {
    Sampling {
        temperature: if keys.do_sample { keys.temperature as f32 } else { 0.0 },
        // -1 keeps all tokens, like 0.
        top_k: usize::try_from(keys.top_k).unwrap_or(0),
        top_p: keys.top_p as f32,
        min_p: keys.min_p as f32,
        repetition_penalty: keys.repetition_penalty as f32,
        presence_penalty: keys.presence_penalty as f32,
        frequency_penalty: keys.frequency_penalty as f32,
        min_tokens: keys.min_tokens,
        max_tokens,
        logprobs,
    }
}
