//! `trainer generate`: responses to the prompts of a file.

use clap::Args;

use super::args::ConfigArgs;
use super::error::CliError;
use super::print::print;
use crate::pipelines::generate::Generation;
use crate::pipelines::generate_dry_run;
use burnish_config::schema::GenerationConfig;
use burnish_tracking::Progress;

#[derive(Args)]
pub(crate) struct GenerateArgs {
    /// Check everything except the weights, print the plan and the estimated memory, and stop
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
}

pub(super) fn run(args: &GenerateArgs, progress: Progress) -> Result<(), CliError> {
    let loaded = args.config.load::<GenerationConfig>()?;
    if args.dry_run {
        return print(&generate_dry_run::dry_run(loaded).map_err(CliError::setup)?);
    }
    let generation = Generation::new(loaded, progress).map_err(CliError::setup)?;
    generation.run().map_err(CliError::run)
}
