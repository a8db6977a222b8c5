//! `trainer data`: a data set in verl's parquet schema.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::failure::Failure;
use crate::data::prepare;
use crate::hub::{Hub, HubName, Kind, Purpose};

#[derive(Args)]
#[command(after_help = data_sets())]
pub struct DataArgs {
    /// Name of the data set; the list is below
    name: String,
    /// Folder of the published files, parquet or JSON [default: they are downloaded from the Hub]
    #[arg(long, value_name = "FOLDER")]
    input: Option<PathBuf>,
    /// Folder to write to
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
    /// key=value settings of the data set
    settings: Vec<String>,
}

/// The folders of the published files: `--input`, or those of the cache of the Hub into which they are downloaded.
fn inputs(args: &DataArgs, preparer: &prepare::Preparer) -> Result<Vec<PathBuf>> {
    if let Some(folder) = &args.input {
        return Ok(vec![folder.clone()]);
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for text in preparer.hub {
        let found = Hub::of_process()?.data(&HubName::parse(text, Kind::Dataset)?, Purpose::All);
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

pub fn run(args: DataArgs) -> Result<(), Failure> {
    let prepare = || {
        let preparer = prepare::find(&args.name)?;
        if let Some(folder) = args.input.as_ref().filter(|folder| !folder.is_dir()) {
            bail!("--input {}: there is no such folder", folder.display());
        }
        let settings = args.settings.iter().map(|text| {
            let (key, value) = text.split_once('=').with_context(|| format!("`{text}` is not key=value"))?;
            Ok((key.to_owned(), value.to_owned()))
        });
        let settings = settings.collect::<Result<_>>()?;
        (preparer.run)(&prepare::PrepareArgs { inputs: inputs(&args, preparer)?, output: args.output.clone(), settings })
    };
    for (file, rows) in prepare().map_err(Failure::of)?.files {
        tracing::info!("{}: {rows} rows", file.display());
    }
    Ok(())
}
