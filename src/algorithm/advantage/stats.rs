//! Means and deviations that several estimators share, with verl's small constants.

/// The mean of `values`, 0 when there are none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The unbiased (n − 1) standard deviation around `mean`, 0 where it is undefined: below two values.
pub fn std(values: &[f64], mean: f64) -> f64 {
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (squares / values.len().saturating_sub(1).max(1) as f64).sqrt()
}

/// value − mean.
pub fn centred(values: &[f64]) -> Vec<f64> {
    let mean = mean(values);
    values.iter().map(|v| v - mean).collect()
}

/// (value − mean)/(std + epsilon).
pub fn standardised(values: &[f64], epsilon: f64) -> Vec<f64> {
    let scale = std(values, mean(values)) + epsilon;
    centred(values).iter().map(|v| v / scale).collect()
}

/// (value − mean) / sqrt(var + 1e-8) with the statistics of the unmasked tokens (verl `masked_whiten`).
///
/// verl raises on a batch with a single trained token, whose variance is undefined; here its value becomes 0.
pub fn masked_whiten(values: &[f64], mask: &[f32]) -> Vec<f64> {
    let kept: Vec<f64> = values.iter().zip(mask).filter(|&(_, &m)| m != 0.0).map(|(&v, _)| v).collect();
    let mean = mean(&kept);
    let scale = (std(&kept, mean).powi(2) + 1e-8).sqrt();
    values.iter().map(|v| (v - mean) / scale).collect()
}
