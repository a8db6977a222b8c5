//! Conversion between text and token ids.

use anyhow::Result;

use burnish_data::Tokenizer;

/// Encodes text to token ids and decodes token ids to text.
pub trait Codec: Send + Sync {
    /// Decodes ids, including special tokens.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn text(&self, ids: &[u32]) -> Result<String>;

    /// Decodes ids without special tokens.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn plain_text(&self, ids: &[u32]) -> Result<String>;

    /// Encodes a text without adding special tokens.
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
