//! Evidence about a configuration that has not run.

use super::super::args::ConfigArgs;
use super::super::error::CliError;
use super::super::kinds::choices;
use super::super::print::warn_of_keys;
use burnish_config::Kind;
use burnish_config::kinds::infer;
use burnish_doctor::{CheckPhase, Evidence, RunLibrary};
use serde_json::Value;

/// Loads the configuration with all checks of a run.
///
/// # Errors
/// The problems of the configuration.
pub(super) fn evidence(args: &ConfigArgs) -> Result<Evidence, CliError> {
    let request = args.request();
    let known = infer(&request)?;
    let loaded = known.load(&request, &choices(known.kind))?;
    warn_of_keys(&loaded.renamed, &loaded.ignored);
    let library = if known.kind == Kind::Rl { RunLibrary::Verl } else { RunLibrary::Stage };
    let mut evidence = Evidence::new(CheckPhase::Before, library);
    flatten("", &loaded.tree.to_json(), &mut |key, value| _ = evidence.settings.insert(key, value));
    let name = request.config.or(request.config_name).unwrap_or_default();
    evidence.sources.push(format!("{name}: {} settings", evidence.settings.len()));
    Ok(evidence)
}

/// Calls `add` with the dotted key and the value of each setting.
fn flatten(prefix: &str, value: &Value, add: &mut impl FnMut(String, Value)) {
    let Value::Object(below) = value else { return add(prefix.to_owned(), value.clone()) };
    for (name, value) in below {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        flatten(&key, value, add);
    }
}
