//! `trainer sft` and the other stages around reinforcement learning: one command each, all with the same arguments.

use clap::Args;

use super::args::ConfigArgs;
use super::dry_run_arg::DryRunArg;
use super::error::CliError;
use super::multirun::{self, MultirunArgs};
use super::print::print;
use super::together::{agreed, load, together};
use crate::pipelines::stage::{self, Objective};
use burnish_run::Output;

#[derive(Args, Default)]
pub(crate) struct StageArgs {
    #[command(flatten)]
    pub(super) dry_run: DryRunArg,
    #[command(flatten)]
    pub(super) multirun: MultirunArgs,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
}

pub(super) fn run<O: Objective>(args: &StageArgs, output: Output) -> Result<(), CliError> {
    if args.multirun.is_requested() {
        return multirun::run(&args.multirun, &args.config, args.dry_run, stage::dry_run::<O>);
    }
    together(|ranks, interrupt| {
        let loaded = load::<O::Config>(ranks, &args.config)?;
        if args.dry_run.is_set() {
            let described = agreed(ranks, stage::dry_run::<O>(loaded, ranks, args.dry_run.measures()))?;
            return if ranks.is_first() { print(&described) } else { Ok(()) };
        }
        let settings = args.config.kept.is_some().then(|| loaded.tree.clone());
        let run = stage::start::<O>(loaded, &output, interrupt.clone(), ranks.clone()).map_err(CliError::setup)?;
        settings.iter().filter(|_| ranks.is_first()).for_each(|settings| args.config.keep_recipe(settings));
        interrupt.watch_signals().map_err(CliError::run)?;
        run.run().map_err(CliError::run)
    })
}
