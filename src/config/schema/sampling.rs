//! The keys of generation that training and `trainer generate` share.

/// The sampling of tokens, and the limits of the engine.
#[derive(Clone, Copy, Debug)]
pub struct SamplingKeys {
    pub do_sample: bool,
    pub temperature: f64,
    pub top_k: i64,
    pub top_p: f64,
    pub min_p: f64,
    pub repetition_penalty: f64,
    pub min_tokens: usize,
    pub max_num_seqs: usize,
    pub max_num_batched_tokens: usize,
    pub max_model_len: Option<usize>,
}

/// Writes `sampling()` for a group with these keys.
macro_rules! sampling_keys {
    ($config:ty) => {
        impl $config {
            /// The keys of generation in this group.
            pub fn sampling(&self) -> $crate::config::schema::SamplingKeys {
                $crate::config::schema::SamplingKeys {
                    do_sample: self.do_sample,
                    temperature: self.temperature,
                    top_k: self.top_k,
                    top_p: self.top_p,
                    min_p: self.min_p,
                    repetition_penalty: self.repetition_penalty,
                    min_tokens: self.min_tokens,
                    max_num_seqs: self.max_num_seqs,
                    max_num_batched_tokens: self.max_num_batched_tokens,
                    max_model_len: self.max_model_len,
                }
            }
        }
    };
}
pub(super) use sampling_keys;
