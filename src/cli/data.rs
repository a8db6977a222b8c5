//! `trainer data`: a data set in verl's parquet schema, or, with `select`, training rows from scored responses.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use super::data_select::{self, SelectArgs};
use super::error::CliError;
use burnish_data::prepare;
use burnish_hub::{Hub, HubName, Purpose, RepoKind};

#[derive(Args)]
#[command(after_help = data_sets(), args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct DataArgs {
    #[command(subcommand)]
    command: Option<DataCommand>,
    #[command(flatten)]
    set: SetArgs,
}

#[derive(Subcommand)]
enum DataCommand {
    /// Make training rows from scored responses
    Select(SelectArgs),
}

/// The arguments of a data set. Without a command, `name` and `output` are present.
#[derive(Args)]
struct SetArgs {
    /// Name of the data set; the list is below
    #[arg(required = true)]
    name: Option<String>,
    /// Folder of the published files, parquet or JSON [default: download them from the Hub]
    #[arg(long, value_name = "FOLDER")]
    input: Option<PathBuf>,
    /// Folder to write to
    #[arg(long, value_name = "FOLDER", required = true)]
    output: Option<PathBuf>,
    /// key=value settings of the data set
    settings: Vec<String>,
}

/// Returns the folders of the published files: `--input`, or the Hub's cache after a download.
fn inputs(args: &SetArgs, preparer: &prepare::Preparer) -> Result<Vec<PathBuf>> {
    if let Some(folder) = &args.input {
        return Ok(vec![folder.clone()]);
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for text in preparer.hub {
        let found = Hub::from_env()?.data(&HubName::parse(text, RepoKind::Dataset)?, Purpose::All);
        let found = found.with_context(|| format!("{}, whose files are not given by --input", preparer.name))?;
        for folder in found.paths.iter().filter_map(|file| file.parent()) {
            if !folders.iter().any(|known| known == folder) {
                folders.push(folder.to_owned());
            }
        }
    }
    Ok(folders)
}

/// The data sets with their files and licences, for the help text.
fn data_sets() -> String {
    let of = |preparer: &&prepare::Preparer| {
        let files = if preparer.files.is_empty() { "none".to_owned() } else { preparer.files.to_owned() };
        let names =
            if preparer.hub.is_empty() { String::new() } else { format!("    On the Hub: {}\n", preparer.hub.join(", ")) };
        format!("  {}\n    {}\n    Input: {files}\n{names}    Licence: {}\n", preparer.name, preparer.doc, preparer.licence)
    };
    format!("Data sets:\n{}", prepare::PREPARERS.iter().map(of).collect::<String>())
}

pub(super) fn run(args: DataArgs) -> Result<(), CliError> {
    match args.command {
        Some(DataCommand::Select(select)) => data_select::run(&select),
        None => prepare(args.set),
    }
}

fn prepare(args: SetArgs) -> Result<(), CliError> {
    let prepare = || {
        let preparer = prepare::find(args.name.as_deref().unwrap_or_default())?;
        if let Some(folder) = args.input.as_ref().filter(|folder| !folder.is_dir()) {
            bail!("--input {}: this folder does not exist", folder.display());
        }
        let settings = args.settings.iter().map(|text| {
            let (key, value) = text.split_once('=').with_context(|| format!("`{text}` is not key=value"))?;
            Ok((key.to_owned(), value.to_owned()))
        });
        let settings = settings.collect::<Result<_>>()?;
        (preparer.run)(&prepare::PrepareArgs {
            inputs: inputs(&args, preparer)?,
            output: args.output.clone().unwrap_or_default(),
            settings,
        })
    };
    for (file, rows) in prepare().map_err(CliError::classify)?.files {
        tracing::info!("{}: {rows} rows", file.display());
    }
    Ok(())
}
