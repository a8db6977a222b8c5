//! `trainer` without a subcommand: reinforcement learning.

use clap::Args;

use super::args::ConfigArgs;
use super::dry_run_arg::DryRunArg;
use super::error::CliError;
use super::multirun::{self, MultirunArgs};
use super::print::print;
use super::together::{agreed, load, together};
use crate::trainer::setup;
use burnish_config::PpoConfig;
use burnish_run::Output;

#[derive(Args, Default)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(super) dry_run: DryRunArg,
    #[command(flatten)]
    pub(super) multirun: MultirunArgs,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
}

pub(super) fn run(args: &TrainArgs, output: Output) -> Result<(), CliError> {
    if args.multirun.is_requested() {
        return multirun::run(&args.multirun, &args.config, args.dry_run, setup::dry_run);
    }
    together(|ranks, interrupt| {
        let loaded = load::<PpoConfig>(ranks, &args.config)?;
        if args.dry_run.is_set() {
            let described = agreed(ranks, setup::dry_run(loaded, ranks, args.dry_run.measures()))?;
            return if ranks.is_first() { print(&described) } else { Ok(()) };
        }
        // A run that only validates saves nothing, so signals keep their default effect.
        let stays = loaded.config.trainer.val_only;
        let settings = args.config.kept.is_some().then(|| loaded.tree.clone());
        let run = setup::start(loaded, &output, interrupt.clone(), ranks.clone()).map_err(CliError::setup)?;
        settings.iter().filter(|_| ranks.is_first()).for_each(|settings| args.config.keep_recipe(settings));
        if !stays {
            interrupt.watch_signals().map_err(CliError::run)?;
        }
        run.run().map_err(CliError::run)
    })
}
