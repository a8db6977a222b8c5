//! The entries of a record.

use serde::{Deserialize, Serialize};

use crate::Episode;
use crate::tools::ToolResult;

/// The state from which the recorded conversations began. A run can use a record only if it begins from the same state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordBase {
    /// The first sampled step.
    pub step: u64,
    /// A checksum of the weights.
    pub weights: String,
    /// Checksums of the settings, the data and the files that the settings name, and the schemas of tools.
    pub settings: String,
    /// The version of this program.
    pub version: String,
}

/// One entry of a record. The first is the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Entry {
    Base(RecordBase),
    /// A finished conversation, by its name.
    Ended {
        step: u64,
        conversation: String,
        episode: Box<Episode>,
    },
    /// The tool results of one turn.
    Answered {
        step: u64,
        conversation: String,
        turn: RecordedTurn,
    },
}

impl Entry {
    /// Returns the step of the entry; `None` for the base.
    pub(super) fn step(&self) -> Option<u64> {
        match self {
            Self::Base(_) => None,
            Self::Ended { step, .. } | Self::Answered { step, .. } => Some(*step),
        }
    }
}

/// The tool results of one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedTurn {
    /// The number of earlier turns with such calls.
    pub number: usize,
    /// A checksum of the calls.
    pub calls: u32,
    pub answers: Vec<ToolResult>,
}
