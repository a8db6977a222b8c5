//! The lines of `--dry-run` about times, or the reason why nothing was measured.

use anyhow::Result;

use super::super::hub_names::Weights;
use super::report::{RunLength, Times};
use burnish_config::schema::Schema;
use burnish_distributed::Ranks;

/// Finds the weights for a measurement. Without one, or without weights on this machine, leaves them out. Returns the reason if the
/// steps cannot be measured on this machine.
///
/// # Errors
/// If weights are damaged.
pub(crate) fn prepare<C: Schema>(weights: Weights, config: &mut C, measures: bool) -> Result<Option<String>> {
    if measures && !weights.are_missing() {
        weights.fetch(config)?;
        return Ok(None);
    }
    weights.leave();
    let missing = "weights are missing on this machine (`trainer fetch` gets those of the Hub), or a run merges an adapter first";
    Ok(measures.then(|| missing.to_owned()))
}

/// Returns the lines about times. `lack`: the reason why this machine cannot measure them. `price`: of an hour. Collective.
///
/// # Errors
/// If the models cannot be loaded.
pub(crate) fn lines(
    ranks: &Ranks,
    lack: Option<String>,
    length: RunLength,
    price: Option<f64>,
    measured: impl FnOnce() -> Result<Result<Times>>,
) -> Result<String> {
    let lack = lack.or_else(|| (length.steps == 0).then(|| "the run makes no further step".to_owned()));
    // A machine without the weights or the memory keeps all others from steps in common.
    let why = match ranks.gather(lack).into_iter().flatten().next() {
        Some(lack) => lack,
        None => match measured()? {
            Ok(times) => return Ok(times.describe(length, price)),
            Err(error) => format!("{error:#}"),
        },
    };
    let cost = price.map_or("", |_| ", so the cost is unknown");
    Ok(format!("time        not measured: {why}{cost}\n"))
}
