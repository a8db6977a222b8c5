//! The preference loss of the settings of `algorithm`.

use anyhow::{Context, Result, bail, ensure};

use burnish_algorithm::options::{OptionValue, Options};
use burnish_algorithm::preference::{self, PairObjective, PreferenceLoss, RowObjective};
use burnish_config::DpoConfig;

/// The loss of a run.
pub(super) enum Loss {
    Pairs(PairObjective),
    Rows(RowObjective),
}

impl Loss {
    /// Builds the loss.
    ///
    /// # Errors
    /// If the losses cannot be combined, or a loss does not allow a setting.
    pub(super) fn from_config(config: &DpoConfig) -> Result<Self> {
        let algorithm = &config.algorithm;
        let names = &algorithm.loss_type.0;
        ensure!(!names.is_empty(), "algorithm.loss_type: name at least one loss");
        let find = |name: &String| {
            preference::find(name).with_context(|| format!("algorithm.loss_type: the loss `{name}` does not exist"))
        };
        let losses = names.iter().map(find).collect::<Result<Vec<_>>>()?;
        for loss in &losses {
            check_smoothing(loss, algorithm.label_smoothing)?;
        }
        if let Some(rows) = losses.iter().find(|loss| loss.is_of_rows()) {
            ensure!(
                losses.len() == 1 && algorithm.loss_weights.is_none(),
                "algorithm.loss_type: `{}` is a loss of labelled responses and cannot be combined with others or with algorithm.loss_weights",
                rows.name
            );
            let objective = RowObjective { loss: rows, options: options(config, rows)? };
            ensure!(
                !objective.reads_mismatched() || config.data.train_batch_size > 1,
                "data.train_batch_size=1: `{}` compares each response with another row of the batch; 8 or more is advised",
                rows.name
            );
            return Ok(Self::Rows(objective));
        }
        let weights = algorithm.loss_weights.clone().unwrap_or_else(|| vec![1.0; losses.len()]);
        let weighted = losses.into_iter().zip(weights).map(|(loss, weight)| Ok((loss, weight, options(config, loss)?)));
        Ok(Self::Pairs(PairObjective {
            losses: weighted.collect::<Result<_>>()?,
            use_weighting: algorithm.use_weighting,
            nll_loss_coef: algorithm.nll_loss_coef.unwrap_or(0.0),
        }))
    }

    /// Returns true if a loss compares with a reference.
    pub(super) fn reads_reference(&self) -> bool {
        match self {
            Self::Pairs(objective) => objective.reads_reference(),
            Self::Rows(objective) => objective.loss.reference,
        }
    }

    /// Returns true if a loss compares responses to other prompts with a reference.
    pub(super) fn reads_mismatched(&self) -> bool {
        matches!(self, Self::Rows(objective) if objective.reads_mismatched())
    }

    /// Returns true if a loss compares responses; the likelihood of chosen responses does not, and then there are no rewards.
    pub(super) fn compares(&self) -> bool {
        match self {
            Self::Pairs(objective) => objective.compares(),
            Self::Rows(_) => true,
        }
    }

    /// Returns the entries of the registry.
    pub(super) fn entries(&self) -> Vec<&'static PreferenceLoss> {
        match self {
            Self::Pairs(objective) => objective.losses.iter().map(|(loss, ..)| *loss).collect(),
            Self::Rows(objective) => vec![objective.loss],
        }
    }
}

fn check_smoothing(loss: &PreferenceLoss, value: f64) -> Result<()> {
    let Some(bounds) = loss.smoothing else { return Ok(()) };
    if bounds.positive && value == 0.0 {
        bail!("algorithm.label_smoothing=0: `{}` needs a number above 0; 0.001 is advised", loss.name);
    }
    let below = bounds.below;
    ensure!(value < below, "algorithm.label_smoothing={value}: `{}` needs a number below {below}", loss.name);
    Ok(())
}

/// Returns the settings that a loss reads.
fn options(config: &DpoConfig, loss: &PreferenceLoss) -> Result<Options> {
    let section = serde_json::to_value(&config.algorithm)?;
    Options::read(loss.reads, |key| {
        let name = key.strip_prefix("algorithm.").context("a key of `algorithm`")?;
        let value = section.get(name).with_context(|| format!("the setting {key} does not exist"))?;
        Ok(match value {
            serde_json::Value::String(word) => OptionValue::Text(word.clone()),
            value => OptionValue::Number(value.as_f64().with_context(|| format!("{key} is not a number"))?),
        })
    })
}
