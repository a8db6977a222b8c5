//! The names that the registries of schedules and optimizers offer for the keys of an `optim` section.

use burnish_optim::schedule;
use burnish_registry::Choice;

/// Returns the choices of a section, given its key.
macro_rules! optim_choices {
    ($optim:literal) => {
        crate::job::optim_choices::for_keys([
            concat!($optim, ".lr_scheduler_type"),
            concat!($optim, ".lr_wsd_decay_style"),
            concat!($optim, ".optimizer"),
        ])
    };
}
pub(crate) use optim_choices;

/// Returns the names of schedules, of the styles of `wsd` and of optimizers, for these three keys.
pub fn for_keys([schedules, styles, optimizers]: [&'static str; 3]) -> impl Iterator<Item = Choice> {
    let plain = |key, names: Vec<&'static str>| names.into_iter().map(move |name| Choice::plain(key, name));
    let absent = move |key, names: &'static [(&'static str, &'static str)]| {
        names.iter().map(move |(name, reason)| Choice::absent(key, name, reason))
    };
    plain(schedules, schedule::names())
        .chain(absent(schedules, schedule::ABSENT))
        .chain(plain(styles, schedule::style_names()))
        .chain(plain(optimizers, burnish_optim::names()))
        .chain(absent(optimizers, burnish_optim::ABSENT))
}
