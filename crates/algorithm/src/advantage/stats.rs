//! Means and deviations for several estimators, with verl's small constants.

/// Returns the mean of `values`; 0 for an empty slice.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the unbiased (n − 1) standard deviation around `mean`; 0 for fewer than two values, where it is undefined.
pub(crate) fn std(values: &[f64], mean: f64) -> f64 {
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (squares / values.len().saturating_sub(1).max(1) as f64).sqrt()
}

/// Returns value − mean of each value.
pub(crate) fn centred(values: &[f64]) -> Vec<f64> {
    let mean = mean(values);
    values.iter().map(|v| v - mean).collect()
}

/// Returns (value − mean)/(std + epsilon) of each value.
pub(crate) fn standardised(values: &[f64], epsilon: f64) -> Vec<f64> {
    let scale = std(values, mean(values)) + epsilon;
    centred(values).iter().map(|v| v / scale).collect()
}

/// Returns (value − mean) / sqrt(var + 1e-8) with the statistics of the unmasked tokens (verl `masked_whiten`).
///
/// verl raises on a batch with a single trained token, whose variance is undefined; here its value becomes 0.
pub(crate) fn masked_whiten(values: &[f64], mask: &[f32]) -> Vec<f64> {
    let unmasked: Vec<f64> = values.iter().zip(mask).filter(|&(_, &m)| m != 0.0).map(|(&v, _)| v).collect();
    let mean = mean(&unmasked);
    let scale = (std(&unmasked, mean).powi(2) + 1e-8).sqrt();
    values.iter().map(|v| (v - mean) / scale).collect()
}
