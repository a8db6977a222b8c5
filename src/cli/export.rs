//! `trainer export`: the model of a checkpoint, as a folder that transformers or PEFT loads, and as a repository on the Hub.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, bail, ensure};
use clap::{Args, ValueEnum};
use safetensors::Dtype;

use super::error::CliError;
use crate::job::hub_names::model_folder;
use crate::pipelines::export::{ExportForm, export, export_gguf, find_part, is_exported};
use crate::pipelines::export_card::is_card;
use burnish_checkpoint::{best, refuse_inside, step_of};
use burnish_gguf::TensorType;
use burnish_hub::{Environment, HubName, MAIN, Push, PushResult, PushTarget, RepoKind};
use burnish_optim::learner::ADAPTER;
use burnish_util::fs::read_json;
use burnish_util::shell;

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// A run, whose last checkpoint is taken, a checkpoint (global_step_N), or the actor or critic in it; for a push, also a
    /// folder that was exported before
    checkpoint: PathBuf,
    /// Take the best checkpoint of the run in the given folder
    #[arg(long)]
    best: bool,
    /// Folder to write, or file with --gguf; it must not exist
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Type of the written weights; training uses float32 [default: float32]
    #[arg(long, value_enum)]
    dtype: Option<DtypeArg>,
    /// Write one GGUF file with the tokenizer, for llama.cpp, with matrices of this type; --output is its name
    #[arg(long, value_enum, value_name = "TYPE", conflicts_with_all = ["dtype", "max_shard_size", "push_to_hub"])]
    gguf: Option<GgufArg>,
    /// Maximum size of a file of weights; larger models are split into files with an index [default: 5GB]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_shard_size: Option<usize>,
    /// Merge a LoRA adapter into its base model, or write it as an adapter [default: merge]
    #[arg(long, value_enum)]
    lora: Option<LoraArg>,
    /// Folder or Hub name of the adapter's base model [default: the model that the checkpoint names]
    #[arg(long, value_name = "FOLDER")]
    base: Option<PathBuf>,
    /// Write a copy of this model of images and text, a folder or Hub name, with the trained weights as its text part
    #[arg(long, value_name = "FOLDER", conflicts_with = "gguf")]
    into: Option<PathBuf>,
    /// Model to export, if the checkpoint has several [default: actor]
    #[arg(long, value_enum)]
    part: Option<PartArg>,
    /// Push the result to this repository on the Hub, ORG/NAME or NAME; it is created if missing. HF_TOKEN is the token
    #[arg(long, value_name = "NAME")]
    push_to_hub: Option<String>,
    /// Make a new repository private; an existing one must be private
    #[arg(long, requires = "push_to_hub")]
    private: bool,
    /// Branch to push to; it is created if missing [default: main]
    #[arg(long, value_name = "BRANCH", requires = "push_to_hub")]
    revision: Option<String>,
    /// First line of the commit message [default: the exported step]
    #[arg(long, value_name = "TEXT", requires = "push_to_hub")]
    commit_message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum DtypeArg {
    Float32,
    Bfloat16,
    Float16,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum GgufArg {
    Float32,
    Float16,
    Bfloat16,
    #[value(name = "q8_0")]
    Q8_0,
}

impl From<GgufArg> for TensorType {
    fn from(kind: GgufArg) -> Self {
        match kind {
            GgufArg::Float32 => Self::F32,
            GgufArg::Float16 => Self::F16,
            GgufArg::Bfloat16 => Self::Bf16,
            GgufArg::Q8_0 => Self::Q8_0,
        }
    }
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

pub(super) fn run(args: &ExportArgs) -> Result<(), CliError> {
    let source = resolve(args).map_err(CliError::setup)?;
    // A wrong token is found before hours of writing.
    let push = args.push_to_hub.as_ref().map(|name| target(name, args, &source)).transpose().map_err(CliError::setup)?;
    let push = push.map(|target| Push::prepare(Environment::from_env()?, target).map_err(Error::from));
    let push = push.transpose().map_err(CliError::setup)?;
    let folder = match &source {
        Source::Exported(folder) => folder,
        Source::Gguf { part, kind, base, output } => {
            export_gguf(part, *kind, base.as_deref(), output).map_err(CliError::run)?;
            tracing::info!("the model is written to {}", output.display());
            return Ok(());
        }
        Source::Checkpoint { part, form, output } => {
            let name = push.as_ref().map(Push::repo).or_else(|| output.file_name()?.to_str()).unwrap_or("model");
            export(part, form, output, name).map_err(CliError::run)?;
            tracing::info!(
                "{} is written to {}",
                if matches!(form, ExportForm::Adapter) { "the adapter" } else { "the model" },
                output.display()
            );
            output
        }
    };
    let Some(push) = push else { return Ok(()) };
    if let Some(base) = local_base(folder) {
        tracing::warn!(
            "adapter_config.json names the base model by a folder of this machine, {base}, that others do not have: they will have to \
             name their own"
        );
    }
    match push.push(folder, is_card) {
        Ok(pushed) => tracing::info!("{}", in_words(&pushed)),
        Err(failure) => {
            let again = format!("trainer export {} --push-to-hub {}", shell::word(folder), push.repo());
            return Err(CliError::Run(format!("{failure}\nthe export is complete; to push it: {again}")));
        }
    }
    Ok(())
}

/// Returns the local folder that an exported adapter names as its base model.
fn local_base(folder: &Path) -> Option<String> {
    let config: serde_json::Value = read_json(&folder.join("adapter_config.json")).ok()?;
    let base = config.get("base_model_name_or_path")?.as_str()?;
    let is_folder = Path::new(base).is_absolute() || Path::new(base).exists();
    is_folder.then(|| base.to_owned())
}

/// Describes a push for users.
fn in_words(pushed: &PushResult) -> String {
    let kept = if pushed.kept_card { "; its README.md was kept, because it was not written here" } else { "" };
    match &pushed.commit {
        None => format!("{}: nothing to push, all files are there{kept}", pushed.page),
        Some(commit) => format!(
            "{}: {} files in commit {}, {} large ones with {} bytes sent{kept}",
            pushed.page,
            pushed.files,
            commit.get(..12).unwrap_or(commit),
            pushed.sent,
            pushed.bytes
        ),
    }
}

/// Returns the repository to push to.
fn target(name: &str, args: &ExportArgs, source: &Source) -> Result<PushTarget> {
    let wrong = || format!("--push-to-hub {name}: it must be the name of a repository, ORG/NAME or NAME");
    let named = HubName::parse(name, RepoKind::Model).with_context(wrong)?;
    ensure!(named.revision.is_none(), "--push-to-hub {name}: the branch is --revision");
    ensure!(named.rest.is_empty(), "--push-to-hub {name}: a repository has the form ORG/NAME");
    let branch = args.revision.clone().unwrap_or_else(|| MAIN.to_owned());
    let plain =
        !branch.is_empty() && !branch.starts_with("refs/") && !branch.chars().any(|c| c.is_whitespace() || c.is_control());
    ensure!(plain, "--revision {branch}: it must be the name of a branch");
    let message = args.commit_message.clone().unwrap_or_else(|| match source {
        Source::Checkpoint { part, .. } => {
            let step = [Some(part.as_path()), part.parent()].into_iter().flatten().find_map(|path| step_of(path).ok());
            step.map_or_else(|| "Export of burnish".to_owned(), |step| format!("Export of burnish after step {step}"))
        }
        Source::Exported(_) | Source::Gguf { .. } => "Export of burnish".to_owned(),
    });
    ensure!(!message.trim().is_empty(), "--commit-message is empty");
    Ok(PushTarget { repo: named.repo, branch, private: args.private, message })
}

/// The model to export or push.
enum Source {
    Checkpoint {
        part: PathBuf,
        form: ExportForm,
        output: PathBuf,
    },
    /// A checkpoint whose model becomes one file.
    Gguf {
        part: PathBuf,
        kind: TensorType,
        base: Option<PathBuf>,
        output: PathBuf,
    },
    /// A folder that is pushed unchanged.
    Exported(PathBuf),
}

/// Finds the model of the command, before anything is written.
fn resolve(args: &ExportArgs) -> Result<Source> {
    if args.output.is_none() && is_exported(&args.checkpoint) {
        ensure!(args.push_to_hub.is_some(), "{} is exported already; --push-to-hub pushes it", args.checkpoint.display());
        let idle = [
            ("--dtype", args.dtype.is_some()),
            ("--gguf", args.gguf.is_some()),
            ("--max-shard-size", args.max_shard_size.is_some()),
            ("--lora", args.lora.is_some()),
            ("--base", args.base.is_some()),
            ("--into", args.into.is_some()),
            ("--part", args.part.is_some()),
            ("--best", args.best),
        ];
        for (option, given) in idle {
            ensure!(!given, "{option} has no effect on {}, which is pushed unchanged", args.checkpoint.display());
        }
        return Ok(Source::Exported(args.checkpoint.clone()));
    }
    let (part, form) = checkpoint(args)?;
    let Some(output) = &args.output else { bail!("--output FOLDER is missing: the folder to write") };
    ensure!(!output.exists(), "{} exists already{}", output.display(), already(output, args));
    refuse_inside(output).context("--output")?;
    let output = output.clone();
    Ok(match (args.gguf, form) {
        (Some(kind), ExportForm::Weights { base, .. }) => {
            let is_named = output.extension().is_some_and(|extension| extension == "gguf");
            ensure!(is_named, "--output {}: with --gguf it is a file, whose name ends in .gguf", output.display());
            Source::Gguf { part, kind: kind.into(), base, output }
        }
        (_, form) => Source::Checkpoint { part, form, output },
    })
}

/// Returns the command that pushes an output folder from an earlier attempt.
fn already(output: &Path, args: &ExportArgs) -> String {
    let Some(name) = args.push_to_hub.as_ref().filter(|_| is_exported(output)) else { return String::new() };
    format!("; to push it: trainer export {} --push-to-hub {name}", shell::word(output))
}

/// Returns the folder of the model and the form of the export.
fn checkpoint(args: &ExportArgs) -> Result<(PathBuf, ExportForm)> {
    let checkpoint = if args.best { best(&args.checkpoint).context("--best")? } else { args.checkpoint.clone() };
    let part = find_part(
        &checkpoint,
        args.part.map(|part| match part {
            PartArg::Actor => "actor",
            PartArg::Critic => "critic",
        }),
    )?;
    let adapted = part.join(ADAPTER).is_dir();
    ensure!(adapted || args.lora.is_none(), "--lora: {} does not hold a LoRA adapter", part.display());
    if args.lora == Some(LoraArg::Keep) {
        let idle = [
            ("--dtype", args.dtype.is_some()),
            ("--gguf", args.gguf.is_some()),
            ("--max-shard-size", args.max_shard_size.is_some()),
            ("--base", args.base.is_some()),
            ("--into", args.into.is_some()),
        ];
        for (option, given) in idle {
            ensure!(!given, "{option} has no effect with --lora keep: the adapter is written unchanged");
        }
        return Ok((part, ExportForm::Adapter));
    }
    let (dtype, name) = match args.dtype.unwrap_or(DtypeArg::Float32) {
        DtypeArg::Float32 => (Dtype::F32, "float32"),
        DtypeArg::Bfloat16 => (Dtype::BF16, "bfloat16"),
        DtypeArg::Float16 => (Dtype::F16, "float16"),
    };
    let base = args.base.as_deref().map(|base| model_folder("--base", base)).transpose()?;
    let into = args.into.as_deref().map(|into| model_folder("--into", into)).transpose()?;
    let shard = args.max_shard_size.unwrap_or(5_000_000_000);
    Ok((part, ExportForm::Weights { dtype, name, shard, base, into }))
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
