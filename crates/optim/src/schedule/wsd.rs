//! Decay styles of the schedule `wsd`.

use std::f64::consts::PI;

/// A row of [`WSD_STYLES`].
pub struct WsdStyle {
    /// Value of `optim.lr_wsd_decay_style`.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// Remaining share of the fall, at a progress from 0 to below 1.
    pub(super) remaining: fn(progress: f64, num_cycles: f64) -> f64,
}

/// Decay styles. The first is the default.
pub static WSD_STYLES: &[WsdStyle] = &[
    WsdStyle {
        name: "cosine",
        aliases: &[],
        remaining: |progress, num_cycles| (0.5 * (1.0 + (PI * num_cycles * 2.0 * progress).cos())).max(0.0),
    },
    WsdStyle { name: "linear", aliases: &[], remaining: |progress, _| 1.0 - progress },
    WsdStyle { name: "exponential", aliases: &[], remaining: |progress, _| 2.0 * 0.5f64.powf(progress) - 1.0 },
    WsdStyle { name: "minus_sqrt", aliases: &["1-sqrt"], remaining: |progress, _| 1.0 - progress.sqrt() },
];
