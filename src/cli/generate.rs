//! `trainer generate`: responses to the prompts of a file.

use clap::Args;

use super::args::ConfigArgs;
use super::failure::Failure;
use crate::config::schema::GenerationConfig;
use crate::pipelines::generate::Generation;
use crate::tracking::Progress;

#[derive(Args)]
pub struct GenerateArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn run(args: &GenerateArgs, progress: Progress) -> Result<(), Failure> {
    let generation = Generation::new(args.config.load::<GenerationConfig>()?, progress).map_err(Failure::setup)?;
    generation.run().map_err(Failure::run)
}
