//! `trainer run`: trains what a recipe, a script or a command of another library describes.

use std::path::Path;

use anyhow::anyhow;
use clap::Args;

use super::args::ConfigArgs;
use super::conversion::{ScriptSource, with_space};
use super::dry_run_arg::DryRunArg;
use super::error::CliError;
use super::from_peer::{self, FromPeerArgs};
use super::from_verl::{self, FromVerlArgs};
use super::generate::GenerateArgs;
use super::kinds::subcommand;
use super::recognise::{SourceLibrary, is_recipe, library_of_program, library_of_script};
use super::saved_recipe::SavedRecipe;
use super::stage::StageArgs;
use super::train::TrainArgs;
use super::{eval, generate, stage, train};
use crate::pipelines::distill::Distill;
use crate::pipelines::dpo::Dpo;
use crate::pipelines::rm::Rm;
use crate::pipelines::sft::Sft;
use burnish_config::Request;
use burnish_config::compat::Kind;
use burnish_config::kinds::infer;
use burnish_convert::from_verl::Blocked;
use burnish_convert::peers::{Peer, RefusedOption};
use burnish_distributed::launched_rank;
use burnish_run::Output;
use burnish_util::foreign;
use burnish_util::shell::{command_line, word};

/// The recipe is kept as recipe.yaml in the folder of the run.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// @script.sh, a recipe, a file of TRL's options, a Python script, or a command in quotes
    source: Option<String>,
    /// key=value overrides, as for other commands; NAME=VALUE without a dot is a variable that the script takes
    #[arg(value_name = "OVERRIDE")]
    words: Vec<String>,
    /// Arguments of the script; without a source, the words of a command
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
    #[command(flatten)]
    dry_run: DryRunArg,
    /// Train without the options that burnish does not have
    #[arg(long)]
    leave_out: bool,
    /// Line of the command, if a script has several [default: the first]
    #[arg(long, value_name = "N")]
    line: Option<usize>,
    /// Number of the launch, if the command is launched several times, as in a loop [default: 1]
    #[arg(long, value_name = "N")]
    launch: Option<usize>,
    /// Edition of the library whose defaults count [default: chosen by the options]
    #[arg(long)]
    edition: Option<String>,
    /// Trainer of the command, if the command does not show it
    #[arg(long, value_name = "NAME")]
    algo: Option<String>,
    /// Number of processes that the command starts, if the command does not show it
    #[arg(long, value_name = "N")]
    processes: Option<usize>,
}

/// A configuration of any source.
struct Described {
    kind: Kind,
    config: String,
    overrides: Vec<String>,
    /// The converted recipe; `None` if the source is a recipe.
    recipe: Option<String>,
    /// The parts of the command that burnish does not have.
    lost: Vec<String>,
    /// The overrides that the user typed behind the source.
    typed: Vec<String>,
    /// The settings whose values the command does not contain, with the known facts about them.
    open: Vec<(String, String)>,
}

pub(super) fn run(args: &RunArgs, output: Output) -> Result<(), CliError> {
    let words = || command_line(&args.arguments);
    let (source, is_file) = match &args.source {
        Some(source) => match source.strip_prefix('@') {
            Some(file) => (file.to_owned(), true),
            None => (source.clone(), Path::new(source).is_file()),
        },
        None if !args.arguments.is_empty() => (words(), false),
        None => {
            return Err(CliError::setup(anyhow!("`trainer run` needs a script, a recipe or a command: trainer run @script.sh")));
        }
    };
    let is_yaml = source.ends_with(".yaml") || source.ends_with(".yml");
    let described = if is_yaml && (!is_file || is_recipe(&source)?) {
        recipe(&source, &args.words)?
    } else {
        convert(args, &source, is_file)?
    };
    refuse_open(args, &described)?;
    start(args.dry_run, described, output)
}

fn recipe(path: &str, overrides: &[String]) -> Result<Described, CliError> {
    let request = Request { config: Some(path.to_owned()), overrides: overrides.to_vec(), ..Request::default() };
    let kind = infer(&request)?.kind;
    Ok(Described {
        kind,
        config: path.to_owned(),
        overrides: overrides.to_vec(),
        recipe: None,
        lost: vec![],
        typed: vec![],
        open: vec![],
    })
}

/// Converts a script, a program or a command, and adds the user's overrides.
fn convert(args: &RunArgs, source: &str, is_file: bool) -> Result<Described, CliError> {
    let (overrides, variables): (Vec<String>, Vec<String>) = args.words.iter().cloned().partition(|word| is_setting(word));
    let is_options = source.ends_with(".yaml") || source.ends_with(".yml");
    let arguments: &[String] = if args.source.is_some() { &args.arguments } else { &[] };
    let library = match is_file {
        true if is_options => SourceLibrary::Peer(&burnish_convert::from_trl::TRL),
        true if source.ends_with(".py") => library_of_program(source)?,
        _ => {
            let text = match is_file {
                true => foreign::read_text(Path::new(source), foreign::SETTINGS).map_err(CliError::setup)?,
                false => source.to_owned(),
            };
            let name = if is_file { source } else { "command" };
            let (line, launch) = (args.line, args.launch);
            library_of_script(&ScriptSource { name, is_file, variables: &variables, arguments, line, launch }, &text)?
        }
    };
    let command = if is_file { format!("@{source}") } else { source.to_owned() };
    let mut described = match library {
        SourceLibrary::Verl => verl(&FromVerlArgs {
            command,
            variables,
            arguments: arguments.to_vec(),
            line: args.line,
            launch: args.launch,
            edition: args.edition.clone(),
            ..FromVerlArgs::default()
        })?,
        SourceLibrary::Peer(library) => peer(
            library,
            &FromPeerArgs {
                command: Some(command),
                variables,
                words: arguments.to_vec(),
                line: args.line,
                launch: args.launch,
                edition: args.edition.clone(),
                algo: args.algo.clone(),
                processes: args.processes,
                ..FromPeerArgs::default()
            },
        )?,
    };
    described.overrides.extend(overrides.iter().cloned());
    described.typed = overrides;
    Ok(described)
}

