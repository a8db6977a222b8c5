//! Creates a correction from the keys of `algorithm.rollout_correction`.

use anyhow::{Context, Result, bail, ensure};

use super::correction::RolloutCorrection;
use super::rejection::{CRITERIA, Criterion, PolicyDivergence, Rejection};
use super::weights::{Importance, Level};

/// The keys of `algorithm.rollout_correction`, as verl and its older releases name them. Thresholds are text: a number, or
/// `low_high`.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrectionSettings {
    /// `token` or `sequence`.
    pub rollout_is: Option<String>,
    /// The upper bound of the weights; with `low_high`, weights outside the bounds become 0.
    pub rollout_is_threshold: Option<String>,
    /// The lower bound, to which smaller weights are raised.
    pub rollout_is_threshold_lower: Option<f64>,
    pub rollout_is_batch_normalize: bool,
    /// Names of [`CRITERIA`], joined by commas.
    pub rollout_rs: Option<String>,
    /// One bound for all criteria, or one for each, joined by commas. For k1 criteria it is `low_high`, or x for 1/x to x; for
    /// the others it is an upper bound.
    pub rollout_rs_threshold: Option<String>,
    /// The lower bound of k1 criteria whose threshold is a single number.
    pub rollout_rs_threshold_lower: Option<f64>,
    /// A sequence is rejected if the ratio of one of its tokens is below this.
    pub rollout_token_veto_threshold: Option<f64>,
    /// Rejected tokens stay in the mask with weight 0, so that means over tokens count them.
    pub count_rejected: bool,
}

impl Default for CorrectionSettings {
    /// Returns verl's defaults, with which nothing is corrected.
    fn default() -> Self {
        Self {
            rollout_is: None,
            rollout_is_threshold: Some("2.0".to_owned()),
            rollout_is_threshold_lower: None,
            rollout_is_batch_normalize: false,
            rollout_rs: None,
            rollout_rs_threshold: None,
            rollout_rs_threshold_lower: None,
            rollout_token_veto_threshold: None,
            count_rejected: false,
        }
    }
}

impl RolloutCorrection {
    /// Fails, naming the key, on an unknown name, a missing threshold, and one that is not a number, not above 0, or out of
    /// order. Thresholds of unused criteria and weights are ignored.
    ///
    /// Deviation: verl drops weights silently when `rollout_is_threshold` is null, and refuses a lower bound of 0.
    pub fn new(settings: &CorrectionSettings) -> Result<Self> {
        let importance = settings.rollout_is.as_deref().map(|level| importance(level, settings)).transpose()?;
        let rejections = settings.rollout_rs.as_deref().map_or_else(|| Ok(Vec::new()), |names| rejections(names, settings))?;
        if let Some(veto) = settings.rollout_token_veto_threshold {
            positive(veto, &key("rollout_token_veto_threshold"))?;
        }
        Ok(Self { importance, rejections, veto: settings.rollout_token_veto_threshold, count_rejected: settings.count_rejected })
    }
}

fn importance(level: &str, settings: &CorrectionSettings) -> Result<Importance> {
    let level = match level {
        "token" => Level::Token,
        "sequence" => Level::Sequence,
        _ => bail!("{} is `{level}`; it can be token, sequence or null", key("rollout_is")),
    };
    let key_threshold = key("rollout_is_threshold");
    let Some(text) = settings.rollout_is_threshold.as_deref() else {
        bail!("{key_threshold} is missing, which {} needs; write what weights are cut at, such as 2.0", key("rollout_is"));
    };
    let (low, upper) = bounds(text, &key_threshold)?;
    positive(upper, &key_threshold)?;
    let lower_key = key("rollout_is_threshold_lower");
    let lower = match (low, settings.rollout_is_threshold_lower) {
        (Some(_), Some(_)) => bail!(
            "{key_threshold} is `{text}`, which sets weights outside to 0, and {lower_key} raises small ones; leave one of the two \
             lower bounds out"
        ),
        (low, None) => low,
        (None, lower) => lower,
    };
    if let Some(lower) = lower {
        let from = if low.is_some() { &key_threshold } else { &lower_key };
        ensure!(lower >= 0.0, "{from} has the lower bound {lower}; it must be at least 0");
        ensure!(lower <= upper, "{from} has the lower bound {lower}, above the upper bound {upper}");
    }
    let batch_normalize = settings.rollout_is_batch_normalize;
    Ok(Importance { level, upper, lower, zero_outside: low.is_some(), batch_normalize })
}

