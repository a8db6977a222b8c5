//! The use of a tokenizer of others: its panics become errors, and its time is limited. Patterns may take exponential time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use tokenizers::Encoding;

use burnish_util::contained::{ContainedError, WorkLimits, caught, part};
use burnish_util::platform::thread_time;

/// The limits of one text.
const ONE_TEXT: WorkLimits = WorkLimits { memory: 2 << 30, time: Some(Duration::from_secs(10)), stack: 16 << 20 };

/// Time for one text that is not counted: a base, and a part for each byte or token. Real tokenizers take about 1 µs for a byte.
const FREE: Duration = Duration::from_millis(5);
const FREE_FOR_ONE: Duration = Duration::from_micros(20);
/// Total time of all texts beyond that.
const SLOW: Duration = Duration::from_secs(5);

/// A text with letters, digits, spaces, accents and signs, which every part of a tokenizer reads once at load.
const TRIAL: &str = "One trial: a0 12,345.67 + (x*y)\n\n\tÄé ﬁ ①  日本語 🙂\u{301} <s> don't\r\n";

/// A tokenizer with the file that errors name. Clones share it.
#[derive(Clone)]
pub(crate) struct ForeignTokenizer {
    inner: Arc<tokenizers::Tokenizer>,
    file: Arc<str>,
    /// True if a pattern of the tokenizer may take long, so that each text is limited.
    has_patterns: bool,
    /// Microseconds beyond the free time.
    slow: Arc<AtomicU64>,
}

impl ForeignTokenizer {
    /// Tries the tokenizer on a short text.
    ///
    /// # Errors
    /// If the tokenizer fails on it, or takes too much time or memory.
    pub(crate) fn tried(inner: tokenizers::Tokenizer, path: &Path) -> Result<Self> {
        let parts = serde_json::json!([inner.get_normalizer(), inner.get_pre_tokenizer(), inner.get_decoder()]);
        let file = path.display().to_string().into();
        let tokenizer = Self { inner: inner.into(), file, has_patterns: has_patterns(&parts), slow: Arc::default() };
        let trial =
            |encoding: Result<Encoding>| encoding.context("it fails on a trial text").map(|encoding| encoding.get_ids().to_vec());
        let ids = trial(Self { has_patterns: true, ..tokenizer.clone() }.run(TRIAL.len(), |inner| inner.encode(TRIAL, true)))?;
        trial(tokenizer.run(0, |inner| inner.encode("", true)))?;
        _ = tokenizer.decode(&ids, false)?;
        Ok(tokenizer)
    }

    /// Returns the tokenizer for questions about its vocabulary.
    pub(crate) fn vocabulary(&self) -> &tokenizers::Tokenizer {
        &self.inner
    }

    /// Returns a tokenizer with another vocabulary, with the same limits.
    pub(crate) fn with(&self, inner: tokenizers::Tokenizer) -> Self {
        Self { inner: inner.into(), ..self.clone() }
    }

    /// Returns the ids of a text.
    ///
    /// # Errors
    /// If the tokenizer fails, or exceeds its limits.
    pub(crate) fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Vec<u32>> {
        let own = text.to_owned();
        let encoding = self.run(text.len(), move |inner| inner.encode_fast(own, add_special_tokens))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Returns the encoding of a text, with offsets.
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub(crate) fn encode_with_offsets(&self, text: &str) -> Result<Encoding> {
        let own = text.to_owned();
        self.run(text.len(), move |inner| inner.encode(own, false))
    }

    /// Returns the text of ids.
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub(crate) fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        let own = ids.to_vec();
        self.run(ids.len(), move |inner| inner.decode(&own, skip_special_tokens))
    }

    /// Returns the text of each id in context; an id that makes earlier bytes invalid starts a new context.
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub(crate) fn pieces(&self, ids: &[u32]) -> Result<Vec<String>> {
        let own = ids.to_vec();
        self.run(ids.len(), move |inner| {
            let mut stream = inner.decode_stream(false);
            let mut pieces = Vec::with_capacity(own.len());
            for id in own {
                let mut piece = stream.step(id);
                if piece.is_err() {
                    stream = inner.decode_stream(false);
                    piece = stream.step(id);
                }
                pieces.push(piece?.unwrap_or_default());
            }
            Ok(pieces)
        })
    }

    /// Uses the total time up, for tests.
    #[cfg(test)]
    pub(super) fn exhaust(&self) {
        self.slow.store(u64::MAX / 2, Ordering::Relaxed);
    }

    /// Runs work on a text of `length` bytes or tokens.
    fn run<T: Send + 'static>(
        &self,
        length: usize,
        work: impl FnOnce(&tokenizers::Tokenizer) -> tokenizers::Result<T> + Send + 'static,
    ) -> Result<T> {
        let file = &self.file;
        if self.slow.load(Ordering::Relaxed) > SLOW.as_micros() as u64 {
            bail!("{file}: this tokenizer takes too long: more than {} seconds on a few texts", SLOW.as_secs());
        }
        let inner = self.inner.clone();
        let timed = move || {
            let before = thread_time();
            (work(&inner), thread_time().saturating_sub(before))
        };
        let named = file.clone();
        let exceeds = move |error: ContainedError| format!("{named}: this tokenizer is used on a text, and {error}");
        let run = if self.has_patterns { part(ONE_TEXT, exceeds, timed) } else { caught(timed) };
        let (result, time) = run.with_context(|| format!("{file}: this tokenizer fails on a text"))?;
        let beyond = time.saturating_sub(FREE + FREE_FOR_ONE * u32::try_from(length).unwrap_or(u32::MAX));
        self.slow.fetch_add(beyond.as_micros() as u64, Ordering::Relaxed);
        result.map_err(|error| anyhow!("{file}: this tokenizer fails on a text: {error}"))
    }
}

/// Returns true if a part of a tokenizer has a regular expression.
fn has_patterns(part: &Value) -> bool {
    match part {
        Value::Object(fields) => fields.iter().any(|(key, value)| key == "Regex" || has_patterns(value)),
        Value::Array(items) => items.iter().any(has_patterns),
        _ => false,
    }
}
