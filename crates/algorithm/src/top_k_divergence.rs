//! The loss of a token when only the teacher's top-k tokens are known.

/// Turns the divergences Σ_k q_k·(log q_k − log p_k) of tokens into their losses, and the slopes of these, as verl does.
///
/// The mass outside the top-k tokens is left out. The sum is therefore negative where the policy gives the top-k tokens more mass than the
/// teacher does, and training would lower it further by taking mass from all other tokens. Such a loss is 0, without a gradient.
pub fn bounded(divergences: &[f32]) -> (Vec<f32>, Vec<f32>) {
    // Not `max`, which would hide a NaN.
    divergences.iter().map(|&x| if x < 0.0 { (0.0, 0.0) } else { (x, 1.0) }).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_below_zero_is_no_loss_and_a_nan_stays() {
        let (values, slopes) = bounded(&[-0.5, 0.0, 0.25, f32::NAN]);
        assert_eq!((&values[..3], &slopes[..]), (&[0.0, 0.0, 0.25][..], &[0.0, 1.0, 1.0, 1.0][..]));
        assert!(values[3].is_nan());
    }
}
