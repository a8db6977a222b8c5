//! The rules of all other models: appended tokens directly follow the model's turn.

use crate::tokens::rules::{Family, Rules};

/// The rules of models without a family. Matches verl 0.9.1 (`ContinuousTokenBuilder`).
pub static PLAIN: Family =
    Family { model_types: &[], doc: "appended tokens directly follow the model's turn", rules: |_| Ok(Box::new(Plain)) };

struct Plain;

impl Rules for Plain {}
