//! A configuration that can be loaded.

use super::location_setting::LocationSetting;
use crate::choices::Choices;
use crate::compat::Kind;
use crate::report::Report;

/// A configuration that [`load`](crate::load) can load.
pub trait Schema: serde::de::DeserializeOwned + std::fmt::Debug {
    /// The built-in file with all its defaults.
    const DEFAULT_NAME: &'static str = Self::KIND.default_file();
    /// The kind of configuration, which also selects verl's files.
    const KIND: Kind;

    /// Fills in the values that follow from the chosen names.
    fn completed(self, _choices: &Choices) -> Self {
        self
    }

    /// Returns the settings that name a model, data or a file of code or tools, if the run reads them.
    fn locations(&mut self) -> Vec<LocationSetting<'_>>;

    /// Checks the rules that the types cannot express: ranges, keys that must agree, and values that are not available.
    fn validate(&self, report: &mut Report);
}
