//! A schedule with its lengths, and its registry entry with the formula of its fall.

use super::wsd::{WSD_STYLES, WsdStyle};

/// A row of [`SCHEDULES`](super::SCHEDULES).
pub struct ScheduleKind {
    /// Value of `optim.lr_scheduler_type`.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    /// True if some rates depend on the length of the schedule, even without a warm-up that is a share of it.
    pub follows_length: bool,
    /// True if the schedule reads `zero_indexed_step`.
    pub(super) reads_index: bool,
    /// Computes the factor at a step after the warm-up.
    pub(super) decay: fn(schedule: &Schedule, step: usize) -> f64,
}

/// A schedule with its lengths in steps. Rates are shares of the base rate.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub kind: &'static ScheduleKind,
    pub warmup_steps: usize,
    pub total_steps: usize,
    /// Rate at which the warm-up begins.
    pub warmup_init: f64,
    /// Rate at which the fall ends.
    pub floor: f64,
    /// Number of waves of `cosine` and `wsd` (0.5 falls once), and of falls of `cosine_with_restarts`.
    pub num_cycles: f64,
    /// Exponent of `polynomial`.
    pub power: f64,
    /// Steps after which the rate of `inverse_sqrt` has fallen to √½; by default the warm-up, or 10,000 without a warm-up.
    pub timescale: Option<usize>,
    /// Share of the steps after the warm-up at which `wsd` is constant, unless `wsd_decay_steps` is set.
    pub stable_ratio: f64,
    /// Length of the fall of `wsd`.
    pub wsd_decay_steps: Option<usize>,
    pub wsd_style: &'static WsdStyle,
    /// False if `cosine` begins with the rate of its second step.
    pub zero_indexed_step: bool,
}

impl Schedule {
    /// Creates a schedule without a warm-up and with the defaults of all other fields.
    pub fn new(kind: &'static ScheduleKind, total_steps: usize) -> Self {
        Self {
            kind,
            total_steps,
            warmup_steps: 0,
            warmup_init: 0.0,
            floor: 0.0,
            num_cycles: 0.5,
            power: 1.0,
            timescale: None,
            stable_ratio: 0.9,
            wsd_decay_steps: None,
            wsd_style: &WSD_STYLES[0],
            zero_indexed_step: true,
        }
    }

    /// Returns the factor on the base rate at `step`, counted from 0.
    pub fn factor(&self, step: usize) -> f64 {
        let step = step + usize::from(self.kind.reads_index && !self.zero_indexed_step);
        if step < self.warmup_steps {
            return self.warmup_init + (1.0 - self.warmup_init) * (step as f64 / self.warmup_steps as f64);
        }
        (self.kind.decay)(self, step)
    }

    /// Returns the progress of a step from the end of the warm-up (0) to the end of the schedule (1); 1 afterwards.
    pub(super) fn progress(&self, step: usize) -> f64 {
        let length = self.total_steps.saturating_sub(self.warmup_steps).max(1);
        // verl's cosine would rise again after its end, but a schedule there is always as long as its run.
        ((step - self.warmup_steps) as f64 / length as f64).min(1.0)
    }

    /// Returns the rate at this share of the way from the floor to the base rate.
    pub(super) fn above_floor(&self, share: f64) -> f64 {
        (1.0 - self.floor) * share + self.floor
    }
}

/// Returns the number of warm-up steps: `optim.lr_warmup_steps` if it is above 0, otherwise `optim.lr_warmup_steps_ratio` of all
/// steps, rounded down (verl's engine).
pub fn warmup_steps(lr_warmup_steps: i64, ratio: f64, total_steps: usize) -> usize {
    match usize::try_from(lr_warmup_steps) {
        Ok(steps) if steps > 0 => steps,
        _ => (ratio * total_steps as f64) as usize,
    }
}