fn rejections(names: &str, settings: &CorrectionSettings) -> Result<Vec<Rejection>> {
    let mut found: Vec<(&str, &'static Criterion)> = Vec::new();
    for name in parts(names) {
        let Some(criterion) = CRITERIA.iter().find(|c| c.name == name || c.older_name == Some(name)) else {
            let known = CRITERIA.iter().flat_map(|c| [Some(c.name), c.older_name]).flatten().collect::<Vec<_>>();
            bail!("{} has the unknown criterion `{name}`; it can have {}", key("rollout_rs"), known.join(", "));
        };
        // As in verl, a criterion named twice counts once.
        if found.iter().all(|(_, known)| known.name != criterion.name) {
            found.push((name, criterion));
        }
    }
    let key_names = key("rollout_rs");
    ensure!(!found.is_empty(), "{key_names} is empty; write one or more criteria, such as token_k1, or null");

    let key_threshold = key("rollout_rs_threshold");
    let thresholds: Vec<&str> = settings.rollout_rs_threshold.as_deref().map(|text| parts(text).collect()).unwrap_or_default();
    ensure!(
        thresholds.len() == 1 || thresholds.len() == found.len(),
        "{key_threshold} has {} bounds and {key_names} {} criteria; write one bound for all or one for each, joined by commas: \
         low_high (or x for 1/x to x) for k1, an upper bound for k2 and k3",
        thresholds.len(),
        found.len()
    );
    let each = found.into_iter().zip(thresholds.into_iter().cycle());
    each.map(|((name, criterion), threshold)| rejection(name, criterion, threshold, settings)).collect()
}

fn rejection(name: &str, criterion: &'static Criterion, threshold: &str, settings: &CorrectionSettings) -> Result<Rejection> {
    let from = format!("{}, for `{name}`,", key("rollout_rs_threshold"));
    let (low, high) = bounds(threshold, &from)?;
    positive(high, &from)?;
    if criterion.divergence != PolicyDivergence::K1 {
        ensure!(low.is_none(), "{from} is `{threshold}`; only k1 is of either sign; the others take one number, the upper bound");
        return Ok(Rejection { criterion, lower: f64::NEG_INFINITY, upper: high });
    }
    let low = low.or(settings.rollout_rs_threshold_lower).unwrap_or(1.0 / high);
    let of_inverse = criterion.name == name;
    // A ratio r has no lower bound if that is 0; for 1/r this would be no upper bound of r.
    if of_inverse || low != 0.0 {
        positive(low, &format!("the lower bound of {from}"))?;
    }
    ensure!(
        low <= high,
        "{from} accepts ratios from {low} to {high}, that is, none; write low_high, or a number x above 1 for 1/x to x"
    );
    let (lower, upper) = if of_inverse { (low.ln(), high.ln()) } else { (-high.ln(), -low.ln()) };
    Ok(Rejection { criterion, lower, upper })
}

fn key(name: &str) -> String {
    format!("algorithm.rollout_correction.{name}")
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// Reads `high` or `low_high`.
fn bounds(text: &str, from: &str) -> Result<(Option<f64>, f64)> {
    let number = |part: &str| -> Result<f64> {
        let number = part.trim().parse::<f64>().ok().filter(|n| !n.is_nan());
        number.with_context(|| format!("{from} is `{text}`; write a number, or low_high as in 0.5_2.0"))
    };
    match text.split_once('_') {
        Some((low, high)) => Ok((Some(number(low)?), number(high)?)),
        None => Ok((None, number(text)?)),
    }
}

fn positive(number: f64, from: &str) -> Result<()> {
    ensure!(number > 0.0, "{from} is {number}; it must be above 0");
    Ok(())
}
