//! f-divergences: the score of a log-ratio when a divergence other than the reverse KL holds the policy near the
//! reference (Wang et al. 2023, arXiv:2309.16240).

use super::dual::Dual;
use crate::options::Options;

/// A row of [`F_DIVERGENCES`].
pub struct FDivergence {
    /// The value of `algorithm.f_divergence_type`.
    pub name: &'static str,
    /// f′ of the ratio, from Δ and `algorithm.f_alpha_divergence_coef`.
    score: fn(Dual, f64) -> Dual,
}

/// Every divergence that `algorithm.f_divergence_type` can name.
pub static F_DIVERGENCES: &[FDivergence] = &[
    FDivergence { name: "reverse_kl", score: |ratio, _| ratio },
    FDivergence { name: "forward_kl", score: |ratio, _| Dual::constant(1.0) - (-ratio).exp() },
    FDivergence { name: "js_divergence", score: |ratio, _| ratio.log_sigmoid() + std::f64::consts::LN_2 },
    FDivergence { name: "alpha_divergence", score: alpha },
];

/// (e^((α−1)Δ) − 1)/(α − 1), and its limit Δ at α = 1.
fn alpha(ratio: Dual, alpha: f64) -> Dual {
    let rate = alpha - 1.0;
    if rate.abs() < 1e-6 { ratio } else { ((ratio * rate).exp() - 1.0) * (1.0 / rate) }
}

/// Returns f′ of a log-ratio by the divergence of the settings.
pub(super) fn score(ratio: Dual, options: &Options) -> Dual {
    let name = options.word("f_divergence_type");
    let divergence = F_DIVERGENCES.iter().find(|divergence| divergence.name == name);
    let divergence = divergence.unwrap_or_else(|| panic!("`{name}` is not a divergence"));
    (divergence.score)(ratio, options.number("f_alpha_divergence_coef"))
}
