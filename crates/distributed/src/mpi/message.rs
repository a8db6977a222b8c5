//! The small messages between rank 0 and the others.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What rank 0 and another rank tell each other.
#[derive(Serialize, Deserialize)]
pub enum Message {
    /// The sender is at work and will come.
    Beat,
    /// A rank has come to a call.
    Arrived(Arrival),
    /// All ranks have come to the call of this number.
    Go(u64),
}

/// The call that a rank has come to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Arrival {
    /// The calls that this rank made before.
    pub number: u64,
    pub call: Call,
}

/// A call, with what must be the same on all ranks, but for the end, which each comes to in its own way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    Exchange,
    AllGather { bytes: u64 },
    Broadcast { bytes: u64, root: usize },
    End { code: u8, message: String },
}

impl Arrival {
    /// True if two ranks have come to the same call.
    pub fn agrees(&self, other: &Self) -> bool {
        let both_end = matches!((&self.call, &other.call), (Call::End { .. }, Call::End { .. }));
        self.number == other.number && (both_end || self.call == other.call)
    }

    /// The exit code and the message of a rank that ends because it has failed.
    pub fn failure(&self) -> Option<(u8, &str)> {
        match &self.call {
            Call::End { code, message } if *code != 0 => Some((*code, message)),
            _ => None,
        }
    }
}

impl fmt::Display for Arrival {
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
