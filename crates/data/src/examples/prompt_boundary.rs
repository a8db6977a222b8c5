//! The seam between a prompt and its answer, in tokens.
//!
//! The prompt and the whole are tokenized apart, and the answer begins where the whole goes on after the ids of the prompt. Where
//! a token of the whole reaches over the seam ("Hello" + "lo world" is `Hell`, `olo`, ` world`), the prompt keeps the ids that it
//! has when a model is asked to answer it, and the rest is tokenized by itself. TRL lets the answer begin where the two differ:
//! prompt tokens are then trained on, in a context that no generation ever has.

use anyhow::Result;

use crate::tokens::tokenizer::Tokenizer;

/// The form of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextForm {
    /// Written by people: it gets the tokens that the tokenizer puts before a text, and an answer ends with the end of text.
    Plain,
    /// Written by a chat template, which puts such tokens itself.
    Rendered,
}

/// The note of a [`PromptSplit`] that differs.
pub(super) const OTHER_PROMPT: &str = "end their prompt otherwise when an answer follows, because the chat template writes it \
                                       otherwise (some write <think> only where an answer is asked for): the answer begins where the two \
                                       differ, after a prompt that generation does not have";

/// A prompt and its answer in tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PromptSplit {
    pub prompt: Vec<u32>,
    pub answer: Vec<u32>,
    /// True if a model that is asked to answer gets a prompt other than this.
    pub differs: bool,
}

impl TextForm {
    /// Returns the ids of a text that a prompt is, or begins.
    pub fn encode(self, tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>> {
        match self {
            Self::Plain => tokenizer.encode_begun(text),
            Self::Rendered => tokenizer.encode(text),
        }
    }

    /// Returns the ids of a whole text, with its end.
    pub fn encode_whole(self, tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>> {
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

/// Splits the tokens of `whole`, which begins with `prompt` unless a chat template writes the two differently.
pub(super) fn split(tokenizer: &Tokenizer, form: TextForm, prompt: &str, whole: &str) -> Result<PromptSplit> {
    split_after(tokenizer, form, prompt, &form.encode(tokenizer, prompt)?, whole)
}

/// Splits the tokens of `whole` as [`split`] does; `asked` are the ids of `prompt`.
pub(super) fn split_after(
    tokenizer: &Tokenizer,
    form: TextForm,
    prompt: &str,
    asked: &[u32],
    whole: &str,
) -> Result<PromptSplit> {
    let mut ids = form.encode(tokenizer, whole)?;
    let same = common(asked, &ids);
    if same < asked.len()
        && let Some(rest) = whole.strip_prefix(prompt)
    {
        let mut answer = tokenizer.encode(rest)?;
        // Tokenizers of words may begin every text with a space: the parts are then not those of the whole.
        if tokenizer.decode(&[asked, &answer].concat(), false)? == tokenizer.decode(&ids, false)? {
            form.end(tokenizer, &mut answer);
            return Ok(PromptSplit { prompt: asked.to_vec(), answer, differs: false });
        }
    }
    form.end(tokenizer, &mut ids);
    let answer = ids.split_off(same);
    Ok(PromptSplit { prompt: ids, answer, differs: same < asked.len() })
}

/// Returns the text that two texts begin with.
pub(super) fn alike<'a>(a: &'a str, b: &str) -> &'a str {
    let same = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b).map_or(a.len().min(b.len()), |((at, _), _)| at);
    &a[..same]
}

/// Returns the number of tokens that two sequences begin with alike.
pub(super) fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
