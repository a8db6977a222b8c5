//! Schedules that consist of one formula. The floor is min_lr_ratio, or min_lr as a share of the base rate if that is larger.

use std::f64::consts::PI;

use super::kind::{Schedule, ScheduleKind};

pub(super) const CONSTANT: ScheduleKind = ScheduleKind {
    name: "constant",
    aliases: &["constant_with_warmup"],
    doc: "The base rate after warm-up.\n\
          Formula: step/warmup, then 1.\n\
          verl: get_constant_schedule_with_warmup.\n\
          TRL: transformers' get_constant_schedule_with_warmup.",
    follows_length: false,
    reads_index: false,
    decay: |_, _| 1.0,
};

pub(super) const LINEAR: ScheduleKind = ScheduleKind {
    name: "linear",
    aliases: &[],
    doc: "Falls linearly to the floor, min_lr_ratio of the base rate.\n\
          Formula: step/warmup, then 1 − (1 − min)·progress.\n\
          transformers: get_linear_schedule_with_warmup; verl: lr_decay_style and decay_type of Megatron and torchtitan.",
    follows_length: true,
    reads_index: false,
    // A warm-up that is longer than the schedule ends at the floor, as in transformers.
    decay: |schedule, step| match step {
        step if step >= schedule.total_steps => schedule.floor,
        step => 1.0 - (1.0 - schedule.floor) * schedule.progress(step),
    },
};

pub(super) const COSINE: ScheduleKind = ScheduleKind {
    name: "cosine",
    aliases: &["cosine_with_min_lr"],
    doc: "Falls along a cosine to min_lr_ratio of the base rate, and stays there after the end of the schedule.\n\
          Formula: step/warmup, then max(min, (1 − min)/2·cos(2π·num_cycles·progress) + (1 + min)/2).\n\
          verl: get_cosine_schedule_with_warmup.\n\
          TRL: transformers' get_cosine_with_min_lr_schedule_with_warmup, and the one with warmup_lr_rate if zero_indexed_step is false.",
    follows_length: true,
    reads_index: true,
    decay: |schedule, step| {
        let (min, wave) = (schedule.floor, (PI * schedule.num_cycles * 2.0 * schedule.progress(step)).cos());
        min.max(wave * (1.0 - min) * 0.5 + (1.0 + min) * 0.5)
    },
};

pub(super) const COSINE_WITH_RESTARTS: ScheduleKind = ScheduleKind {
    name: "cosine_with_restarts",
    aliases: &[],
    doc: "Falls num_cycles times along half a cosine, from the base rate to the floor, and jumps back between.\n\
          Formula: step/warmup, then min + (1 − min)/2·(1 + cos(π·(num_cycles·progress mod 1))), and min after the end.\n\
          transformers: get_cosine_with_hard_restarts_schedule_with_warmup, whose floor is 0.",
    follows_length: true,
    reads_index: false,
    decay: |schedule, step| match schedule.progress(step) {
        1.0.. => schedule.floor,
        progress => schedule.above_floor(0.5 * (1.0 + (PI * (schedule.num_cycles * progress).fract()).cos())),
    },
};

pub(super) const POLYNOMIAL: ScheduleKind = ScheduleKind {
    name: "polynomial",
    aliases: &[],
    doc: "Falls to the floor along a power of the remaining share of the schedule.\n\
          Formula: step/warmup, then min + (1 − min)·(1 − progress)^power.\n\
          transformers: get_polynomial_decay_schedule_with_warmup, whose lr_end is min_lr.",
    follows_length: true,
    reads_index: false,
    decay: |schedule, step| match step {
        step if step > schedule.total_steps => schedule.floor,
        step => schedule.above_floor((1.0 - schedule.progress(step)).powf(schedule.power)),
    },
};

pub(super) const INVERSE_SQRT: ScheduleKind = ScheduleKind {
    name: "inverse_sqrt",
    aliases: &[],
    doc: "Falls with the inverse square root of the step, without end and without a floor.\n\
          Formula: step/warmup, then √(timescale / (step − warmup + timescale)).\n\
          transformers: get_inverse_sqrt_schedule.",
    follows_length: false,
    reads_index: false,
    decay: |schedule, step| {
        let timescale = schedule.timescale.or(Some(schedule.warmup_steps).filter(|steps| *steps > 0)).unwrap_or(10_000);
        1.0 / (((step - schedule.warmup_steps) + timescale) as f64 / timescale as f64).sqrt()
    },
};

pub(super) const INVERSE_SQUARE_ROOT: ScheduleKind = ScheduleKind {
    name: "inverse_square_root",
    aliases: &["inverse-square-root"],
    doc: "Falls with the inverse square root of the step to the floor, and jumps to the floor at the end of the schedule.\n\
          Formula: step/warmup, then max(min, √(max(warmup, 1) / max(step, 1))), and min after the end.\n\
          verl: lr_decay_style of Megatron, whose own name is inverse-square-root.",
    follows_length: true,
    reads_index: false,
    decay: |schedule, step| {
        if step > schedule.total_steps {
            return schedule.floor;
        }
        schedule.floor.max((schedule.warmup_steps.max(1) as f64).sqrt() / (step.max(1) as f64).sqrt())
    },
};

pub(super) const WSD: ScheduleKind = ScheduleKind {
    name: "wsd",
    aliases: &["WSD", "warmup_stable_decay"],
    doc: "Stays at the base rate until the last steps, then falls to the floor, min_lr_ratio of the base rate.\n\
          Formula: step/warmup, then 1, over the last lr_wsd_decay_steps min + (1 − min)·f(progress), and min after the end; f is \
          (1 + cos(2π·num_cycles·progress))/2, 1 − progress, 2·0.5^progress − 1 or 1 − √progress by lr_wsd_decay_style. Without \
          lr_wsd_decay_steps, stable_ratio of the steps after the warm-up are constant.\n\
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
                schedule.above_floor((schedule.wsd_style.remaining)(fallen as f64 / steps as f64, schedule.num_cycles))
            }
            _ => 1.0,
        }
    },
};

/// Returns the length of the fall of `wsd`.
fn decay_steps(schedule: &Schedule) -> usize {
    let after = schedule.total_steps.saturating_sub(schedule.warmup_steps);
    schedule.wsd_decay_steps.unwrap_or_else(|| after - (after as f64 * schedule.stable_ratio) as usize)
}
