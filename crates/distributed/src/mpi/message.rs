//! Small messages between rank 0 and the other ranks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A message between rank 0 and another rank.
#[derive(Serialize, Deserialize)]
pub(super) enum RankMessage {
    /// The sender is working and will arrive.
    Beat,
    /// A rank has reached a call.
    Arrived(ReachedCall),
    /// All ranks have reached the call with this number.
    Go(u64),
}

/// The call that a rank has reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReachedCall {
    /// Number of calls that this rank made before.
    pub number: u64,
    pub call: Call,
}

/// A call with its parameters, which must be the same on all ranks, except for the parameters of the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Call {
    Exchange,
    AllGather { bytes: u64 },
    Broadcast { bytes: u64, root: usize },
    End { code: u8, message: String },
}

impl ReachedCall {
    /// Returns true if two ranks have reached the same call.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let both_end = matches!((&self.call, &other.call), (Call::End { .. }, Call::End { .. }));
        self.number == other.number && (both_end || self.call == other.call)
    }

    /// Returns the exit code and the message of a rank that ends because it has failed.
    pub(super) fn failure(&self) -> Option<(u8, &str)> {
        match &self.call {
            Call::End { code, message } if *code != 0 => Some((*code, message)),
            _ => None,
        }
    }
}

impl fmt::Display for ReachedCall {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.call {
            Call::Exchange => f.write_str("exchange")?,
            Call::AllGather { bytes } => write!(f, "all_gather of {bytes} bytes")?,
            Call::Broadcast { bytes, root } => write!(f, "broadcast of {bytes} bytes by rank {root}")?,
            Call::End { code, .. } => write!(f, "the end with exit code {code}")?,
        }
        write!(f, " (call {})", self.number)
    }
}
