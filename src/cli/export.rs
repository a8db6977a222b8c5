//! `trainer export`: the model of a checkpoint, as a folder that transformers or PEFT loads.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use safetensors::Dtype;

use super::failure::Failure;
use crate::checkpoint::refuse_inside;
use crate::job::hub_names::model_folder;
use crate::optim::learner::ADAPTER;
use crate::pipelines::export::{Form, export, find_part};

#[derive(Args)]
pub struct ExportArgs {
    /// A checkpoint folder, global_step_N, or the actor or critic in it
    checkpoint: PathBuf,
    /// Folder to write; it must not exist
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
    /// Type of the weights; float32 is what was trained [default: float32]
    #[arg(long, value_enum)]
    dtype: Option<DtypeArg>,
    /// Largest file of weights; more weights are several files with an index [default: 5GB]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_shard_size: Option<usize>,
    /// Merge a LoRA adapter into its base model, or write it as it is [default: merge]
    #[arg(long, value_enum)]
    lora: Option<LoraArg>,
    /// Folder or name on the Hub of the adapter's base model, where it is not what the checkpoint says
    #[arg(long, value_name = "FOLDER")]
    base: Option<PathBuf>,
    /// Which model of a checkpoint that has several [default: actor]
    #[arg(long, value_enum)]
    part: Option<PartArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum DtypeArg {
    Float32,
    Bfloat16,
    Float16,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum LoraArg {
    Merge,
    Keep,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum PartArg {
    Actor,
    Critic,
}

pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    let (part, form) = resolve(args).map_err(Failure::setup)?;
    export(&part, &form, &args.output).map_err(Failure::run)?;
    tracing::info!("{}", args.output.display());
    Ok(())
}

/// The folder of the model, and the form in which it is exported.
fn resolve(args: &ExportArgs) -> Result<(PathBuf, Form)> {
    let part = find_part(
        &args.checkpoint,
        args.part.map(|part| match part {
            PartArg::Actor => "actor",
            PartArg::Critic => "critic",
        }),
    )?;
    ensure!(!args.output.exists(), "{} exists already", args.output.display());
    refuse_inside(&args.output).context("--output")?;
    let adapted = part.join(ADAPTER).is_dir();
    ensure!(adapted || args.lora.is_none(), "--lora: {} holds no LoRA adapter", part.display());
    if args.lora == Some(LoraArg::Keep) {
        let idle = [
            ("--dtype", args.dtype.is_some()),
            ("--max-shard-size", args.max_shard_size.is_some()),
            ("--base", args.base.is_some()),
        ];
        for (option, given) in idle {
            ensure!(!given, "{option} has no effect with --lora keep: the adapter is written as it is");
        }
        return Ok((part, Form::Adapter));
    }
    let (dtype, name) = match args.dtype.unwrap_or(DtypeArg::Float32) {
        DtypeArg::Float32 => (Dtype::F32, "float32"),
        DtypeArg::Bfloat16 => (Dtype::BF16, "bfloat16"),
        DtypeArg::Float16 => (Dtype::F16, "float16"),
    };
    let base = args.base.as_deref().map(|base| model_folder("--base", base)).transpose()?;
    let shard = args.max_shard_size.unwrap_or(5_000_000_000);
    Ok((part, Form::Weights { dtype, name, shard, base }))
}

/// Units of a size: GB are 10^9 bytes and GiB 2^30, as in transformers.
const UNITS: &[(&str, usize)] =
    &[("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30), ("kb", 1_000), ("mb", 1_000_000), ("gb", 1_000_000_000), ("b", 1)];

/// Parses a size such as 5GB to bytes.
fn bytes(text: &str) -> Result<usize> {
    let lower = text.to_lowercase();
    let unit = UNITS.iter().find_map(|(unit, factor)| Some((lower.strip_suffix(unit)?, *factor)));
    let (number, factor) = unit.unwrap_or((&lower, 1));
    let count: usize = number.trim().parse().ok().filter(|count| *count > 0).context("must be a size such as 5GB or 500MiB")?;
    count.checked_mul(factor).context("is too large")
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes() {
        let sizes =
            ["5GB", "2 gib", "70kb", "123", "9B", "0GB", "GB", "1.5GB", "-1MB", "99999999999999GB"].map(|x| bytes(x).ok());
        let [none, gib] = [None, Some(2 << 30)];
        assert_eq!(sizes, [Some(5_000_000_000), gib, Some(70_000), Some(123), Some(9), none, none, none, none, none]);
    }
}
