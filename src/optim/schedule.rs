//! Learning-rate schedules: the factor on the base rate at each step, with linear warm-up.
//!
//! The factor of step `k` (from 0) is that of `LambdaLR`, as in verl: with a warm-up the very first step has factor 0. A step is
//! one training iteration, whatever the number of mini-batches in it.

use std::f64::consts::PI;

/// A row of [`SCHEDULES`].
pub struct ScheduleKind {
    /// The value of `optim.lr_scheduler_type`.
    pub name: &'static str,
    pub doc: &'static str,
    /// The factor after warm-up, at `progress` (0 at its end, 1 at the end of the schedule and ever after).
    decay: fn(schedule: &Schedule, progress: f64) -> f64,
}

/// Every schedule that `optim.lr_scheduler_type` can name.
pub static SCHEDULES: &[ScheduleKind] = &[
    ScheduleKind {
        name: "constant",
        doc: "The base rate after warm-up.\nFormula: step/warmup, then 1.\nverl: get_constant_schedule_with_warmup.",
        decay: |_, _| 1.0,
    },
    ScheduleKind {
        name: "linear",
        doc: "Falls in a straight line to min_lr_ratio of the base rate.\n\
              Formula: step/warmup, then 1 − (1 − min)·progress.\n\
              transformers: get_linear_schedule_with_warmup; verl: lr_decay_style and decay_type of Megatron and torchtitan.",
        decay: |schedule, progress| 1.0 - (1.0 - schedule.min_lr_ratio) * progress,
    },
    ScheduleKind {
        name: "cosine",
        doc: "Falls along a cosine to min_lr_ratio of the base rate, and stays there beyond the end of the schedule.\n\
              Formula: step/warmup, then max(min, (1 − min)/2·cos(2π·num_cycles·progress) + (1 + min)/2).\n\
              verl: get_cosine_schedule_with_warmup.",
        decay: |schedule, progress| {
            let (min, wave) = (schedule.min_lr_ratio, (PI * schedule.num_cycles * 2.0 * progress).cos());
            min.max(wave * (1.0 - min) * 0.5 + (1.0 + min) * 0.5)
        },
    },
];

/// The schedule of this name, if there is one.
pub fn find(name: &str) -> Option<&'static ScheduleKind> {
    SCHEDULES.iter().find(|s| s.name == name)
}

/// The names of all schedules, for messages and documentation.
pub fn names() -> Vec<&'static str> {
    SCHEDULES.iter().map(|s| s.name).collect()
}

/// A schedule with its lengths in steps.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub kind: &'static ScheduleKind,
    pub warmup_steps: usize,
    pub total_steps: usize,
    /// The floor of `linear` and `cosine`, as a share of the base rate.
    pub min_lr_ratio: f64,
    /// The number of waves of `cosine`; 0.5 falls once.
    pub num_cycles: f64,
}

impl Schedule {
    /// The factor on the base rate at `step`, counted from 0.
    pub fn factor(&self, step: usize) -> f64 {
        if step < self.warmup_steps {
            return step as f64 / self.warmup_steps as f64;
        }
        let progress = (step - self.warmup_steps) as f64 / self.total_steps.saturating_sub(self.warmup_steps).max(1) as f64;
        // verl's cosine would climb again; there a schedule is always as long as its run.
        (self.kind.decay)(self, progress.min(1.0))
    }
}

/// The number of warm-up steps: `optim.lr_warmup_steps` if it is above 0, else `optim.lr_warmup_steps_ratio` of all steps,
/// rounded down (verl's engine).
pub fn warmup_steps(lr_warmup_steps: i64, ratio: f64, total_steps: usize) -> usize {
    match usize::try_from(lr_warmup_steps) {
        Ok(steps) if steps > 0 => steps,
        _ => (ratio * total_steps as f64) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// verl's Megatron and torchtitan schedules do this; `schedules.json` has no case of either.
    #[test]
    fn linear_falls_to_its_floor_and_stays_there() {
        let factors = |warmup_steps, min_lr_ratio, steps: &[usize]| {
            let kind = find("linear").unwrap();
            let schedule = Schedule { kind, warmup_steps, total_steps: 10, min_lr_ratio, num_cycles: 0.5 };
            steps.iter().map(|&step| schedule.factor(step)).collect::<Vec<_>>()
        };
        assert_eq!(factors(2, 0.0, &[0, 1, 2, 4, 6, 10, 12]), [0.0, 0.5, 1.0, 0.75, 0.5, 0.0, 0.0]);
        assert_eq!(factors(0, 0.5, &[0, 5, 10, 30]), [1.0, 0.75, 0.5, 0.5]);
    }
}
