//! The entries of a record.

use serde::{Deserialize, Serialize};

use crate::Episode;
use crate::tools::Answer;

/// What the conversations of a record came from: a record is of use to a run that begins from the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Base {
    /// The first step that was sampled.
    pub step: u64,
    /// A checksum of the weights that it was sampled with.
    pub weights: String,
    /// Checksums of the settings, of the data and of the files that the settings name, and the schemas of tools.
    pub settings: String,
    /// The version of this program.
    pub version: String,
}

/// One entry of a record. The first is a [`Base`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Entry {
    Base(Base),
    /// A conversation that has ended, by its name.
    Ended {
        step: u64,
        conversation: String,
        episode: Box<Episode>,
    },
    /// The answers to the calls of one turn.
    Answered {
        step: u64,
        conversation: String,
        turn: Turn,
    },
}

impl Entry {
    /// The step in which it was recorded; `None` for the base.
    pub fn step(&self) -> Option<u64> {
        match self {
            Self::Base(_) => None,
            Self::Ended { step, .. } | Self::Answered { step, .. } => Some(*step),
        }
    }
}

/// The answers to the calls of one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Turn {
    /// The number of turns with such calls before it.
    pub number: usize,
    /// A checksum of the calls.
    pub calls: u32,
    pub answers: Vec<Answer>,
}
