//! Registry entry of an optimizer.

use anyhow::{Context, Result};

use super::optimizer::Optimizer;
use super::rule::Rule;
use super::settings::{OptimizerOption, OptimizerSettings};

/// A row of [`OPTIMIZERS`](super::OPTIMIZERS).
pub struct OptimizerKind {
    /// Value of `optim.optimizer`.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    /// Settings other than `lr` that the optimizer reads: some of `betas`, `eps` and `weight_decay`.
    pub reads: &'static [&'static str],
    /// Entries of `override_optimizer_config` that the optimizer accepts.
    pub options: &'static [OptimizerOption],
    /// Builds the update.
    pub(super) build: fn(&OptimizerSettings) -> Result<Box<dyn Rule>>,
}

impl OptimizerKind {
    /// Builds the optimizer.
    ///
    /// # Errors
    /// If an option is unknown or has an invalid value.
    pub fn build(&'static self, settings: &OptimizerSettings) -> Result<Optimizer> {
        let settings = settings.with_defaults(self.options).context(self.name)?;
        let rule = |settings: &OptimizerSettings| (self.build)(settings).context(self.name);
        let without_decay = OptimizerSettings { weight_decay: 0.0, ..settings.clone() };
        Ok(Optimizer::new(self.name, rule(&settings)?).with_exempt(settings.no_decay.clone(), rule(&without_decay)?))
    }
}
