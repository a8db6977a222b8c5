//! Learning-rate schedules of transformers, by the names of its `SchedulerType`.

use super::Draft;
use super::value::{float, int, text};
use burnish_hydra::{Value, inline};

/// A schedule of transformers.
pub struct Shape {
    theirs: &'static str,
    /// The value of `lr_scheduler_type` here.
    pub ours: &'static str,
    pub warms_up: bool,
    /// Settings beside it that stand for transformers' defaults.
    sets: &'static [(&'static str, Default)],
    /// Its own options, and the settings that they are.
    options: &'static [(&'static str, &'static str, As)],
}

/// A value that transformers has unless told otherwise.
enum Default {
    Number(f64),
    No,
}

/// The meaning of an option.
#[derive(Clone, Copy)]
enum As {
    /// The setting has the same value.
    Same,
    /// The option counts updates, the setting steps.
    Steps,
    /// The option is a share of the learning rate, the setting a rate.
    Rate,
    /// The option must have this value, and no setting stands for it.
    Only(&'static str),
}
use As::{Only, Rate, Same, Steps};

impl Shape {
    const fn plain(name: &'static str) -> Self {
        Self { theirs: name, ours: name, warms_up: true, sets: &[], options: &[] }
    }
}

const SHAPES: &[Shape] = &[
    Shape::plain("linear"),
    Shape { options: &[("num_cycles", "num_cycles", Same)], ..Shape::plain("cosine") },
    Shape { ours: "cosine", options: MIN_LR, ..Shape::plain("cosine_with_min_lr") },
    Shape {
        ours: "cosine",
        sets: &[("zero_indexed_step", Default::No)],
        options: MIN_LR,
        ..Shape::plain("cosine_warmup_with_min_lr")
    },
    Shape {
        sets: &[("num_cycles", Default::Number(1.0))],
        options: &[("num_cycles", "num_cycles", Same)],
        ..Shape::plain("cosine_with_restarts")
    },
    Shape {
        sets: &[("min_lr", Default::Number(1e-7))],
        options: &[("lr_end", "min_lr", Same), ("power", "power", Same)],
        ..Shape::plain("polynomial")
    },
    Shape { options: &[("timescale", "timescale", Steps)], ..Shape::plain("inverse_sqrt") },
    Shape {
        ours: "wsd",
        options: &[
            ("num_decay_steps", "lr_wsd_decay_steps", Steps),
            ("decay_type", "lr_wsd_decay_style", Same),
            ("min_lr_ratio", "min_lr_ratio", Same),
            // The warm-up begins at the floor.
            ("min_lr_ratio", "lr_warmup_init", Rate),
            ("num_cycles", "num_cycles", Same),
            ("warmup_type", "", Only("linear")),
        ],
        ..Shape::plain("warmup_stable_decay")
    },
    Shape { warms_up: false, ..Shape::plain("constant") },
    Shape { ours: "constant", ..Shape::plain("constant_with_warmup") },
];

const MIN_LR: &[(&str, &str, As)] =
    &[("min_lr", "min_lr", Same), ("min_lr_rate", "min_lr_ratio", Same), ("num_cycles", "num_cycles", Same)];

/// Returns the schedule with a name of transformers; `None` if it is not here.
pub fn shape(name: &str) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| shape.theirs == name)
}

/// Returns the names that [`shape`] knows, for messages.
pub fn names() -> String {
    SHAPES.iter().map(|shape| shape.theirs).collect::<Vec<_>>().join(", ")
}

impl Shape {
    /// Sets the schedule of an optimizer; `from` is the option that names it.
    pub fn set(&self, draft: &mut Draft, section: &str, from: &str) {
        draft.set(&format!("{section}.lr_scheduler_type"), text(self.ours), from);
        for (name, value) in self.sets {
            let value = match value {
                Default::Number(number) => float(*number),
                Default::No => Value::Bool(false),
            };
            draft.set(&format!("{section}.{name}"), value, from);
        }
    }

    /// Sets what an option of the schedule stands for; `updates`: the updates of a step.
    ///
    /// # Errors
    /// If nothing here is that option or has that value.
    pub fn set_option(
        &self,
        draft: &mut Draft,
        (section, from): (&str, &str),
        (option, value): (&str, &Value),
        updates: f64,
    ) -> Result<(), String> {
        let refusal = || format!("`{option}: {}` has no counterpart in {}", inline(value), self.theirs);
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
