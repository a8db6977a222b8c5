//! Example: the Llama decoder with a bias on the q, k and v projections.

use super::Family;
use crate::config::DecoderConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "example",
    class: "Example",
    doc: "Example-1B: the Llama decoder with biases on q, k and v",
    read: |config| {
        config.only("use_sliding_window", false.into())?;
        let common = config.llama_like(config.usize("num_key_value_heads")?)?;
        Ok(DecoderConfig { qkv_bias: true, ..common })
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_begin_with_the_name_of_the_family() {
        assert_eq!((FAMILY.model_type, FAMILY.class), ("example", "Example"));
    }
}
