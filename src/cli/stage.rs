//! `trainer sft` and the other stages around reinforcement learning: one command each, all of one form.

use clap::Args;

use super::args::ConfigArgs;
use super::failure::Failure;
use super::print::print;
use crate::pipelines::stage::{self, Objective};
use crate::run::Output;
use crate::util::interrupt::Interrupt;

#[derive(Args)]
pub struct StageArgs {
    /// Build and check everything but the weights, print the plan and the memory it would take, and stop
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn run<O: Objective>(args: &StageArgs, output: Output) -> Result<(), Failure> {
    let loaded = args.config.load::<O::Config>()?;
    if args.dry_run {
        return print(&stage::dry_run::<O>(loaded).map_err(Failure::setup)?);
    }
    let interrupt = Interrupt::default();
    let run = stage::start::<O>(loaded, &output, interrupt.clone()).map_err(Failure::setup)?;
    interrupt.watch_signals().map_err(Failure::run)?;
    run.run().map_err(Failure::run)
}
