//! Settings of an optimizer: the common ones, and the options of one optimizer.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail, ensure};
use serde_json::Value;

/// An entry of `override_optimizer_config`.
pub struct OptimizerOption {
    pub name: &'static str,
    /// Default value, as text.
    pub default: &'static str,
    pub doc: &'static str,
}

/// Settings of an optimizer.
#[derive(Clone, Debug)]
pub struct OptimizerSettings {
    /// Peak learning rate.
    pub lr: f64,
    pub betas: [f64; 2],
    pub eps: f64,
    pub weight_decay: f64,
    /// Substrings of the names of parameters that do not decay.
    pub no_decay: Vec<String>,
    /// Entries of `override_optimizer_config`.
    pub options: BTreeMap<String, Value>,
}

impl OptimizerSettings {
    /// Refuses options that an optimizer does not have.
    ///
    /// # Errors
    /// The first such option, with the known ones.
    pub(super) fn check(&self, known: &[OptimizerOption]) -> Result<()> {
        let names: Vec<_> = known.iter().map(|row| row.name).collect();
        match self.options.keys().find(|name| !names.contains(&name.as_str())) {
            Some(name) if names.is_empty() => bail!("takes no options, so `{name}` is unknown"),
            Some(name) => bail!("unknown option `{name}`: known are {}", names.join(", ")),
            None => Ok(()),
        }
    }

    /// Returns an option, unless it is unset or null.
    fn given(&self, name: &str) -> Option<&Value> {
        self.options.get(name).filter(|value| !value.is_null())
    }

    fn wrong(&self, name: &str, expected: &str) -> anyhow::Error {
        anyhow!("`{name}` must be {expected}, not {}", self.options[name])
    }

    /// Returns a number within bounds, which `expected` describes.
    pub(super) fn number(&self, name: &str, default: f64, expected: &str, fits: impl Fn(f64) -> bool) -> Result<f64> {
        Ok(self.optional_number(name, expected, fits)?.unwrap_or(default))
    }

    /// Returns a number within bounds, which `expected` describes, if it is set.
    pub(super) fn optional_number(&self, name: &str, expected: &str, fits: impl Fn(f64) -> bool) -> Result<Option<f64>> {
        let Some(value) = self.given(name) else { return Ok(None) };
        let number = value.as_f64().or_else(|| value.as_str()?.parse().ok()).filter(|number| fits(*number));
        number.map(Some).ok_or_else(|| self.wrong(name, expected))
    }

    /// Returns a number from 0 to below 1.
    pub(super) fn decay(&self, name: &str, default: f64) -> Result<f64> {
        self.number(name, default, "a number from 0 to below 1", |number| (0.0..1.0).contains(&number))
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        let Some(value) = self.given(name) else { return Ok(default) };
        value.as_bool().ok_or_else(|| self.wrong(name, "true or false"))
    }

    /// Returns one of these names.
    pub(super) fn choice(&self, name: &str, names: &'static [&'static str]) -> Result<&'static str> {
        let Some(value) = self.given(name) else { return Ok(names[0]) };
        let found = names.iter().find(|known| value.as_str() == Some(known));
        found.copied().ok_or_else(|| self.wrong(name, &format!("one of {}", names.join(", "))))
    }

    /// Returns a list of numbers.
    pub(super) fn list<const N: usize>(&self, name: &str, default: [f64; N]) -> Result<[f64; N]> {
        let Some(value) = self.given(name) else { return Ok(default) };
        let numbers: Option<Vec<f64>> = value.as_array().and_then(|items| items.iter().map(Value::as_f64).collect());
        let numbers = numbers.and_then(|numbers| <[f64; N]>::try_from(numbers).ok());
        numbers.ok_or_else(|| self.wrong(name, &format!("a list of {N} numbers")))
    }

    /// Checks two options against each other.
    pub(super) fn require(&self, holds: bool, message: &str) -> Result<()> {
        ensure!(holds, "{message}");
        Ok(())
    }
}
