//! Checks that a second model, next to the trained one, reads the same tokens.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use burnish_config::schema::LoraKeys;
use burnish_data::Tokenizer;
use burnish_util::foreign;

/// A second model of a run, for messages.
#[derive(Clone, Copy)]
pub(crate) struct SecondModel<'a> {
    /// The setting that names it.
    pub key: &'a str,
    pub folder: &'a Path,
    /// Its role, such as "reference".
    pub role: &'a str,
    /// Role of the model whose tokens the run uses, such as "policy".
    pub first: &'a str,
}

impl SecondModel<'_> {
    /// Reads the tokenizer of the model's folder, if any. The tokenizer must have every token of the run under the same id.
    ///
    /// # Errors
    /// If the tokenizer has other tokens or cannot be read.
    pub(crate) fn tokenizer(&self, of_run: &Tokenizer) -> Result<Option<Tokenizer>> {
        let Self { key, folder, role, .. } = self;
        if !foreign::is_there(&folder.join("tokenizer.json"))? {
            return Ok(None);
        }
        let own = Tokenizer::load(folder).with_context(|| (*key).to_owned())?;
        match of_run.unknown_to(&own) {
            Some(difference) => bail!(
                "{key}={}: its tokenizer differs from the run's tokenizer: {difference}; a {role} has the same tokens",
                folder.display()
            ),
            None => Ok(Some(own)),
        }
    }

    /// Refuses vocabularies of two sizes. `theirs`: of this model. `own`: of the first model.
    ///
    /// # Errors
    /// If the sizes differ.
    pub(crate) fn same_size(&self, theirs: usize, own: usize) -> Result<()> {
        let Self { key, folder, role, first } = self;
        ensure!(
            theirs == own,
            "{key}={}: its vocabulary has {theirs} tokens, the {first}'s {own}; a {role} has the same tokens",
            folder.display()
        );
        Ok(())
    }

    /// Checks the tokens of a model whose vocabulary may have another size through padding; a tokenizer in its folder must show
    /// that it is padding. Returns the tokenizer, if any.
    ///
    /// # Errors
    /// If tokens differ, or sizes differ without a tokenizer.
    pub(crate) fn padded(&self, of_run: &Tokenizer, (theirs, own): (usize, usize)) -> Result<Option<Tokenizer>> {
        let Self { key, folder, first, .. } = self;
        let tokenizer = self.tokenizer(of_run)?;
        ensure!(
            tokenizer.is_some() || own == theirs,
            "{key}={}: its vocabulary has {theirs} tokens, the {first}'s {own}, and no tokenizer.json in its folder shows that they are the same tokens but for padding",
            folder.display()
        );
        Ok(tokenizer)
    }
}

/// Checks the adapter that a run starts from. A tokenizer in the adapter's folder, where PEFT and TRL write it, is the tokenizer
/// of its training.
///
/// # Errors
/// If that tokenizer has other tokens than the run's.
pub(crate) fn check_adapter(keys: &LoraKeys, tokenizer: &Tokenizer) -> Result<()> {
    let Some(path) = keys.adapter_path else { return Ok(()) };
    let key = format!("{}.lora_adapter_path", keys.group);
    let adapter = SecondModel { key: &key, folder: path.as_path(), role: "adapter of this model", first: "model" };
    adapter.tokenizer(tokenizer).map(drop)
}

/// Warns of differences if a setting selects another tokenizer for a model than its folder has: the model reads a token under
/// another id as another word.
///
/// # Errors
/// If the model's tokenizer cannot be read.
pub(crate) fn note_other_tokenizer(key: &str, tokenizer: &Tokenizer, model: &Path) -> Result<()> {
    if !foreign::is_there(&model.join("tokenizer.json"))? {
        return Ok(());
    }
    let own = Tokenizer::load(model).with_context(|| model.display().to_string())?;
    if let Some(difference) = own.unknown_to(tokenizer) {
        tracing::warn!("{key}: in the tokenizer of the model itself, {}, {difference}", model.display());
    }
    Ok(())
}
