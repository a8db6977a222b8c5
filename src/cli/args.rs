//! The arguments that select a configuration, and loading it.

use std::path::PathBuf;

use clap::Args;

use super::kinds::choices;
use super::print::{note_first_run, warn_of_keys};
use super::saved_recipe::SavedRecipe;
use burnish_config::kinds::by_name;
use burnish_config::{ConfigError, Kind, Loaded, Origin, Problem, Request, Schema, Tree};

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
    /// Recipe to keep in the folder of the run.
    #[arg(skip)]
    pub(crate) kept: Option<SavedRecipe>,
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

    /// Keeps the recipe in the folder of a run that has started with these settings.
    pub(crate) fn keep_recipe(&self, settings: &Tree) {
        self.kept.iter().for_each(|kept| kept.keep(settings));
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
        let (loaded, missing) = self.read::<T>(processes)?;
        warn_of_keys(&loaded.renamed, &loaded.ignored);
        if let Some(device) = missing {
            tracing::warn!(
                "{DEVICE}={device} is verl's default and is not here (`trainer devices`): the run computes on the CPU"
            );
        }
        note_first_run(loaded.first_run.as_deref());
        Ok(loaded)
    }

    /// Loads the same configuration with another text as the value of a setting.
    ///
    /// # Errors
    /// The errors of [`Self::load_for`].
    pub(crate) fn load_with<T: Schema>(&self, processes: usize, key: &str, value: &str) -> Result<Loaded<T>, ConfigError> {
        let mut args = self.clone();
        args.overrides.push(format!("{key}='{}'", value.replace('\'', "\\'")));
        Ok(args.read(processes)?.0)
    }

    /// Loads the same configuration without reports of its keys.
    ///
    /// # Errors
    /// The errors of [`Self::load`].
    pub(super) fn load_quietly<T: Schema>(&self) -> Result<Loaded<T>, ConfigError> {
        Ok(self.read(1)?.0)
    }

    /// Loads the configuration. If a GPU that the user did not name is missing, the device is the CPU; also returns that GPU.
    fn read<T: Schema>(&self, processes: usize) -> Result<(Loaded<T>, Option<String>), ConfigError> {
        let loaded = self.read_as_written::<T>(processes)?;
        let Some(device) = missing_default(&loaded.tree) else { return Ok((loaded, None)) };
        let mut args = self.clone();
        args.overrides.push(format!("{DEVICE}=cpu"));
        Ok((args.read_as_written(processes)?, Some(device)))
    }

    fn read_as_written<T: Schema>(&self, processes: usize) -> Result<Loaded<T>, ConfigError> {
        let request = self.request();
        let loaded = burnish_config::load::<T>(&request, &choices(T::KIND));
        loaded.map_err(|error| other_kind(&request, T::KIND).unwrap_or(error))?.started_as(processes)
    }
}

/// The setting of the device.
const DEVICE: &str = "trainer.device";
/// The built-in files with verl's defaults, whose device is a GPU.
const VERLS_DEFAULTS: &str = "built-in config/verl/";

/// Returns the device if it is a GPU that is not here and that no user named.
fn missing_default(tree: &Tree) -> Option<String> {
    let node = tree.root().get(DEVICE)?;
    let Origin::File { source, .. } = &node.origin else { return None };
    let device = node.value.plain_text().filter(|_| source.name.starts_with(VERLS_DEFAULTS))?;
    let interface = device.split(':').next().unwrap_or_default();
    (interface != "cpu" && !burnish_model::device::is_here(interface)).then_some(device)
}

/// Detects the common cause of many problems: a configuration of another command.
fn other_kind(request: &Request, requested: Kind) -> Option<ConfigError> {
    let file = request.config.as_ref().or(request.config_name.as_ref())?;
    let known = by_name(request).ok()?.filter(|known| known.kind != requested)?;
    let problem = Problem::new("", format!("`{file}` is a configuration for another command"));
    let command = known.command.replace(&format!("{}.yaml", known.file), file);
    Some(problem.help(format!("run it as `{command}`")).into())
}
