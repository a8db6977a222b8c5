//! Differences of log-probabilities that are only rounding errors. Two passes of one model over differently cut batches give a token
//! values that differ in their last bits. A sign, a slope of ±1, or AdamW, which divides by the size of the gradient, would amplify them.

use burn::tensor::Tensor;

/// The error of one token's log-probability in float32, for each nat of its size plus one. Generation and a pass over the same
/// tokens differ by up to 1e-5 at probable tokens.
const OF_A_TOKEN: f64 = 1e-5;
/// The error of a sum, for each nat and each token. The errors in a sum mostly cancel.
const OF_A_SUM: f64 = 1e-6;

/// Returns the sum of `tokens` log-probabilities under another model, or `own` if the two differ by less than the float32 error. A
/// policy that equals its reference therefore has log-ratios of exactly 0 before its first update, however the batch is cut.
pub fn settled(own: f64, other: f64, tokens: usize) -> f64 {
    let (size, tokens) = (own.abs(), tokens.max(1) as f64);
    let error = OF_A_TOKEN * (size / tokens + 1.0) + OF_A_SUM * (size + tokens);
    if (own - other).abs() <= error { own } else { other }
}

/// Returns [`settled`] of every token: `[tokens]`, without the gradient of `own`.
pub(super) fn settled_tokens(own: &Tensor<1>, other: Tensor<1>) -> Tensor<1> {
    let own = own.clone().detach();
    let error = (own.clone().abs() + 1.0) * (OF_A_TOKEN + OF_A_SUM);
    let equal = (own.clone() - other.clone()).abs().lower_equal(error);
    other.mask_where(equal, own)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::column;

    #[test]
    fn only_rounding_counts_as_equal() {
        for (own, other, tokens, equal) in [
            (-1.0, -1.000_015, 1, true),
            (-1.0, -1.000_03, 1, false),
            (0.0, -1e-5, 1, true),
            (0.0, -1e-4, 1, false),
            (-100.0, -100.000_08, 30, true),
            (-100.0, -100.01, 30, false),
        ] {
            assert_eq!(settled(own, other, tokens) == own, equal, "{own} {other}");
            if tokens == 1 {
                let tensor = |x: f64| column::tensor(&[x as f32], &Device::flex());
                let ours = column::host(settled_tokens(&tensor(own), tensor(other)))[0];
                assert_eq!(ours, if equal { own as f32 } else { other as f32 }, "{own} {other}");
            }
        }
    }
}