/// Returns true if a word is an override of a setting, and not a variable of a script: names of variables have no dots.
fn is_setting(word: &str) -> bool {
    word.starts_with(['+', '~']) || word.split('=').next().is_some_and(|name| name.contains(['.', '/', '@']))
}

fn verl(args: &FromVerlArgs) -> Result<Described, CliError> {
    let (name, converted, _) = from_verl::convert(args)?;
    if is_first() {
        from_verl::report(name, &converted);
    }
    let mut open = converted.open_keys();
    open.extend(converted.unknown_words.iter().map(|hole| (String::new(), format!("{name}:{}: {}", hole.line, hole.message))));
    Ok(Described {
        kind: converted.kind,
        lost: converted.blocked.iter().map(Blocked::line).collect(),
        config: converted.preset,
        overrides: converted.overrides,
        recipe: Some(converted.recipe),
        typed: vec![],
        open,
    })
}

fn peer(peer: &'static Peer, args: &FromPeerArgs) -> Result<Described, CliError> {
    let (messages, converted) = from_peer::convert(peer, args)?;
    if is_first() {
        from_peer::report(&messages, &converted);
    }
    Ok(Described {
        kind: converted.kind,
        config: converted.preset.to_owned(),
        overrides: converted.overrides.iter().map(|word| format!("++{word}")).collect(),
        lost: converted.refused.iter().map(RefusedOption::line).chain(converted.differences).collect(),
        open: converted.missing.into_iter().map(|hole| (hole.key, hole.message)).collect(),
        recipe: Some(converted.recipe),
        typed: vec![],
    })
}

/// Refuses a command with parts that burnish does not have, and settings without values, unless the user decided about them.
fn refuse_open(args: &RunArgs, described: &Described) -> Result<(), CliError> {
    let given = |key: &str| {
        let name = |word: &String| word.trim_start_matches(['+', '~']).split('=').next().unwrap_or_default().to_owned();
        args.words.iter().any(|word| name(word) == key)
    };
    let open: Vec<_> = described.open.iter().filter(|(key, _)| !given(key)).collect();
    if !open.is_empty() {
        let lines: String = open
            .iter()
            .map(|(key, why)| match key.as_str() {
                "" => format!("\n  {why}"),
                key => format!("\n  {key}=VALUE  ({why})"),
            })
            .collect();
        let message =
            anyhow!("the command does not show these values; type them behind it, with values for the variables:{lines}");
        return Err(CliError::setup(message));
    }
    match described.lost.len() {
        0 => Ok(()),
        _ if args.leave_out => Ok(()),
        count => Err(CliError::setup(anyhow!(
            "burnish does not have {count} {} of the command, listed above: --leave-out trains without {}",
            if count == 1 { "part" } else { "parts" },
            if count == 1 { "it" } else { "them" },
        ))),
    }
}

/// Runs the command of the kind.
fn start(dry_run: DryRunArg, described: Described, output: Output) -> Result<(), CliError> {
    let Described { kind, config, overrides, recipe, typed, .. } = described;
    let subcommand = subcommand(kind);
    if is_first() {
        match &recipe {
            Some(_) => tracing::info!("the command as settings: trainer {}--config {config}", with_space(subcommand)),
            None => tracing::info!("trainer {}--config {}", with_space(subcommand), word(Path::new(&config))),
        }
    }
    let kept = recipe.map(|text| SavedRecipe::new(subcommand, &text, &typed));
    let config = ConfigArgs { config: Some(config), overrides, kept, ..ConfigArgs::default() };
    match kind {
        Kind::Rl => train::run(&TrainArgs { dry_run, config, ..TrainArgs::default() }, output),
        Kind::Sft => stage::run::<Sft>(&StageArgs { dry_run, config, ..StageArgs::default() }, output),
        Kind::Rm => stage::run::<Rm>(&StageArgs { dry_run, config, ..StageArgs::default() }, output),
        Kind::Dpo => stage::run::<Dpo>(&StageArgs { dry_run, config, ..StageArgs::default() }, output),
        Kind::Distill => stage::run::<Distill>(&StageArgs { dry_run, config, ..StageArgs::default() }, output),
        Kind::Generation => generate::run(&GenerateArgs { dry_run: dry_run.is_set(), config }, output.progress),
        Kind::Evaluation if dry_run.is_set() => {
            Err(CliError::Setup("an evaluation has no --dry-run: it reads responses and scores them".to_owned()))
        }
        Kind::Evaluation => eval::run(&eval::EvalArgs { config }),
    }
}

/// Returns true in the first process of a run, the only one that prints.
fn is_first() -> bool {
    launched_rank().is_none_or(|rank| rank == 0)
}
