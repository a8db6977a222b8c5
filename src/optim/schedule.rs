//! Learning-rate schedules: the factor on the base rate at each step, with linear warm-up.
//!
//! As in verl the factor of step `k` (from 0) is that of `LambdaLR`: with a warm-up the very first step has factor 0. A step
//! is one training iteration, whatever the number of mini-batches in it.

use std::f64::consts::PI;

/// A row of [`SCHEDULES`].
pub struct ScheduleKind {
    /// The value of `optim.lr_scheduler_type`.
    pub name: &'static str,
    pub doc: &'static str,
    /// The factor after warm-up, at `progress` (0 at its end, 1 at the last step).
    decay: fn(schedule: &Schedule, progress: f64) -> f64,
}

/// Every schedule `optim.lr_scheduler_type` can name.
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
        decay: |schedule, progress| 1.0 - (1.0 - schedule.min_lr_ratio) * progress.min(1.0),
    },
    ScheduleKind {
        name: "cosine",
        doc: "Falls along a cosine to min_lr_ratio of the base rate.\n\
              Formula: step/warmup, then max(min, (1 − min)/2·cos(2π·num_cycles·progress) + (1 + min)/2).\n\
              verl: get_cosine_schedule_with_warmup.",
        decay: |schedule, progress| {
            let (min, wave) = (schedule.min_lr_ratio, (PI * schedule.num_cycles * 2.0 * progress).cos());
            min.max(wave * (1.0 - min) * 0.5 + (1.0 + min) * 0.5)
        },
    },
];

/// The schedule of this name.
pub fn find(name: &str) -> Option<&'static ScheduleKind> {
    SCHEDULES.iter().find(|s| s.name == name)
}

/// All names, for messages and documentation.
pub fn names() -> Vec<&'static str> {
    SCHEDULES.iter().map(|s| s.name).collect()
}

/// A schedule with its lengths, in steps.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub kind: &'static ScheduleKind,
    pub warmup_steps: usize,
    pub total_steps: usize,
    /// The floor of `linear` and `cosine`, as a share of the base rate.
    pub min_lr_ratio: f64,
    /// The waves of `cosine`; 0.5 falls once.
    pub num_cycles: f64,
}

impl Schedule {
    /// What to multiply the base rate by at `step`, counted from 0.
    pub fn factor(&self, step: usize) -> f64 {
        if step < self.warmup_steps {
            return step as f64 / self.warmup_steps as f64;
        }
        let progress = (step - self.warmup_steps) as f64 / self.total_steps.saturating_sub(self.warmup_steps).max(1) as f64;
        (self.kind.decay)(self, progress)
    }
}

/// `optim.lr_warmup_steps` if it is not negative, else `optim.lr_warmup_steps_ratio` of all steps, rounded down.
pub fn warmup_steps(lr_warmup_steps: i64, ratio: f64, total_steps: usize) -> usize {
    usize::try_from(lr_warmup_steps).unwrap_or((ratio * total_steps as f64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(name: &str, warmup_steps: usize, min_lr_ratio: f64) -> Schedule {
        Schedule { kind: find(name).unwrap(), warmup_steps, total_steps: 10, min_lr_ratio, num_cycles: 0.5 }
    }

    #[test]
    fn factors_are_those_of_verl() {
        let factors = |s: Schedule, steps: &[usize]| steps.iter().map(|&k| s.factor(k)).collect::<Vec<_>>();
        assert_eq!(factors(schedule("constant", 4, 0.0), &[0, 1, 4, 9, 50]), [0.0, 0.25, 1.0, 1.0, 1.0]);
        assert_eq!(factors(schedule("constant", 0, 0.0), &[0]), [1.0]);
        assert_eq!(factors(schedule("linear", 2, 0.0), &[0, 1, 2, 4, 6, 10, 12]), [0.0, 0.5, 1.0, 0.75, 0.5, 0.0, 0.0]);
        assert_eq!(factors(schedule("linear", 0, 0.5), &[0, 5, 10]), [1.0, 0.75, 0.5]);
        let cosine = factors(schedule("cosine", 2, 0.1), &[0, 1, 2, 6, 10]);
        for (factor, expected) in cosine.iter().zip([0.0, 0.5, 1.0, 0.55, 0.1]) {
            assert!((factor - expected).abs() < 1e-12, "{cosine:?}");
        }
    }

    #[test]
    fn steps_win_over_ratio() {
        assert_eq!([warmup_steps(-1, 0.15, 10), warmup_steps(0, 0.15, 10), warmup_steps(3, 0.15, 10)], [1, 0, 3]);
    }
}
