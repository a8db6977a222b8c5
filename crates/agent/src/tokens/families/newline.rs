//! A newline after the token that ends a turn: templates write it, models stop before it.

use anyhow::Result;

use crate::tokens::appended::Appended;
use crate::tokens::rules::{FamilyTokenRules, TurnBoundary};
use burnish_data::Tokenizer;

/// Adds a newline after a turn that ended with its end token; a turn that was cut off stays open.
pub(super) struct Newline {
    end: u32,
    newline: u32,
}

impl Newline {
    /// Creates the rules for turns that end with this token.
    ///
    /// # Errors
    /// If the tokenizer does not have the token or the newline as one token.
    pub(super) fn after(tokenizer: &Tokenizer, end: &str) -> Result<Box<dyn FamilyTokenRules>> {
        Ok(Box::new(Self { end: tokenizer.single(end)?, newline: tokenizer.single("\n")? }))
    }
}

impl FamilyTokenRules for Newline {
    fn boundary(&self, at: &TurnBoundary, mut context: Vec<u32>) -> Appended {
        if at.ids.last() == Some(&self.end) {
            context.insert(0, self.newline);
        }
        Appended { remove: 0, ids: context }
    }
}
