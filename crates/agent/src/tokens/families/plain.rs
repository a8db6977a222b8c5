//! The rules of all other models: appended tokens directly follow the model's turn.

use crate::tokens::rules::{FamilyTokenRules, TokenFamily};

/// The rules of models without a family. Matches verl 0.9.1 (`ContinuousTokenBuilder`).
pub static PLAIN: TokenFamily =
    TokenFamily { model_types: &[], doc: "appended tokens directly follow the model's turn", rules: |_| Ok(Box::new(Plain)) };

struct Plain;

impl FamilyTokenRules for Plain {}
