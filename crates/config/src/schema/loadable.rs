//! A configuration that can be loaded.

use super::location_setting::LocationSetting;
use crate::choices::Choices;
use crate::compat::Kind;
use crate::report::Report;

/// A configuration that [`load`](crate::load) can load.
pub trait Schema: serde::de::DeserializeOwned + std::fmt::Debug {
    /// The built-in file that holds all its defaults.
    const DEFAULT_NAME: &'static str = Self::KIND.default_file();
    /// The kind of configuration, which determines verl's counterpart.
    const KIND: Kind;

    /// Fills in what follows from the chosen names alone.
    fn completed(self, _choices: &Choices) -> Self {
        self
    }

    /// The settings that name a model or data, as far as a run reads them.
    fn locations(&mut self) -> Vec<LocationSetting<'_>>;

    /// Checks the rules that the types cannot express: ranges, keys that must agree, and values that are not available.
    fn validate(&self, report: &mut Report);
}
