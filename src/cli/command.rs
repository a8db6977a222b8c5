//! The subcommands, and the file that runs each.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use super::error::CliError;
use super::together::{refuse_several, reported_once};
use super::{
    chat, completions, config, data, devices, doctor, eval, examples, exit_codes, export, fetch, from_openrlhf, from_peer,
    from_trl, from_verl, generate, man, mistyped, recipes, replay, report, reward, run_source, runs, self_check, serve, serve_rm,
    stage, train, welcome,
};
use crate::pipelines::distill::Distill;
use crate::pipelines::dpo::Dpo;
use crate::pipelines::rm::Rm;
use crate::pipelines::sft::Sft;
use burnish_run::Output;

/// Reinforcement-learning post-training of language models.
///
///   trainer --config ppo_trainer.yaml algorithm.adv_estimator=rloo
#[derive(Parser)]
#[command(name = "trainer", version, args_conflicts_with_subcommands = true, verbatim_doc_comment, after_help = exit_codes::help())]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    train: train::TrainArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Train what a recipe, or a script or command of verl, TRL or OpenRLHF describes
    Run(run_source::RunArgs),
    /// Write a recipe for your model and rows, or a copy of a shipped recipe
    Init(recipes::InitArgs),
    /// List the recipes that come with the program
    Recipes(recipes::RecipesArgs),
    /// Supervised fine-tuning (sft_trainer.yaml)
    Sft(stage::StageArgs),
    /// Train a reward model of whole responses or of steps (rm_trainer.yaml)
    Rm(stage::StageArgs),
    /// Learn from preferences: DPO, KTO, ORPO, SimPO and others (dpo_trainer.yaml)
    Dpo(stage::StageArgs),
    /// Distillation of a teacher, on given texts (distill_trainer.yaml)
    Distill(stage::StageArgs),
    /// Write responses to the prompts of a file (generation.yaml)
    Generate(generate::GenerateArgs),
    /// Score the responses in a file (evaluation.yaml)
    Eval(eval::EvalArgs),
    /// Try reward functions
    #[command(subcommand)]
    Reward(reward::RewardCommand),
    /// Talk to a model in the terminal, or answer the text of standard input
    Chat(chat::ChatArgs),
    /// Serve a model by OpenAI's protocol, for agents of any framework
    Serve(serve::ServeArgs),
    /// Serve the scores of a reward model, as OpenRLHF's serve_rm does
    ServeRm(serve_rm::ServeRmArgs),
    /// Put the curves, samples and settings of runs into one HTML file, or serve them during the runs
    Report(report::ReportArgs),
    /// List runs and their state
    #[command(subcommand)]
    Runs(runs::RunsCommand),
    /// Name why a run does not learn, or will not: of burnish, TRL or verl
    Doctor(doctor::DoctorArgs),
    /// Make a step of a run again from its checkpoint, prove it equal to the record, and show it whole
    Replay(replay::ReplayArgs),
    /// Find the first step of a run whose metric is bad, and replay it and the step before
    Bisect(replay::BisectArgs),
    /// Write a data set in verl's parquet schema
    Data(data::DataArgs),
    /// Copy the model of a checkpoint, as a folder that transformers loads
    Export(export::ExportArgs),
    /// Download models and data sets from Hugging Face's Hub into the cache
    Fetch(fetch::FetchArgs),
    /// Turn a command line or script of verl into a recipe
    FromVerl(from_verl::FromVerlArgs),
    /// Turn a command line, script or YAML file of TRL into a recipe
    FromTrl(from_peer::FromPeerArgs),
    /// Turn a command line or script of OpenRLHF into a recipe
    FromOpenrlhf(from_peer::FromPeerArgs),
    /// Show, explain or compare configurations without running them
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// List the devices, by the names that trainer.device takes
    Devices(devices::DevicesArgs),
    /// Check numbers, threads, memory, disk, Python and devices of this machine in seconds, for a report of a bug
    SelfCheck(self_check::SelfCheckArgs),
    /// Print a script that completes commands, flags and overrides in a shell
    Completions(completions::CompletionsArgs),
    /// Print a manual page, or write those of all commands
    Man(man::ManArgs),
    /// Complete a word for such a script
    #[command(hide = true)]
    Complete(completions::CompleteArgs),
}

impl Command {
    /// Returns true if several processes can share the work.
    fn trains(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Sft(_) | Self::Rm(_) | Self::Dpo(_) | Self::Distill(_))
    }
}

/// Returns the whole command line, with examples in each help text.
pub(super) fn command() -> clap::Command {
    examples::add(Cli::command(), "trainer")
}

/// Parses the command line of the process. Ends the process for a wrong one, and for `--help` and `--version`.
pub fn parse() -> Cli {
    Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit())
}

/// Refuses an empty command line, Hydra's flags, flags of other trainers, and a word that is neither a command, a flag nor an
/// override. `words`: the command line after the name of the program.
///
/// # Errors
/// If the word exists. The message says what to type.
pub fn check_command(words: &[OsString]) -> Result<(), CliError> {
    if words.is_empty() {
        return Err(reported_once(CliError::Usage(welcome::screen())));
    }
    mistyped::refusal(&Cli::command(), words).map_or(Ok(()), |message| Err(reported_once(CliError::Setup(message))))
}

/// Runs the command.
///
/// # Errors
/// If the command fails; the [`CliError`] tells wrong input from a failed run.
pub fn run(cli: Cli, output: Output) -> Result<(), CliError> {
    if cli.command.as_ref().is_some_and(|command| !command.trains()) {
        refuse_several()?;
    }
    match cli.command {
        None => train::run(&cli.train, output),
        Some(Command::Run(args)) => run_source::run(&args, output),
        Some(Command::Init(args)) => recipes::init(&args),
        Some(Command::Recipes(args)) => recipes::run(&args),
        Some(Command::Sft(args)) => stage::run::<Sft>(&args, output),
        Some(Command::Rm(args)) => stage::run::<Rm>(&args, output),
        Some(Command::Dpo(args)) => stage::run::<Dpo>(&args, output),
        Some(Command::Distill(args)) => stage::run::<Distill>(&args, output),
        Some(Command::Generate(args)) => generate::run(&args, output.progress),
        Some(Command::Eval(args)) => eval::run(&args),
        Some(Command::Reward(command)) => reward::run(command),
        Some(Command::Chat(args)) => chat::run(&args),
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::ServeRm(args)) => serve_rm::run(&args),
        Some(Command::Report(args)) => report::run(&args),
        Some(Command::Runs(command)) => runs::run(command),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Replay(args)) => replay::run(&args, &output),
        Some(Command::Bisect(args)) => replay::bisect(&args, &output),
        Some(Command::Data(args)) => data::run(args),
        Some(Command::Export(args)) => export::run(&args),
        Some(Command::Fetch(args)) => fetch::run(&args),
        Some(Command::FromVerl(args)) => from_verl::run(&args),
        Some(Command::FromTrl(args)) => from_trl::run(&args),
        Some(Command::FromOpenrlhf(args)) => from_openrlhf::run(&args),
        Some(Command::Config(command)) => config::run(command),
        Some(Command::Devices(args)) => devices::run(&args),
        Some(Command::SelfCheck(args)) => self_check::run(&args),
        Some(Command::Completions(args)) => completions::script(&args),
        Some(Command::Man(args)) => man::run(&args, command()),
        Some(Command::Complete(args)) => completions::run(&args, &command()),
    }
}
