//! Example-1B: a newline after `<|eot|>`.

use super::newline::Newline;
use crate::tokens::rules::TokenFamily;

pub(super) static FAMILY: TokenFamily = TokenFamily {
    model_types: &["example"],
    doc: "a newline after <|eot|>",
    rules: |tokenizer| Newline::after(tokenizer, "<|eot|>"),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_is_found_by_the_type_of_the_model() {
        assert_eq!(FAMILY.model_types, ["example"]);
    }
}
