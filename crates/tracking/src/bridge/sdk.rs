//! A Python package and its use by the bridge.

use serde_json::Value;

use crate::TrackedRun;

/// A Python package and its use by the bridge.
pub(crate) struct Sdk {
    /// Name in `trainer.logger`, and the key of the class in bridge.py.
    pub name: &'static str,
    /// Module that is imported.
    pub module: &'static str,
    /// Name for `pip install`; `None` if the package is not on PyPI.
    pub package: Option<&'static str>,
    /// Settings of the run, in the form that the package gets.
    pub config: Value,
    /// Converts the name of a metric to the package's name.
    pub rename: fn(&str) -> String,
}

impl Sdk {
    /// Creates a package that gets the settings and the names of metrics unchanged.
    pub(crate) fn plain(name: &'static str, module: &'static str, package: Option<&'static str>, session: &TrackedRun) -> Self {
        Self { name, module, package, config: session.config.clone(), rename: str::to_owned }
    }
}
