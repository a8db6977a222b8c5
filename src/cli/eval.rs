//! `trainer eval`: scores of the responses in a file.

use clap::Args;
use serde_json::Value;

use super::{ConfigArgs, Failure, print};
use crate::config::schema::EvalConfig;
use crate::pipelines::evaluate::evaluate;

#[derive(Args)]
pub struct EvalArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn run(args: &EvalArgs) -> Result<(), Failure> {
    let scores = evaluate(&args.config.load::<EvalConfig>()?.config).map_err(Failure::of)?;
    print(&format!("{}\n", Value::from(scores)))
}
