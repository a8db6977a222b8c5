//! The command line. Without a subcommand it trains by reinforcement learning.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};

use crate::config::{self, ConfigError, Loaded, PpoConfig, Request, Schema, SftConfig};
use crate::data::prepare;
use crate::optim::learner::HUGGINGFACE;
use crate::pipelines::sft::{self, Sft};
use crate::tracking::Progress;
use crate::trainer::{self, Trainer};
use crate::util::fs::AtomicDir;

/// Reinforcement-learning post-training of language models.
///
///   trainer --config ppo_trainer.yaml algorithm.adv_estimator=rloo
#[derive(Parser)]
#[command(name = "trainer", version, args_conflicts_with_subcommands = true, verbatim_doc_comment)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Supervised fine-tuning (sft_trainer.yaml)
    Sft(ConfigArgs),
    /// Write a data set in verl's parquet schema
    Data(DataArgs),
    /// Copy the model of a checkpoint, as a folder that transformers loads
    Export(ExportArgs),
    /// Print the resolved configuration
    Config(ShowArgs),
}

#[derive(Args, Clone)]
struct ConfigArgs {
    /// Configuration: a path, or a name found in --config-dir, ./config, ./recipes or built in
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Name of the configuration in --config-path (as Hydra's)
    #[arg(long, value_name = "NAME")]
    config_name: Option<String>,
    /// Folder of --config-name (as Hydra's)
    #[arg(long, value_name = "FOLDER")]
    config_path: Option<PathBuf>,
    /// Further folders to look in
    #[arg(long, value_name = "FOLDER")]
    config_dir: Vec<PathBuf>,
    /// key=value, +key=value, ++key=value, ~key, group=option; later ones win
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
}

#[derive(Args)]
struct DataArgs {
    /// gsm8k or arithmetic
    name: String,
    /// Folder of the published files
    #[arg(long, value_name = "FOLDER")]
    input: Option<PathBuf>,
    /// Folder to write to
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
    /// key=value settings of the data set
    settings: Vec<String>,
}

#[derive(Args)]
struct ExportArgs {
    /// A checkpoint folder, global_step_N
    checkpoint: PathBuf,
    /// Folder to write; it must not exist
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
}

#[derive(Args)]
struct ShowArgs {
    /// Only `show` exists
    #[arg(value_parser = ["show"])]
    action: String,
    /// Of supervised fine-tuning rather than reinforcement learning
    #[arg(long)]
    sft: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Why a command failed, which decides the exit code.
pub enum Failure {
    /// Wrong input, found before anything was trained: exit code 2.
    Setup(String),
    /// Something that went wrong during the run: exit code 1.
    Run(String),
}

impl Failure {
    fn setup(error: anyhow::Error) -> Self {
        Self::Setup(format!("{error:#}"))
    }
    fn run(error: anyhow::Error) -> Self {
        Self::Run(format!("{error:#}"))
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Setup(error.to_string())
    }
}

/// Runs the command.
pub fn run(cli: Cli, progress: Progress) -> Result<(), Failure> {
    match cli.command {
        None => {
            let trainer = Trainer::new(load::<PpoConfig>(&cli.config)?, progress).map_err(Failure::setup)?;
            trainer.run().map_err(Failure::run)
        }
        Some(Command::Sft(args)) => {
            let sft = Sft::new(load::<SftConfig>(&args)?, progress).map_err(Failure::setup)?;
            sft.run().map_err(Failure::run)
        }
        Some(Command::Data(args)) => data(args).map_err(Failure::setup),
        Some(Command::Export(args)) => export(&args).map_err(Failure::setup),
        Some(Command::Config(args)) => {
            let yaml = match args.sft {
                true => load::<SftConfig>(&args.config)?.tree.to_yaml(),
                false => load::<PpoConfig>(&args.config)?.tree.to_yaml(),
            };
            progress.println(yaml.trim_end()).map_err(Failure::run)
        }
    }
}

/// A configuration whose registry names are checked by their registries.
trait Named: Schema {
    fn choices() -> Vec<(&'static str, Vec<String>)>;
}
impl Named for PpoConfig {
    fn choices() -> Vec<(&'static str, Vec<String>)> {
        trainer::choices()
    }
}
impl Named for SftConfig {
    fn choices() -> Vec<(&'static str, Vec<String>)> {
        sft::choices()
    }
}

/// Loads a configuration and reports what of it has no effect.
fn load<T: Named>(args: &ConfigArgs) -> Result<Loaded<T>, ConfigError> {
    let request = Request {
        config: args.config.clone(),
        config_name: args.config_name.clone(),
        config_path: args.config_path.clone(),
        config_dirs: args.config_dir.clone(),
        overrides: args.overrides.clone(),
    };
    let choices = T::choices();
    let names: Vec<(&str, Vec<&str>)> =
        choices.iter().map(|(key, names)| (*key, names.iter().map(String::as_str).collect())).collect();
    let choices: Vec<config::Choices> = names.iter().map(|(key, names)| (*key, names.as_slice())).collect();
    let loaded = config::load::<T>(&request, &choices)?;
    for ignored in &loaded.ignored {
        tracing::warn!("ignored: {}={}: {}", ignored.key, ignored.value, ignored.reason);
    }
    Ok(loaded)
}

fn data(args: DataArgs) -> Result<()> {
    let preparer = prepare::find(&args.name)?;
    let settings = args.settings.iter().map(|text| {
        let (key, value) = text.split_once('=').with_context(|| format!("`{text}` is not key=value"))?;
        Ok((key.to_owned(), value.to_owned()))
    });
    let settings = settings.collect::<Result<_>>()?;
    let report = (preparer.run)(&prepare::PrepareArgs { input: args.input, output: args.output, settings })?;
    for (file, rows) in report.files {
        tracing::info!("{}: {rows} rows", file.display());
    }
    Ok(())
}

fn export(args: &ExportArgs) -> Result<()> {
    crate::checkpoint::verify(&args.checkpoint)?;
    let folders = [args.checkpoint.join("actor").join(HUGGINGFACE), args.checkpoint.join(HUGGINGFACE)];
    let Some(model) = folders.iter().find(|folder| folder.is_dir()) else {
        bail!("{} holds no model (checkpoint.save_contents was set without `model`)", args.checkpoint.display());
    };
    if args.output.exists() {
        bail!("{} exists already", args.output.display());
    }
    let staged = AtomicDir::stage(&args.output)?;
    for entry in std::fs::read_dir(model).with_context(|| format!("cannot read {}", model.display()))? {
        let path = entry?.path();
        let name = path.file_name().context("a file without a name")?;
        std::fs::copy(&path, staged.path().join(name)).with_context(|| format!("cannot copy {}", path.display()))?;
    }
    staged.commit()?;
    tracing::info!("{}", args.output.display());
    Ok(())
}
