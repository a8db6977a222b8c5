//! `wsd`: warm-up, a long stay at the base rate, and a fall at the end.

use std::f64::consts::PI;

use super::kind::{Schedule, ScheduleKind};

/// A row of [`WSD_STYLES`].
pub struct WsdStyle {
    /// The value of `optim.lr_wsd_decay_style`.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// The share of the way down that is left, at a progress from 0 to below 1.
    left: fn(progress: f64, num_cycles: f64) -> f64,
}

/// The ways down. The first is the default.
pub static WSD_STYLES: &[WsdStyle] = &[
    WsdStyle {
        name: "cosine",
        aliases: &[],
        left: |progress, num_cycles| (0.5 * (1.0 + (PI * num_cycles * 2.0 * progress).cos())).max(0.0),
    },
    WsdStyle { name: "linear", aliases: &[], left: |progress, _| 1.0 - progress },
    WsdStyle { name: "exponential", aliases: &[], left: |progress, _| 2.0 * 0.5f64.powf(progress) - 1.0 },
    WsdStyle { name: "minus_sqrt", aliases: &["1-sqrt"], left: |progress, _| 1.0 - progress.sqrt() },
];

pub(super) const WSD: ScheduleKind = ScheduleKind {
    name: "wsd",
    aliases: &["WSD", "warmup_stable_decay"],
    doc: "Stays at the base rate until the last steps, then falls to the floor, min_lr_ratio of the base rate.\n\
          Formula: step/warmup, then 1, over the last lr_wsd_decay_steps min + (1 − min)·f(progress), and min from the end on; f is \
          (1 + cos(2π·num_cycles·progress))/2, 1 − progress, 2·0.5^progress − 1 or 1 − √progress by lr_wsd_decay_style. Without \
          lr_wsd_decay_steps, stable_ratio of the steps after the warm-up stay.\n\
          verl: get_wsd_schedule_with_warmup, and lr_decay_style=WSD of Megatron.\n\
          TRL: transformers' get_wsd_schedule, whose warm-up begins at the floor: lr_warmup_init.",
    follows_length: true,
    reads_index: false,
    decay: |schedule, step| {
        if step >= schedule.total_steps {
            return schedule.floor;
        }
        let steps = decay_steps(schedule);
        // The fall may begin before the warm-up ends.
        match (step + steps).checked_sub(schedule.total_steps) {
            Some(fallen) if steps > 0 => {
                schedule.above_floor((schedule.wsd_style.left)(fallen as f64 / steps as f64, schedule.num_cycles))
            }
            _ => 1.0,
        }
    },
};

/// Returns the length of the fall.
fn decay_steps(schedule: &Schedule) -> usize {
    let after = schedule.total_steps.saturating_sub(schedule.warmup_steps);
    schedule.wsd_decay_steps.unwrap_or_else(|| after - (after as f64 * schedule.stable_ratio) as usize)
}
