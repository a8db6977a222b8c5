//! `trainer export`: the model of a checkpoint, as a folder that transformers loads.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::Failure;
use crate::checkpoint;
use crate::optim::learner::HUGGINGFACE;
use crate::util::fs::AtomicDir;

#[derive(Args)]
pub struct ExportArgs {
    /// A checkpoint folder, global_step_N
    checkpoint: PathBuf,
    /// Folder to write; it must not exist
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
}

pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    let model = find_model(args).map_err(Failure::setup)?;
    copy(&model, &args.output).map_err(Failure::run)?;
    tracing::info!("{}", args.output.display());
    Ok(())
}

/// The model's folder in a checkpoint that is whole, if it can be copied to where it is wanted.
fn find_model(args: &ExportArgs) -> Result<PathBuf> {
    checkpoint::verify(&args.checkpoint)?;
    let mut folders = [args.checkpoint.join("actor").join(HUGGINGFACE), args.checkpoint.join(HUGGINGFACE)].into_iter();
    let Some(model) = folders.find(|folder| folder.is_dir()) else {
        bail!("{} holds no model (checkpoint.save_contents was set without `model`)", args.checkpoint.display());
    };
    if args.output.exists() {
        bail!("{} exists already", args.output.display());
    }
    Ok(model)
}

fn copy(model: &Path, output: &Path) -> Result<()> {
    let staged = AtomicDir::stage(output)?;
    for entry in fs::read_dir(model).with_context(|| format!("cannot read {}", model.display()))? {
        let path = entry?.path();
        let name = path.file_name().context("a file without a name")?;
        fs::copy(&path, staged.path().join(name)).with_context(|| format!("cannot copy {}", path.display()))?;
    }
    staged.commit()
}
