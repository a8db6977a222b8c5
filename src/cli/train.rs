//! `trainer` without a subcommand: reinforcement learning.

use clap::Args;

use super::args::ConfigArgs;
use super::failure::Failure;
use super::print::print;
use super::together::{agreed, load, together};
use crate::trainer::{dry_run, setup};
use burnish_config::PpoConfig;
use burnish_run::Output;

#[derive(Args)]
pub struct TrainArgs {
    /// Build and check everything but the weights, print the plan and the memory it would take, and stop
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn run(args: &TrainArgs, output: Output) -> Result<(), Failure> {
    together(|ranks, interrupt| {
        let loaded = load::<PpoConfig>(ranks, &args.config)?;
        if args.dry_run {
            let described = agreed(ranks, dry_run::dry_run(loaded, ranks))?;
            return if ranks.is_first() { print(&described) } else { Ok(()) };
        }
        // A run that only validates has nothing to save, so signals keep their default effect.
        let stays = loaded.config.trainer.val_only;
        let run = setup::start(loaded, &output, interrupt.clone(), ranks.clone()).map_err(Failure::setup)?;
        if !stays {
            interrupt.watch_signals().map_err(Failure::run)?;
        }
        run.run().map_err(Failure::run)
    })
}
