//! Models of no family: what is appended stands directly behind the model's turn.

use crate::tokens::rules::{Family, Rules};

/// The rules of models that are in no family. As in verl 0.9.1 (`ContinuousTokenBuilder`).
pub static PLAIN: Family =
    Family { model_types: &[], doc: "what is appended stands directly behind the model's turn", rules: |_| Ok(Box::new(Plain)) };

struct Plain;

impl Rules for Plain {}
