//! The entry of an optimizer in its table.

use anyhow::{Context, Result};

use super::optimizer::Optimizer;
use super::rule::Rule;
use super::settings::{OptionRow, Settings};

/// A row of [`OPTIMIZERS`](super::OPTIMIZERS).
pub struct OptimizerKind {
    /// The value of `optim.optimizer`.
    pub name: &'static str,
    /// Other names that are taken for it.
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    /// The settings beside `lr` that it reads: of `betas`, `eps` and `weight_decay`.
    pub reads: &'static [&'static str],
    /// The entries of `override_optimizer_config` that it takes.
    pub options: &'static [OptionRow],
    /// Builds the update.
    pub(super) build: fn(&Settings) -> Result<Box<dyn Rule>>,
}

impl OptimizerKind {
    /// Builds the optimizer.
    ///
    /// # Errors
    /// If an option is unknown or has a value that it cannot have.
    pub fn build(&'static self, settings: &Settings) -> Result<Optimizer> {
        settings.check(self.options).context(self.name)?;
        let rule = |settings: &Settings| (self.build)(settings).context(self.name);
        let without_decay = Settings { weight_decay: 0.0, ..settings.clone() };
        Ok(Optimizer::new(self.name, rule(settings)?).with_exempt(settings.no_decay.clone(), rule(&without_decay)?))
    }
}
