//! The scores that a reply shows, with the texts of their tokens.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::Result;

use burnish_data::Tokenizer;
use burnish_rollout::{TokenScores, TurnScores};

/// The scores that a reply shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ReplyScores {
    /// The scores of the prompt's tokens from the second.
    pub(super) prompt: Option<Arc<TokenScores>>,
    /// The scores of the sampled tokens; empty if they have none.
    pub(super) sampled: TokenScores,
    /// The text of each token of a scored prompt.
    pub(super) prompt_pieces: Vec<String>,
    /// The texts of the most probable tokens.
    names: HashMap<u32, String>,
}

impl ReplyScores {
    /// Finds the texts of the tokens of a prompt and of the most probable tokens.
    ///
    /// # Errors
    /// If a token cannot be decoded.
    pub(super) fn new(tokenizer: &Tokenizer, prompt: &[u32], scores: TurnScores) -> Result<Self> {
        let TurnScores { prompt: of_prompt, sampled } = scores;
        let top = of_prompt.iter().flat_map(|scores| &scores.top_ids).chain(&sampled.top_ids);
        let top: BTreeSet<u32> = top.copied().collect();
        let names = top.into_iter().map(|id| Ok((id, text(tokenizer, id)?))).collect::<Result<_>>()?;
        let prompt_pieces = if of_prompt.is_some() { tokenizer.pieces(prompt)? } else { Vec::new() };
        Ok(Self { prompt: of_prompt, sampled, prompt_pieces, names })
    }

    /// Returns the text of a most probable token.
    pub(super) fn name(&self, id: u32) -> &str {
        self.names.get(&id).map_or("", String::as_str)
    }
}

/// Returns the text of a token within a text. At the beginning of a text, some decoders remove a space, so the token is decoded
/// after itself.
fn text(tokenizer: &Tokenizer, id: u32) -> Result<String> {
    let (alone, twice) = (tokenizer.decode(&[id], false)?, tokenizer.decode(&[id, id], false)?);
    Ok(twice.strip_prefix(&alone).filter(|text| !text.is_empty()).map_or(alone.clone(), str::to_owned))
}
