//! Evidence about a configuration that has not run.

use super::super::args::ConfigArgs;
use super::super::error::CliError;
use crate::job::plan_facts::{Heard, listen};
use crate::pipelines::distill::Distill;
use crate::pipelines::dpo::Dpo;
use crate::pipelines::rm::Rm;
use crate::pipelines::sft::Sft;
use crate::pipelines::stage::{self, Objective};
use crate::trainer::setup;
use burnish_config::kinds::infer;
use burnish_config::{Kind, PpoConfig, Tree};
use burnish_doctor::{CheckPhase, Evidence, RunLibrary};
use serde_json::Value;

/// Reads what a run of the configuration would read before its models, and samples responses (`sample`: to that many prompts).
///
/// # Errors
/// Everything that the run would refuse.
pub(super) fn evidence(args: &ConfigArgs, sample: Option<usize>) -> Result<Evidence, CliError> {
    let request = args.request();
    let kind = infer(&request)?.kind;
    let (evidence, heard) = listen(|| match kind {
        Kind::Rl => of_training(args, sample),
        Kind::Sft => of_stage::<Sft>(args),
        Kind::Rm => of_stage::<Rm>(args),
        Kind::Dpo => of_stage::<Dpo>(args),
        Kind::Distill => of_stage::<Distill>(args),
        Kind::Generation | Kind::Evaluation => {
            Err(CliError::Setup("the doctor checks training, and this configuration is not one of training".to_owned()))
        }
    });
    let Heard { warnings, rows } = heard;
    if evidence.is_err() {
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    }
    let mut evidence = evidence?;
    (evidence.facts.plan.warnings, evidence.facts.plan.changed_rows) = (warnings, rows);
    let name = request.config.or(request.config_name).unwrap_or_default();
    evidence.sources.push(format!("{name}: {} settings, {} steps", evidence.settings.len(), evidence.facts.plan.steps));
    Ok(evidence)
}

fn of_training(args: &ConfigArgs, sample: Option<usize>) -> Result<Evidence, CliError> {
    let loaded = args.load::<PpoConfig>()?;
    let mut evidence = with_settings(RunLibrary::Verl, &loaded.tree);
    (evidence.facts, evidence.functions) = setup::facts(loaded, sample).map_err(CliError::setup)?;
    Ok(evidence)
}

fn of_stage<O: Objective>(args: &ConfigArgs) -> Result<Evidence, CliError> {
    let loaded = args.load::<O::Config>()?;
    let mut evidence = with_settings(RunLibrary::Stage, &loaded.tree);
    evidence.facts = stage::facts::<O>(loaded).map_err(CliError::setup)?;
    Ok(evidence)
}

fn with_settings(library: RunLibrary, tree: &Tree) -> Evidence {
    let mut evidence = Evidence::new(CheckPhase::Before, library);
    flatten("", &tree.to_json(), &mut |key, value| _ = evidence.settings.insert(key, value));
    evidence
}

/// Calls `add` with the dotted key and the value of each setting.
fn flatten(prefix: &str, value: &Value, add: &mut impl FnMut(String, Value)) {
    let Value::Object(below) = value else { return add(prefix.to_owned(), value.clone()) };
    for (name, value) in below {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        flatten(&key, value, add);
    }
}
