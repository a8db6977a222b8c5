//! The two APIs of OpenAI that are served.

/// The two APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Chat,
    Text,
}
