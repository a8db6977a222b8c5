//! Means and deviations that several estimators share, with verl's small constants.

/// The mean of `values`, 0 when there are none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The unbiased (n − 1) standard deviation around `mean`, of at least two values.
pub fn std(values: &[f64], mean: f64) -> f64 {
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// (value − mean) / sqrt(var + 1e-8) with the statistics of the unmasked tokens (verl `masked_whiten`).
///
/// verl raises on a batch with a single trained token, whose variance is undefined; here it only loses its mean.
pub fn masked_whiten(values: &[f64], mask: &[f32]) -> Vec<f64> {
    let kept: Vec<f64> = values.iter().zip(mask).filter(|&(_, &m)| m != 0.0).map(|(&v, _)| v).collect();
    let mean = mean(&kept);
    let variance = if kept.len() > 1 { std(&kept, mean).powi(2) } else { 1.0 };
    values.iter().map(|v| (v - mean) / (variance + 1e-8).sqrt()).collect()
}
