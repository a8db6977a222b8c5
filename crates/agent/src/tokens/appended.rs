//! Tokens to append to a conversation.

/// Tokens to append to a conversation's ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Appended {
    /// The number of ids to remove from the end first.
    pub remove: usize,
    /// The ids to append; the model did not sample any of them.
    pub ids: Vec<u32>,
}
