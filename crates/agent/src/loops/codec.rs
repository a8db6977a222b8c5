//! Text of token ids, and back.

use anyhow::Result;

use burnish_data::Tokenizer;

/// Turns token ids into text and text into token ids.
pub trait Codec: Send + Sync {
    /// Returns the text of ids, with that of special tokens.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn text(&self, ids: &[u32]) -> Result<String>;

    /// Returns the text of ids without that of special tokens.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn plain_text(&self, ids: &[u32]) -> Result<String>;

    /// Returns the ids of a text; nothing is put around it.
    ///
    /// # Errors
    /// A text that cannot be tokenized.
    fn ids(&self, text: &str) -> Result<Vec<u32>>;
}

impl Codec for Tokenizer {
    fn text(&self, ids: &[u32]) -> Result<String> {
        self.decode(ids, false)
    }

    fn plain_text(&self, ids: &[u32]) -> Result<String> {
        self.decode(ids, true)
    }

    fn ids(&self, text: &str) -> Result<Vec<u32>> {
        self.encode(text)
    }
}
