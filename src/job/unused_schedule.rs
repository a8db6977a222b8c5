//! Settings of an optimizer and its schedule that have no effect with the other settings.

use anyhow::Result;

use super::models::schedule;
use super::unused_options::UnusedOption;
use burnish_config::schema::OptimConfig;

/// Number of `schedule_keys`.
const KEYS: usize = 12;

/// The keys of [`of_schedule`] below the mapping of an optimizer.
macro_rules! schedule_keys {
    ($optim:literal) => {
        [
            concat!($optim, ".lr_warmup_steps_ratio"),
            concat!($optim, ".lr_warmup_init"),
            concat!($optim, ".min_lr"),
            concat!($optim, ".min_lr_ratio"),
            concat!($optim, ".num_cycles"),
            concat!($optim, ".power"),
            concat!($optim, ".timescale"),
            concat!($optim, ".stable_ratio"),
            concat!($optim, ".lr_wsd_decay_steps"),
            concat!($optim, ".lr_wsd_decay_style"),
            concat!($optim, ".zero_indexed_step"),
            concat!($optim, ".total_training_steps"),
        ]
    };
}
pub(crate) use schedule_keys;

/// Finds the keys of `schedule_keys` that change no learning rate, for any length of the run.
///
/// # Errors
/// If the schedule does not exist.
pub(crate) fn of_schedule(keys: [&'static str; KEYS], optim: &OptimConfig) -> Result<[UnusedOption; KEYS]> {
    const WHY: &str = "it changes nothing with this lr_scheduler_type and lr_warmup_steps";
    const STEPS: usize = 40;
    let rates = |change: &dyn Fn(&mut OptimConfig)| -> Result<Vec<f64>> {
        let mut optim = optim.clone();
        change(&mut optim);
        let schedule = schedule(&optim, STEPS as u64)?;
        Ok((0..STEPS).map(|step| schedule.factor(step)).collect())
    };
    let other = |share: f64| if share < 0.5 { 1.0 } else { 0.0 };
    let changes: [&dyn Fn(&mut OptimConfig); KEYS] = [
        &|optim| optim.lr_warmup_steps_ratio = other(optim.lr_warmup_steps_ratio),
        // The larger of `min_lr` and `min_lr_ratio` counts, so each is compared with 0.
        &|optim| optim.lr_warmup_init = if optim.lr_warmup_init > 0.0 { 0.0 } else { optim.lr },
        &|optim| optim.min_lr = if optim.min_lr > 0.0 { 0.0 } else { optim.lr },
        &|optim| optim.min_lr_ratio = if optim.min_lr_ratio > 0.0 { 0.0 } else { 1.0 },
        &|optim| optim.num_cycles += 0.3,
        &|optim| optim.power += 0.3,
        &|optim| optim.timescale = if optim.timescale == Some(7) { Some(9) } else { Some(7) },
        &|optim| optim.stable_ratio = other(optim.stable_ratio),
        &|optim| optim.lr_wsd_decay_steps = if optim.lr_wsd_decay_steps == Some(7) { Some(9) } else { Some(7) },
        &|optim| optim.lr_wsd_decay_style = if optim.lr_wsd_decay_style == "linear" { "cosine" } else { "linear" }.into(),
        &|optim| optim.zero_indexed_step = !optim.zero_indexed_step,
        &|optim| optim.total_training_steps = if optim.total_training_steps == 17 { 23 } else { 17 },
    ];
    let now = rates(&|_| {})?;
    let mut unused = keys.map(|key| (false, key, WHY));
    for (option, change) in unused.iter_mut().zip(changes) {
        option.0 = rates(change)? == now;
    }
    Ok(unused)
}

/// The keys of [`of_optimizer`] below the mapping of an optimizer.
macro_rules! optimizer_keys {
    ($optim:literal) => {
        [
            concat!($optim, ".betas"),
            concat!($optim, ".eps"),
            concat!($optim, ".weight_decay"),
            concat!($optim, ".no_decay_name_list"),
        ]
    };
}
pub(crate) use optimizer_keys;

/// Finds the keys of `optimizer_keys` that have no effect in this optimizer.
pub(crate) fn of_optimizer(keys: [&'static str; 4], optim: &OptimConfig) -> [UnusedOption; 4] {
    let reads = burnish_optim::find(&optim.optimizer).map_or(&[][..], |kind| kind.reads);
    let reads = |key: &str| reads.iter().any(|name| key.ends_with(&format!(".{name}")));
    let unread = |key: &'static str| (!reads(key), key, "the optimizer has no such option");
    let [betas, eps, decay, no_decay] = keys;
    let decays = reads(decay) && optim.weight_decay > 0.0;
    [unread(betas), unread(eps), unread(decay), (!decays, no_decay, "no weight decay is applied")]
}
