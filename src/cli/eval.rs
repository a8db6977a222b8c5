//! `trainer eval`: scores of the responses in a file.

use clap::Args;
use serde_json::Value;

use super::args::ConfigArgs;
use super::error::CliError;
use super::print::print_data;
use crate::pipelines::evaluate::evaluate;
use burnish_config::schema::EvalConfig;

#[derive(Args)]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
}

pub(super) fn run(args: &EvalArgs) -> Result<(), CliError> {
    let loaded = args.config.load::<EvalConfig>()?;
    let scores = evaluate(loaded).map_err(CliError::classify)?;
    print_data(&format!("{}\n", Value::from(scores)))
}
