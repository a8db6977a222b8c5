//! Settings of an optimizer: the common ones, and the options of one optimizer.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail, ensure};
use serde_json::Value;

/// An entry of `override_optimizer_config`.
pub struct OptimizerOption {
    pub name: &'static str,
    /// Default value, as JSON or plain text.
    pub default: &'static str,
    pub doc: &'static str,
}

impl OptimizerOption {
    fn default_value(&self) -> Value {
        serde_json::from_str(self.default).unwrap_or_else(|_| self.default.into())
    }
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
    /// Returns the settings with a value for every option of an optimizer: its default, if the option is unset or null.
    ///
    /// # Errors
    /// The first option that the optimizer does not have, with the known ones.
    pub(super) fn with_defaults(&self, known: &[OptimizerOption]) -> Result<Self> {
        let names: Vec<_> = known.iter().map(|row| row.name).collect();
        match self.options.keys().find(|name| !names.contains(&name.as_str())) {
            Some(name) if names.is_empty() => bail!("takes no options, so `{name}` is unknown"),
            Some(name) => bail!("unknown option `{name}`: known are {}", names.join(", ")),
            None => {}
        }
        let option = |row: &OptimizerOption| self.options.get(row.name).filter(|value| !value.is_null()).cloned();
        let options = known.iter().map(|row| (row.name.to_owned(), option(row).unwrap_or_else(|| row.default_value()))).collect();
        Ok(Self { options, ..self.clone() })
    }

    /// Returns an option as `read` converts it.
    ///
    /// # Errors
    /// If `read` refuses the value; `expected` describes the allowed ones.
    fn option<T>(&self, name: &str, expected: &str, read: impl FnOnce(&Value) -> Option<T>) -> Result<T> {
        let value = self.options.get(name).unwrap_or(&Value::Null);
        read(value).ok_or_else(|| anyhow!("`{name}` must be {expected}, not {value}"))
    }

    /// Returns a number within bounds, which `expected` describes.
    pub(super) fn number(&self, name: &str, expected: &str, fits: impl Fn(f64) -> bool) -> Result<f64> {
        let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
        self.option(name, expected, |value| number(value).filter(|number| fits(*number)))
    }

    /// Returns a number within bounds, which `expected` describes, unless the option is null.
    pub(super) fn optional_number(&self, name: &str, expected: &str, fits: impl Fn(f64) -> bool) -> Result<Option<f64>> {
        let is_set = self.options.get(name).is_some_and(|value| !value.is_null());
        is_set.then(|| self.number(name, expected, fits)).transpose()
    }

    /// Returns a number from 0 to below 1.
    pub(super) fn decay(&self, name: &str) -> Result<f64> {
        self.number(name, "a number from 0 to below 1", |number| (0.0..1.0).contains(&number))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        self.option(name, "true or false", Value::as_bool)
    }

    /// Returns one of these names.
    pub(super) fn choice(&self, name: &str, names: &'static [&'static str]) -> Result<&'static str> {
        let expected = format!("one of {}", names.join(", "));
        self.option(name, &expected, |value| names.iter().find(|known| value.as_str() == Some(known)).copied())
    }

    /// Returns a list of numbers.
    pub(super) fn list<const N: usize>(&self, name: &str) -> Result<[f64; N]> {
        let numbers = |value: &Value| value.as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>();
        self.option(name, &format!("a list of {N} numbers"), |value| numbers(value)?.try_into().ok())
    }

    /// Checks two options against each other.
    pub(super) fn require(&self, holds: bool, message: &str) -> Result<()> {
        ensure!(holds, "{message}");
        Ok(())
    }
}
