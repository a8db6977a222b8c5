//! Learning-rate schedules of transformers.

/// The names of transformers, the shape here, and whether the warm-up counts.
const SHAPES: &[(&str, &str, bool)] = &[
    ("linear", "linear", true),
    ("cosine", "cosine", true),
    ("cosine_with_min_lr", "cosine", true),
    ("constant", "constant", false),
    ("constant_with_warmup", "constant", true),
];

/// Returns the shape of a schedule, and whether it warms up; `None` if there is none.
pub fn shape(name: &str) -> Option<(&'static str, bool)> {
    SHAPES.iter().find(|(known, ..)| *known == name).map(|(_, shape, warms_up)| (*shape, *warms_up))
}

/// Returns the names that [`shape`] knows, for messages.
pub fn names() -> String {
    SHAPES.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
}
