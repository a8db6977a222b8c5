//! The arguments that select a configuration, and loading it.

use std::path::PathBuf;

use clap::Args;

use super::kinds::choices;
use super::print::warn_of_keys;
use burnish_config::kinds::by_name;
use burnish_config::{ConfigError, Kind, Loaded, Problem, Request, Schema};

/// The selected configuration and its overrides.
#[derive(Args, Clone, Default)]
pub struct ConfigArgs {
    /// Configuration: a path, or a name found in --config-dir, ./config, ./recipes or built in
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// Name of the configuration in --config-path (as Hydra's)
    #[arg(long, value_name = "NAME")]
    pub config_name: Option<String>,
    /// Folder of --config-name (as Hydra's)
    #[arg(long, value_name = "FOLDER")]
    pub config_path: Option<PathBuf>,
    /// Further folders to look in
    #[arg(long, value_name = "FOLDER")]
    pub(crate) config_dir: Vec<PathBuf>,
    /// key=value, +key=value, ++key=value, ~key, group=option; later ones win
    #[arg(value_name = "OVERRIDE")]
    pub overrides: Vec<String>,
}

impl ConfigArgs {
    /// Returns the request to the configuration layer.
    pub fn request(&self) -> Request {
        Request {
            config: self.config.clone(),
            config_name: self.config_name.clone(),
            config_path: self.config_path.clone(),
            config_dirs: self.config_dir.clone(),
            overrides: self.overrides.clone(),
        }
    }

    /// Loads the configuration of a run, and reports renamed keys and keys without effect.
    ///
    /// # Errors
    /// If the configuration is wrong; the error lists all problems.
    pub fn load<T: Schema>(&self) -> Result<Loaded<T>, ConfigError> {
        self.load_for(1)
    }

    /// Like [`Self::load`], for a number of processes that the configuration may require.
    ///
    /// # Errors
    /// The errors of `load`, and a number of processes other than the required one.
    pub(crate) fn load_for<T: Schema>(&self, processes: usize) -> Result<Loaded<T>, ConfigError> {
        let loaded = self.read::<T>(processes)?;
        warn_of_keys(&loaded.renamed, &loaded.ignored);
        Ok(loaded)
    }

    /// Loads the same configuration with another text as the value of a setting.
    ///
    /// # Errors
    /// The errors of [`Self::load_for`].
    pub(crate) fn load_with<T: Schema>(&self, processes: usize, key: &str, value: &str) -> Result<Loaded<T>, ConfigError> {
        let mut args = self.clone();
        args.overrides.push(format!("{key}='{}'", value.replace('\'', "\\'")));
        args.read(processes)
    }

    fn read<T: Schema>(&self, processes: usize) -> Result<Loaded<T>, ConfigError> {
        let request = self.request();
        let loaded = burnish_config::load::<T>(&request, &choices(T::KIND));
        loaded.map_err(|error| other_kind(&request, T::KIND).unwrap_or(error))?.started_as(processes)
    }
}

/// Detects the common cause of many problems: a configuration of another command.
fn other_kind(request: &Request, wanted: Kind) -> Option<ConfigError> {
    let file = request.config.as_ref().or(request.config_name.as_ref())?;
    let known = by_name(request).ok()?.filter(|known| known.kind != wanted)?;
    let problem = Problem::new("", format!("`{file}` is a configuration for another command"));
    let command = known.command.replace(&format!("{}.yaml", known.file), file);
    Some(problem.help(format!("run it as `{command}`")).into())
}
