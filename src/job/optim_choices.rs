//! The names that the registries of schedules and optimizers give to the keys of an `optim` section.

use crate::optim::schedule;
use crate::util::choice::Choice;

/// The choices of a section, given its key.
macro_rules! optim_choices {
    ($optim:literal) => {
        crate::job::optim_choices::of([concat!($optim, ".lr_scheduler_type"), concat!($optim, ".lr_wsd_decay_style")])
    };
}
pub(crate) use optim_choices;

/// Returns the names of schedules and of the styles of `wsd`, for these two keys.
pub fn of([schedules, styles]: [&'static str; 2]) -> impl Iterator<Item = Choice> {
    let plain = |key, names: Vec<&'static str>| names.into_iter().map(move |name| Choice::plain(key, name));
    let absent = schedule::ABSENT.iter().map(move |(name, reason)| Choice::absent(schedules, name, reason));
    plain(schedules, schedule::names()).chain(absent).chain(plain(styles, schedule::style_names()))
}
