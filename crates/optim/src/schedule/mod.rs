//! Learning-rate schedules by name: the factor on the base rate at each step, after a linear warm-up.
//!
//! The factor of step `k` (from 0) is the factor of `LambdaLR`, as in verl: with a warm-up, the very first step has factor 0. A
//! step is one training iteration with any number of mini-batches.

mod entries;
mod kind;
mod wsd;

pub use kind::{Schedule, ScheduleKind, warmup_steps};
pub use wsd::{WSD_STYLES, WsdStyle};

/// Every schedule that `optim.lr_scheduler_type` can name.
pub static SCHEDULES: &[ScheduleKind] = &[
    entries::CONSTANT,
    entries::LINEAR,
    entries::COSINE,
    entries::COSINE_WITH_RESTARTS,
    entries::POLYNOMIAL,
    entries::INVERSE_SQRT,
    entries::INVERSE_SQUARE_ROOT,
    entries::WSD,
];

/// Schedules of other libraries that are not implemented, and the reason.
pub static ABSENT: &[(&str, &str)] = &[
    ("reduce_lr_on_plateau", "it lowers the rate by the metrics of validation, but a rate here depends on the step alone"),
    ("greedy", "it changes the rate by the metrics of the run, but a rate here depends on the step alone"),
];

/// Returns the schedule with this name or alias, if any.
pub fn find(name: &str) -> Option<&'static ScheduleKind> {
    SCHEDULES.iter().find(|s| s.name == name || s.aliases.contains(&name))
}

/// Returns the names and aliases of all schedules, for messages and the check of settings.
pub fn names() -> Vec<&'static str> {
    SCHEDULES.iter().flat_map(|s| std::iter::once(&s.name).chain(s.aliases)).copied().collect()
}

/// Returns the style of the fall of `wsd` with this name or alias, if any.
pub fn find_style(name: &str) -> Option<&'static WsdStyle> {
    WSD_STYLES.iter().find(|s| s.name == name || s.aliases.contains(&name))
}

/// Returns the names and aliases of the styles of `wsd`.
pub fn style_names() -> Vec<&'static str> {
    WSD_STYLES.iter().flat_map(|s| std::iter::once(&s.name).chain(s.aliases)).copied().collect()
}
