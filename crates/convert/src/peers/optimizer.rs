//! Optimizers by transformers' names (`OptimizerNames`).

use super::Draft;
use super::value::{float, text};
use burnish_hydra::{Value, inline};

/// Names of optimizers in transformers, by our name.
const NAMES: &[(&str, &[&str])] = &[
    (
        "AdamW",
        &[
            "adamw_torch",
            "adamw_torch_fused",
            "adamw_torch_xla",
            "adamw_torch_npu_fused",
            "adamw_hf",
            "adamw_apex_fused",
            "adamw_bnb_32bit",
            "paged_adamw_32bit",
        ],
    ),
    ("AdamW8bit", &["adamw_bnb_8bit", "adamw_8bit", "paged_adamw_8bit"]),
    ("SGD", &["sgd"]),
    ("Adafactor", &["adafactor"]),
];

/// Options of `optim_args` that transformers passes to SGD. Parameter groups set the weight decay.
const SGD_ARGS: &[&str] = &["momentum", "dampening", "nesterov"];

/// Returns our name of a transformers optimizer, and true if it uses betas and epsilon.
pub fn optimizer(name: &str) -> Option<(&'static str, bool)> {
    let (ours, _) = NAMES.iter().find(|(_, theirs)| theirs.contains(&name))?;
    Some((ours, ours.starts_with("AdamW")))
}

/// Lists the names that [`optimizer`] accepts, for messages.
pub(crate) fn optimizer_names() -> String {
    NAMES.iter().flat_map(|(_, theirs)| *theirs).copied().collect::<Vec<_>>().join(", ")
}

/// Sets the optimizer of a section, with its `optim_args`.
///
/// # Errors
/// If `optim_args` has an option that the optimizer lacks.
pub(crate) fn set_optimizer(draft: &mut Draft, section: &str, ours: &str, from: &str) -> Result<(), String> {
    draft.set(&format!("{section}.optimizer"), text(ours), from);
    let args = draft.values.text("optim_args").unwrap_or_default().replace(' ', "");
    // transformers passes them only to SGD.
    if ours != "SGD" {
        return Ok(());
    }
    for (name, value) in args.split(',').filter_map(|pair| pair.split_once('=')) {
        let value = match (name, value.parse::<f64>()) {
            ("nesterov", _) => Value::Bool(["true", "1", "yes"].contains(&value.to_lowercase().as_str())),
            (_, Ok(number)) if SGD_ARGS.contains(&name) => float(number),
            _ => {
                return Err(format!(
                    "`{name}={}` is not an option of SGD, which has {}",
                    inline(&text(value)),
                    SGD_ARGS.join(", ")
                ));
            }
        };
        draft.set(&format!("{section}.override_optimizer_config.{name}"), value, "optim_args");
    }
    Ok(())
}
