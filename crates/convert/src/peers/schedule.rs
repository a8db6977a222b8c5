//! The learning-rate schedules of transformers' `SchedulerType`.

use super::Draft;
use super::value::{float, int, text};
use burnish_hydra::{Value, inline};

/// A schedule of transformers.
pub(crate) struct PeerSchedule {
    theirs: &'static str,
    /// Our value of `lr_scheduler_type`.
    pub ours: &'static str,
    pub warms_up: bool,
    /// Additional settings with transformers' defaults.
    sets: &'static [(&'static str, DefaultValue)],
    /// Options of `lr_scheduler_kwargs`, with our settings.
    options: &'static [(&'static str, &'static str, OptionMeaning)],
}

/// A default value of transformers.
enum DefaultValue {
    Number(f64),
    No,
}

impl DefaultValue {
    fn value(&self) -> Value {
        match self {
            Self::Number(number) => float(*number),
            Self::No => Value::Bool(false),
        }
    }
}

/// The relation of an option to our setting.
#[derive(Clone, Copy)]
enum OptionMeaning {
    /// The setting has the same value.
    Same,
    /// The option counts updates, the setting steps.
    Steps,
    /// The option is a share of the learning rate, the setting a rate.
    Rate,
    /// The option must have this value, because a setting for it does not exist.
    Only(&'static str),
}
use OptionMeaning::{Only, Rate, Same, Steps};

impl PeerSchedule {
    const fn plain(name: &'static str) -> Self {
        Self { theirs: name, ours: name, warms_up: true, sets: &[], options: &[] }
    }
}

const SCHEDULES: &[PeerSchedule] = &[
    PeerSchedule::plain("linear"),
    PeerSchedule { options: &[("num_cycles", "num_cycles", Same)], ..PeerSchedule::plain("cosine") },
    PeerSchedule { ours: "cosine", options: MIN_LR, ..PeerSchedule::plain("cosine_with_min_lr") },
    PeerSchedule {
        ours: "cosine",
        sets: &[("zero_indexed_step", DefaultValue::No)],
        options: MIN_LR,
        ..PeerSchedule::plain("cosine_warmup_with_min_lr")
    },
    PeerSchedule {
        sets: &[("num_cycles", DefaultValue::Number(1.0))],
        options: &[("num_cycles", "num_cycles", Same)],
        ..PeerSchedule::plain("cosine_with_restarts")
    },
    PeerSchedule {
        sets: &[("min_lr", DefaultValue::Number(1e-7))],
        options: &[("lr_end", "min_lr", Same), ("power", "power", Same)],
        ..PeerSchedule::plain("polynomial")
    },
    PeerSchedule { options: &[("timescale", "timescale", Steps)], ..PeerSchedule::plain("inverse_sqrt") },
    PeerSchedule {
        ours: "wsd",
        options: &[
            ("num_decay_steps", "lr_wsd_decay_steps", Steps),
            ("decay_type", "lr_wsd_decay_style", Same),
            ("min_lr_ratio", "min_lr_ratio", Same),
            // The warm-up starts at the minimum.
            ("min_lr_ratio", "lr_warmup_init", Rate),
            ("num_cycles", "num_cycles", Same),
            ("warmup_type", "", Only("linear")),
        ],
        ..PeerSchedule::plain("warmup_stable_decay")
    },
    PeerSchedule { warms_up: false, ..PeerSchedule::plain("constant") },
    PeerSchedule { ours: "constant", ..PeerSchedule::plain("constant_with_warmup") },
];

const MIN_LR: &[(&str, &str, OptionMeaning)] =
    &[("min_lr", "min_lr", Same), ("min_lr_rate", "min_lr_ratio", Same), ("num_cycles", "num_cycles", Same)];

/// Returns the schedule for a name of transformers; `None` if it is not supported.
pub(crate) fn find_schedule(name: &str) -> Option<&'static PeerSchedule> {
    SCHEDULES.iter().find(|schedule| schedule.theirs == name)
}

/// Lists the names that `find_schedule` accepts, for messages.
pub fn names() -> String {
    SCHEDULES.iter().map(|schedule| schedule.theirs).collect::<Vec<_>>().join(", ")
}

impl PeerSchedule {
    /// Sets the schedule of an optimizer; `from` is the option with its name.
    pub(crate) fn set(&self, draft: &mut Draft, section: &str, from: &str) {
        draft.set(&format!("{section}.lr_scheduler_type"), text(self.ours), from);
        for (name, value) in self.sets {
            draft.set(&format!("{section}.{name}"), value.value(), from);
        }
    }

    /// Converts an option of the schedule; `updates`: the number of updates in a step.
    ///
    /// # Errors
    /// If the option or its value is not supported.
    pub(crate) fn set_option(
        &self,
        draft: &mut Draft,
        (section, from): (&str, &str),
        (option, value): (&str, &Value),
        updates: f64,
    ) -> Result<(), String> {
        let refusal = || format!("`{option}: {}` is not supported for {}", inline(value), self.theirs);
        let number = match value {
            Value::Float(number) => Some(*number),
            Value::Int(number) => Some(*number as f64),
            _ => None,
        };
        let mut known = false;
        for (_, key, meaning) in self.options.iter().filter(|(name, ..)| *name == option) {
            let value = match (meaning, number) {
                (Same, Some(number)) => float(number),
                (Same, None) => value.clone(),
                (Steps, Some(number)) => int((number / updates).round().max(1.0) as i64),
                (Rate, Some(number)) => float(number * draft.values.number("learning_rate").unwrap_or(0.0)),
                (Only(one), _) if matches!(value, Value::Text(text) if text == one) => {
                    known = true;
                    continue;
                }
                _ => return Err(refusal()),
            };
            draft.set(&format!("{section}.{key}"), value, from);
            known = true;
        }
        known.then_some(()).ok_or_else(refusal)
    }
}

/// Returns a Markdown table of the schedules and their options.
pub(super) fn table() -> String {
    let mut table = String::from("| `lr_scheduler_type` | Here | `lr_scheduler_kwargs` | Here |\n|---|---|---|---|\n");
    for schedule in SCHEDULES {
        let sets: String = schedule.sets.iter().map(|(name, value)| format!(", `{name}={}`", inline(&value.value()))).collect();
        let warm_up = if schedule.warms_up { "" } else { ", without warm-up" };
        let mut schedule_cells = format!("`{}` | `{}`{sets}{warm_up}", schedule.theirs, schedule.ours);
        if schedule.options.is_empty() {
            table.push_str(&format!("| {schedule_cells} |  |  |\n"));
        }
        for (option, key, meaning) in schedule.options {
            let setting = match meaning {
                Same => format!("`{key}`"),
                Steps => format!("`{key}`, in steps instead of updates"),
                Rate => format!("`{key}`, times `learning_rate`"),
                Only(value) => format!("must be `{value}`"),
            };
            table.push_str(&format!("| {} | `{option}` | {setting} |\n", std::mem::replace(&mut schedule_cells, " | ".into())));
        }
    }
    table
}
