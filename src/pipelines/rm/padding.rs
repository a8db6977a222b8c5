//! The pad token of a reward model's texts in transformers.
//!
//! `AutoModelForSequenceClassification` reads the score of a text at the last token that is not `pad_token_id`, and ignores the
//! attention mask. The pad token must therefore never end a text, and the tokenizer must pad with the same token. Many
//! tokenizers pad with the token that ends texts; the score would then be read before the end.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::example::RmExample;
use crate::pipelines::stage::StageExample;
use crate::pipelines::stage::StageInputs;
use burnish_config::schema::Location;
use burnish_data::Tokenizer;
use burnish_data::tokenizer::TOKENIZER_CONFIG;
use burnish_optim::learner::HUGGINGFACE;
use burnish_util::foreign;
use burnish_util::fs::write_json;

const SPECIAL_TOKENS: &str = "special_tokens_map.json";
/// Words in the names of spare special tokens, the best first.
const SPARE: &[&str] = &["pad", "reserved", "unused", "unk", ""];

/// The pad token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Padding {
    /// The tokenizer's pad token is safe.
    Own(u32),
    /// Another token replaces the tokenizer's: its id and text.
    Another(u32, String),
    /// No token fits; transformers then scores one text at a time.
    None,
}

impl Padding {
    /// Chooses the tokenizer's pad token if no text of the data ends with it, otherwise a special token that no text ends with.
    ///
    /// # Errors
    /// If tokenizer_config.json cannot be read.
    pub(super) fn choose(folder: &Location, inputs: &StageInputs<RmExample>) -> Result<Self> {
        let examples = inputs.train.iter().chain(&inputs.val);
        let ends =
            examples.flat_map(RmExample::sequences).filter_map(|text| text.response.last().or(text.prompt.last()).copied());
        let ends: BTreeSet<u32> = ends.chain(inputs.tokenizer.eos_ids().iter().copied()).collect();
        let own = pad_token_in_files(folder.as_path(), &inputs.tokenizer)?;
        Ok(Self::safe(own, &ends, &inputs.tokenizer))
    }

    fn safe(own: Option<u32>, ends: &BTreeSet<u32>, tokenizer: &Tokenizer) -> Self {
        if let Some(own) = own.filter(|own| !ends.contains(own)) {
            return Self::Own(own);
        }
        let special = (0..tokenizer.vocab_size() as u32).filter(|id| tokenizer.is_special(*id) && !ends.contains(id));
        let named: Vec<(u32, String)> = special
            .filter_map(|id| Some((id, tokenizer.pieces(&[id]).ok()?.pop()?)))
            .filter(|(_, text)| !text.is_empty())
            .collect();
        let spare = SPARE.iter().find_map(|word| named.iter().rev().find(|(_, text)| text.to_lowercase().contains(word)));
        spare.map_or(Self::None, |(id, text)| Self::Another(*id, text.clone()))
    }

    /// Returns the `pad_token_id` for config.json.
    pub(super) fn id(&self) -> Option<u32> {
        match self {
            Self::Own(id) | Self::Another(id, _) => Some(*id),
            Self::None => None,
        }
    }

    /// Warns if the pad token differs from the tokenizer's.
    pub(super) fn announce(&self) {
        match self {
            Self::Own(_) => {}
            Self::Another(_, text) => tracing::info!(
                "the tokenizer has no pad token that ends no text: saved models pad with {text}, so that transformers reads scores \
                 at the end of each text"
            ),
            Self::None => tracing::warn!(
                "the tokenizer has no special token that ends no text: saved models have no pad_token_id, and transformers scores one \
                 text at a time; a tokenizer with a separate pad token avoids this"
            ),
        }
    }

    /// Writes the chosen pad token into the tokenizer files of a checkpoint's model. If none of these files exists, the first one
    /// is created.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub(super) fn write(&self, checkpoint: &Path) -> Result<()> {
        let Self::Another(_, text) = self else { return Ok(()) };
        let files = [TOKENIZER_CONFIG, SPECIAL_TOKENS].map(|name| checkpoint.join(HUGGINGFACE).join(name));
        let mut known = Vec::new();
        for path in &files {
            known.extend(object(path)?.map(|settings| (path, settings)));
        }
        if known.is_empty() {
            known.push((&files[0], Map::new()));
        }
        for (path, mut settings) in known {
            settings.insert("pad_token".to_owned(), text.as_str().into());
            write_json(path, &settings)?;
        }
        Ok(())
    }
}

/// Returns the pad token in the files of a tokenizer.
fn pad_token_in_files(folder: &Path, tokenizer: &Tokenizer) -> Result<Option<u32>> {
    for name in [TOKENIZER_CONFIG, SPECIAL_TOKENS] {
        let Some(settings) = object(&folder.join(name))? else { continue };
        let token = settings.get("pad_token");
        let text = token.and_then(|token| token.as_str().or_else(|| token.get("content")?.as_str()));
        if let Some(text) = text
            && let [id] = tokenizer.encode(text)?.as_slice()
        {
            return Ok(Some(*id));
        }
    }
    Ok(None)
}

fn object(path: &Path) -> Result<Option<Map<String, Value>>> {
    if !foreign::is_there(path)? {
        return Ok(None);
    }
    let text = foreign::read_text(path, foreign::SETTINGS)?;
    serde_json::from_str(&text).map(Some).with_context(|| format!("{} is not a JSON object", path.display()))
}
