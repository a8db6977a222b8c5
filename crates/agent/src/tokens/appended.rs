//! What is appended to the tokens of a conversation.

/// What is to be appended to a conversation's ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Appended {
    /// The number of ids that are taken off the end first.
    pub remove: usize,
    /// The ids behind that, none of them sampled.
    pub ids: Vec<u32>,
}
