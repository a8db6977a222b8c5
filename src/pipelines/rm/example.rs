//! A row of a reward model in tokens.

use crate::pipelines::stage::StageExample;
use burnish_algorithm::ranking::StepTarget;
use burnish_data::examples::TokenizedPair;
use burnish_model::Sequence;

/// A row in tokens.
#[derive(Clone, Debug)]
pub enum RmExample {
    Pair(TokenizedPair),
    Steps(StepExample),
}

/// A text with steps.
#[derive(Clone, Debug)]
pub struct StepExample {
    pub ids: Vec<u32>,
    /// The positions of the judged tokens, in rising order; at least one.
    pub at: Vec<usize>,
    /// The judgement of each.
    pub targets: Vec<StepTarget>,
}

impl StageExample for RmExample {
    /// Both sides of a pair with their prompt, or the text.
    fn sequences(&self) -> Vec<Sequence<'_>> {
        match self {
            Self::Pair(pair) => pair.sides().map(|(prompt, response)| Sequence::new(prompt, response)).to_vec(),
            Self::Steps(text) => vec![text.sequence()],
        }
    }

    /// The margin of a pair, or the judged positions of a text and their judgements.
    fn targets(&self) -> Vec<f64> {
        match self {
            Self::Pair(pair) => pair.margin.into_iter().collect(),
            Self::Steps(text) => {
                let at = text.at.iter().map(|&at| at as f64);
                let judged = text.targets.iter().flat_map(|target| match *target {
                    StepTarget::Class(label) => vec![label as f64],
                    StepTarget::Shares(shares) => shares.to_vec(),
                });
                at.chain(judged).collect()
            }
        }
    }
}

impl RmExample {
    /// Returns the text with steps, unless this is a pair.
    pub fn text(&self) -> Option<&StepExample> {
        match self {
            Self::Pair(_) => None,
            Self::Steps(text) => Some(text),
        }
    }
}

impl StepExample {
    pub fn sequence(&self) -> Sequence<'_> {
        let (prompt, response) = self.ids.split_at(1);
        Sequence::new(prompt, response)
    }
}
