//! `trainer sft`: supervised fine-tuning.

use clap::Args;

use super::args::ConfigArgs;
use super::failure::Failure;
use super::print::print;
use crate::config::SftConfig;
use crate::pipelines::{sft, sft_dry_run};
use crate::run::Output;
use crate::util::interrupt::Interrupt;

#[derive(Args)]
pub struct SftArgs {
    /// Build and check everything but the weights, print the plan and the memory it would take, and stop
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn run(args: &SftArgs, output: Output) -> Result<(), Failure> {
    let loaded = args.config.load::<SftConfig>()?;
    if args.dry_run {
        return print(&sft_dry_run::dry_run(loaded).map_err(Failure::setup)?);
    }
    let interrupt = Interrupt::default();
    let run = sft::start(loaded, &output, interrupt.clone()).map_err(Failure::setup)?;
    interrupt.watch_signals().map_err(Failure::run)?;
    run.run().map_err(Failure::run)
}
