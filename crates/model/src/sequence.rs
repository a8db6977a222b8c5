//! A prompt and its response, as the input of a model.

/// A prompt and its response. Statistics describe the response tokens, each predicted from all tokens before it.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    /// At least one token.
    pub prompt: &'a [u32],
    pub response: &'a [u32],
    /// For each response token, true if the model sampled it; `None` if it sampled all. Other tokens have statistics of 0.
    pub sampled: Option<&'a [bool]>,
}

impl<'a> Sequence<'a> {
    /// Creates a sequence whose response tokens were all sampled.
    pub fn new(prompt: &'a [u32], response: &'a [u32]) -> Self {
        Self { prompt, response, sampled: None }
    }

    /// True if the model sampled a response token.
    pub fn is_sampled(&self, token: usize) -> bool {
        self.sampled.is_none_or(|sampled| sampled.get(token).copied().unwrap_or(false))
    }

    pub fn len(&self) -> usize {
        self.prompt.len() + self.response.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
