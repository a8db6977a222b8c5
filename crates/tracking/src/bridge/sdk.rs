//! A Python package and how to use it.

use serde_json::Value;

use crate::Session;

/// A Python package and how to use it.
pub(crate) struct Sdk {
    /// The name in `trainer.logger`, and the key of the class in bridge.py.
    pub name: &'static str,
    /// The module that is imported.
    pub module: &'static str,
    /// The name for `pip install`; `None` if the package is not on PyPI.
    pub package: Option<&'static str>,
    /// The settings of the run, in the form that the package gets.
    pub config: Value,
    /// The package's name for a metric.
    pub rename: fn(&str) -> String,
}

impl Sdk {
    /// Returns a package that gets the settings and the names of metrics as they are.
    pub fn plain(name: &'static str, module: &'static str, package: Option<&'static str>, session: &Session) -> Self {
        Self { name, module, package, config: session.config.clone(), rename: str::to_owned }
    }
}
