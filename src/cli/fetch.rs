//! `trainer fetch`: models and data sets from Hugging Face's Hub into the cache.

use clap::Args;
use serde_json::json;

use super::error::CliError;
use super::json::{JsonArg, print_rows};
use super::print::print_data;
use burnish_hub::{Hub, HubName, ModelParts, Purpose, RepoKind};

#[derive(Args)]
pub(crate) struct FetchArgs {
    /// Models, as ORG/NAME or ORG/NAME@REVISION; data sets, as hf://datasets/ORG/NAME
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) fn run(args: &FetchArgs) -> Result<(), CliError> {
    let names: Vec<HubName> = args.names.iter().map(|text| name(text)).collect::<Result<_, _>>()?;
    let hub = Hub::from_env().map_err(failed)?.refreshing();
    for (text, name) in args.names.iter().zip(names) {
        let found = match name.kind {
            RepoKind::Model => hub.model(&name, ModelParts::Whole).or_else(|failure| {
                // An adapter is a model on the Hub.
                hub.model(&name, ModelParts::Adapter).map_err(|_| failure)
            }),
            RepoKind::Dataset => hub.data(&name, Purpose::All),
        };
        for path in found.map_err(failed)?.paths {
            match args.json.json {
                true => print_rows([json!({ "name": text, "path": path })])?,
                false => print_data(&format!("{}\n", path.display()))?,
            }
        }
    }
    Ok(())
}

fn name(text: &str) -> Result<HubName, CliError> {
    let (kind, text) = match text.strip_prefix("hf://") {
        Some(rest) => match rest.strip_prefix("datasets/") {
            Some(rest) => (RepoKind::Dataset, rest),
            None => (RepoKind::Model, rest.strip_prefix("models/").unwrap_or(rest)),
        },
        None => (RepoKind::Model, text),
    };
    HubName::parse(text, kind).map_err(|error| CliError::Setup(format!("{text}: {error:#}")))
}

fn failed(error: burnish_hub::HubError) -> CliError {
    CliError::Setup(error.to_string())
}
