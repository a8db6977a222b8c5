//! GLM 4 and later: the token that ends a turn also opens the next message.

use anyhow::Result;

use crate::tokens::appended::Appended;
use crate::tokens::rules::{FamilyTokenRules, TokenFamily, TurnBoundary};
use burnish_data::Tokenizer;

/// Matches verl 0.9.1 (`GLMContinuousTokenBuilder`), which lacks `glm` and `glm4`.
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &["glm", "glm4", "glm4_moe", "glm_moe_dsa", "glm4v", "glm4v_moe"],
    doc: "an <|observation|> or <|user|> that ends a turn is replaced by the next message's",
    rules: |tokenizer| Ok(Box::new(Glm::new(tokenizer)?)),
};

struct Glm {
    openers: [u32; 2],
}

impl Glm {
    fn new(tokenizer: &Tokenizer) -> Result<Self> {
        Ok(Self { openers: [tokenizer.single("<|observation|>")?, tokenizer.single("<|user|>")?] })
    }
}

impl FamilyTokenRules for Glm {
    fn boundary(&self, at: &TurnBoundary, context: Vec<u32>) -> Appended {
        let remove = usize::from(at.ids.last().is_some_and(|last| self.openers.contains(last)));
        Appended { remove, ids: context }
    }
}
