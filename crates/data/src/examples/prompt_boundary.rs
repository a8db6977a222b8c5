//! The boundary between a prompt and its answer, in tokens.
//!
//! The prompt and the whole text are tokenized separately, and the answer begins after the ids of the prompt. If a token of the
//! whole crosses the boundary ("Hello" + "lo world" is `Hell`, `olo`, ` world`), the prompt keeps its own ids, as in generation,
//! and the rest is tokenized separately. In TRL the answer begins at the first difference, which trains on prompt tokens in a
//! context that generation never has.

use anyhow::Result;

use crate::tokens::tokenizer::Tokenizer;

/// The origin of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextForm {
    /// Plain text: gets the tokens that the tokenizer adds before a text, and an answer ends with the end-of-text token.
    Plain,
    /// Rendered by a chat template, which writes such tokens itself.
    Rendered,
}

/// Note for a [`PromptSplit`] that differs.
pub(super) const OTHER_PROMPT: &str = "have a prompt that the chat template writes differently when an answer follows (some templates write <think> only \
                                       in a generation prompt): the answer begins at the first difference, after a prompt that \
                                       generation never has";

/// A prompt and its answer in tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PromptSplit {
    pub prompt: Vec<u32>,
    pub answer: Vec<u32>,
    /// True if the prompt differs from the prompt in generation.
    pub differs: bool,
}

impl TextForm {
    /// Returns the ids of a text that is or begins with a prompt.
    pub(super) fn encode(self, tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>> {
        match self {
            Self::Plain => tokenizer.encode_begun(text),
            Self::Rendered => tokenizer.encode(text),
        }
    }

    /// Returns the ids of a whole text, including its end.
    pub(crate) fn encode_full(self, tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>> {
        let mut ids = self.encode(tokenizer, text)?;
        self.end(tokenizer, &mut ids);
        Ok(ids)
    }

    fn end(self, tokenizer: &Tokenizer, ids: &mut Vec<u32>) {
        if self == Self::Plain && ids.last() != Some(&tokenizer.eos_id()) {
            ids.push(tokenizer.eos_id());
        }
    }
}

/// Splits the tokens of `full`, which begins with `prompt` unless the chat template renders the two differently.
pub(super) fn split(tokenizer: &Tokenizer, form: TextForm, prompt: &str, full: &str) -> Result<PromptSplit> {
    split_after(tokenizer, form, prompt, &form.encode(tokenizer, prompt)?, full)
}

/// Like [`split`]; `prompt_ids` are the ids of `prompt`.
pub(super) fn split_after(
    tokenizer: &Tokenizer,
    form: TextForm,
    prompt: &str,
    prompt_ids: &[u32],
    full: &str,
) -> Result<PromptSplit> {
    let mut ids = form.encode(tokenizer, full)?;
    let same = common(prompt_ids, &ids);
    if same < prompt_ids.len()
        && let Some(rest) = full.strip_prefix(prompt)
    {
        let mut answer = tokenizer.encode(rest)?;
        // Word tokenizers may add a space before every text, so the parts may differ from the whole.
        if tokenizer.decode(&[prompt_ids, &answer].concat(), false)? == tokenizer.decode(&ids, false)? {
            form.end(tokenizer, &mut answer);
            return Ok(PromptSplit { prompt: prompt_ids.to_vec(), answer, differs: false });
        }
    }
    form.end(tokenizer, &mut ids);
    let answer = ids.split_off(same);
    Ok(PromptSplit { prompt: ids, answer, differs: same < prompt_ids.len() })
}

/// Returns the common beginning of two texts.
pub(super) fn alike<'a>(a: &'a str, b: &str) -> &'a str {
    let same = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b).map_or(a.len().min(b.len()), |((at, _), _)| at);
    &a[..same]
}

/// Returns the length of the common beginning of two sequences.
pub(super) fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
