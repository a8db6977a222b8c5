//! The critic's loss (verl's `compute_value_loss`): L = ½·Σ w·max((v − R)², (clip(v, v_old − ε, v_old + ε) − R)²), with the weights
//! w of the loss aggregation. Clipping as in the first implementations of PPO (Schulman et al. 2017, arXiv:1707.06347).

use super::policy_loss::Metric;

/// The columns of one micro-batch, one value per response token.
#[derive(Clone, Copy, Debug)]
pub struct ValueColumns<'a> {
    pub mask: &'a [f32],
    /// The values of the current critic.
    pub values: &'a [f32],
    /// The critic's values before the first update of the step.
    pub old_values: &'a [f32],
    pub returns: &'a [f32],
    /// Weights of the tokens in the loss, from the counts of the whole mini-batch.
    pub weights: &'a [f32],
}

/// The contribution of one micro-batch to a mini-batch's loss.
#[derive(Clone, Debug)]
pub struct ValueLoss {
    pub loss: f64,
    /// d loss / d value.
    pub d_values: Vec<f32>,
    /// Means over the trained tokens: the share whose value is clipped, and the value.
    pub metrics: [Metric; 2],
}

/// Returns the value loss with clip range ε = `critic.cliprange_value`.
pub fn value_loss(x: &ValueColumns, cliprange: f64) -> ValueLoss {
    let mut d_values = vec![0.0; x.mask.len()];
    let (mut loss, mut clipped, mut sum, mut count) = (0.0, 0.0, 0.0, 0.0);
    for t in (0..x.mask.len()).filter(|&t| x.mask[t] != 0.0) {
        let [value, old, target, weight] = [x.values[t], x.old_values[t], x.returns[t], x.weights[t]].map(f64::from);
        let error = value - target;
        let clipped_error = value.clamp(old - cliprange, old + cliprange) - target;
        // Where the clipped error is larger, the value is outside its range and has no gradient.
        let is_clipped = clipped_error * clipped_error > error * error;
        let worst = if is_clipped { clipped_error } else { error };
        loss += 0.5 * weight * worst * worst;
        d_values[t] = if is_clipped { 0.0 } else { (weight * error) as f32 };
        clipped += f64::from(u8::from(is_clipped));
        sum += value;
        count += 1.0;
    }
    let metric = |name: &'static str, sum| Metric { name: name.into(), sum, count };
    ValueLoss { loss, d_values, metrics: [metric("critic/vf_clipfrac", clipped), metric("critic/vpred_mean", sum)] }
}
