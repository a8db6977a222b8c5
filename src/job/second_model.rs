//! A model with the policy, or with the one that is trained, reads the tokens of the run: its tokens must be the same.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use burnish_config::schema::LoraKeys;
use burnish_data::Tokenizer;
use burnish_util::foreign;

/// A second model of a run, in messages.
#[derive(Clone, Copy)]
pub struct SecondModel<'a> {
    /// The setting that names it.
    pub key: &'a str,
    pub folder: &'a Path,
    /// Its role, such as "reference".
    pub role: &'a str,
    /// The role of the model whose tokens are those of the run, such as "policy".
    pub first: &'a str,
}

impl SecondModel<'_> {
    /// Reads the tokenizer of its folder, where there is one, which must have every token of the run under the same id.
    ///
    /// # Errors
    /// A tokenizer with other tokens, or one that cannot be read.
    pub fn tokenizer(&self, of_run: &Tokenizer) -> Result<Option<Tokenizer>> {
        let Self { key, folder, role, .. } = self;
        if !foreign::is_there(&folder.join("tokenizer.json"))? {
            return Ok(None);
        }
        let own = Tokenizer::load(folder).with_context(|| (*key).to_owned())?;
        match of_run.unknown_to(&own) {
            Some(difference) => bail!(
                "{key}={}: its tokenizer differs from that of the run: {difference}; a {role} has the same tokens",
                folder.display()
            ),
            None => Ok(Some(own)),
        }
    }

    /// Refuses vocabularies of two sizes: of its own and of the first model's.
    ///
    /// # Errors
    /// Two sizes.
    pub fn same_size(&self, theirs: usize, own: usize) -> Result<()> {
        let Self { key, folder, role, first } = self;
        ensure!(
            theirs == own,
            "{key}={}: its vocabulary has {theirs} tokens, the {first}'s {own}; a {role} has the same tokens",
            folder.display()
        );
        Ok(())
    }

    /// Checks the tokens of a model whose vocabulary may be padded to another size if a tokenizer in its folder shows that it is no more
    /// than padding. Returns the tokenizer, where there is one.
    ///
    /// # Errors
    /// Other tokens; two sizes without a tokenizer.
    pub fn padded(&self, of_run: &Tokenizer, (theirs, own): (usize, usize)) -> Result<Option<Tokenizer>> {
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

/// Checks the adapter that a run starts from: where its folder has a tokenizer, as PEFT's and TRL's folders do, it was trained on the
/// tokens of that.
///
/// # Errors
/// A tokenizer with other tokens than the run's.
pub fn check_adapter(keys: &LoraKeys, tokenizer: &Tokenizer) -> Result<()> {
    let Some(path) = keys.adapter_path else { return Ok(()) };
    let key = format!("{}.lora_adapter_path", keys.group);
    let adapter = SecondModel { key: &key, folder: path.as_path(), role: "adapter of this model", first: "model" };
    adapter.tokenizer(tokenizer).map(drop)
}

/// Names what differs where a setting gives a model another tokenizer than its folder holds: tokens of other ids are other words to it.
///
/// # Errors
/// A tokenizer of the model that cannot be read.
pub fn note_other_tokenizer(key: &str, tokenizer: &Tokenizer, model: &Path) -> Result<()> {
    if !foreign::is_there(&model.join("tokenizer.json"))? {
        return Ok(());
    }
    let own = Tokenizer::load(model).with_context(|| model.display().to_string())?;
    if let Some(difference) = own.unknown_to(tokenizer) {
        tracing::warn!("{key}: in the tokenizer of the model itself, {}, {difference}", model.display());
    }
    Ok(())
}
