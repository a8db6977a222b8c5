//! One sequence of supervised fine-tuning.

/// One sequence. `loss_mask[t]` is true if predicting `ids[t]` is learnt; both have the same length.
#[derive(Clone, Debug, PartialEq)]
pub struct SftExample {
    pub ids: Vec<u32>,
    pub loss_mask: Vec<bool>,
}
