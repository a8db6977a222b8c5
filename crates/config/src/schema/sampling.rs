//! The sampling keys that training and `trainer generate` share.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::Report;

/// The sampling of tokens, and the limits of the engine.
#[derive(Clone, Copy, Debug)]
pub struct SamplingKeys {
    pub do_sample: bool,
    pub temperature: f64,
    pub top_k: i64,
    pub top_p: f64,
    pub min_p: f64,
    pub repetition_penalty: f64,
    pub presence_penalty: f64,
    pub frequency_penalty: f64,
    pub min_tokens: usize,
    pub max_num_seqs: usize,
    pub max_num_batched_tokens: usize,
    pub max_model_len: Option<usize>,
    pub enforce_eager: bool,
}

/// The range of values that may be added to a logit. With much larger values, f32 would lose the logits, and tokens with the same
/// bias would be equally probable.
const BIAS: RangeInclusive<f64> = -1e30..=1e4;

/// The rules for single tokens.
#[derive(Clone, Copy, Debug)]
pub struct TokenRuleKeys<'a> {
    pub logit_bias: Option<&'a BTreeMap<String, f64>>,
    pub bad_words: Option<&'a [String]>,
    pub allowed_token_ids: Option<&'a [u32]>,
    pub ignore_eos: bool,
    pub stop_token_ids: &'a [u32],
    pub stop: &'a [String],
    pub min_tokens: usize,
}

impl TokenRuleKeys<'_> {
    /// Checks the rules as far as possible without tokenizer and model. `group`: the dotted key of the group of these settings.
    pub(super) fn check(&self, group: &str, report: &mut Report) {
        for (token, bias) in self.logit_bias.into_iter().flatten() {
            let key = format!("{group}.logit_bias.{token}");
            if token_id(token).is_none() {
                let message = format!("`{group}.logit_bias` maps token ids to numbers, but `{token}` is not a token id");
                report.wrong(&key, message, format!("write them as {group}.logit_bias={{1234: -5}}"));
            }
            if !BIAS.contains(bias) {
                let help = format!("{group}.bad_words and {group}.allowed_token_ids forbid tokens");
                report.wrong(
                    &key,
                    format!("`{key}` must be a number from {:e} to {}, not {bias}", BIAS.start(), BIAS.end()),
                    help,
                );
            }
        }
        if self.allowed_token_ids.is_some_and(<[u32]>::is_empty) {
            let key = format!("{group}.allowed_token_ids");
            report.wrong(&key, format!("`{key}` is empty, so no token could be drawn"), format!("write {key}=null to allow all"));
        }
    }
}

/// Parses a key of `logit_bias` as a token id.
pub fn token_id(key: &str) -> Option<u32> {
    key.parse::<u32>().ok().filter(|id| id.to_string() == key)
}

/// Defines a struct with the keys of sampling between other keys, and its methods `sampling()` and `token_rules()`.
macro_rules! sampling_keys {
    (
        $(#[$about:meta])* $config:ident
        { $($before:ident: $before_type:ty,)* }
        { $($after:ident: $after_type:ty,)* }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $config {
            $(pub $before: $before_type,)*
            pub do_sample: bool,
            pub temperature: f64,
            pub top_k: i64,
            pub top_p: f64,
            pub min_p: f64,
            pub repetition_penalty: f64,
            pub presence_penalty: f64,
            pub frequency_penalty: f64,
            pub logit_bias: Option<std::collections::BTreeMap<String, f64>>,
            pub bad_words: Option<Vec<String>>,
            pub allowed_token_ids: Option<Vec<u32>>,
            pub prompt_length: usize,
            pub response_length: usize,
            pub ignore_eos: bool,
            pub stop_token_ids: Vec<u32>,
            pub stop: Vec<String>,
            pub min_tokens: usize,
            pub max_num_seqs: usize,
            pub max_num_batched_tokens: usize,
            pub max_model_len: Option<usize>,
            pub enforce_eager: bool,
            $(pub $after: $after_type,)*
        }

        impl $config {
            /// Returns the sampling settings of the group and the limits of its engine.
            pub fn sampling(&self) -> $crate::schema::SamplingKeys {
                $crate::schema::SamplingKeys {
                    do_sample: self.do_sample,
                    temperature: self.temperature,
                    top_k: self.top_k,
                    top_p: self.top_p,
                    min_p: self.min_p,
                    repetition_penalty: self.repetition_penalty,
                    presence_penalty: self.presence_penalty,
                    frequency_penalty: self.frequency_penalty,
                    min_tokens: self.min_tokens,
                    max_num_seqs: self.max_num_seqs,
                    max_num_batched_tokens: self.max_num_batched_tokens,
                    max_model_len: self.max_model_len,
                    enforce_eager: self.enforce_eager,
                }
            }

            /// Returns the rules of the group for single tokens.
            pub fn token_rules(&self) -> $crate::schema::TokenRuleKeys<'_> {
                $crate::schema::TokenRuleKeys {
                    logit_bias: self.logit_bias.as_ref(),
                    bad_words: self.bad_words.as_deref(),
                    allowed_token_ids: self.allowed_token_ids.as_deref(),
                    ignore_eos: self.ignore_eos,
                    stop_token_ids: &self.stop_token_ids,
                    stop: &self.stop,
                    min_tokens: self.min_tokens,
                }
            }
        }
    };
}
pub(super) use sampling_keys;
