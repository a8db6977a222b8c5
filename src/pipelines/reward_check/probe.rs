//! An entry of the registry of probes, and its result.

use super::bench::OutOfTime;
use super::study::Study;

/// The judgement of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeVerdict {
    /// The rows or the functions give no answer to the question.
    NotJudged,
    /// The time was over.
    NotReached,
    Pass,
    Warn,
    Fail,
}

impl ProbeVerdict {
    /// Returns the word of the output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotJudged => "n/a",
            Self::NotReached => "not reached",
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// The judgement of a probe, with what shows it.
#[derive(Clone, Debug)]
pub(crate) struct ProbeResult {
    pub(crate) verdict: ProbeVerdict,
    pub(crate) number: Option<f64>,
    /// A sentence with the number, or the reason why nothing was judged.
    pub(crate) sentence: String,
    /// The row, and the response to it, that show the finding.
    pub(crate) example: Option<(String, String)>,
}

impl ProbeResult {
    pub(super) fn new(verdict: ProbeVerdict, number: impl Into<Option<f64>>, sentence: impl Into<String>) -> Self {
        Self { verdict, number: number.into(), sentence: sentence.into(), example: None }
    }

    pub(super) fn not_judged(reason: impl Into<String>) -> Self {
        Self::new(ProbeVerdict::NotJudged, None, reason)
    }

    pub(super) fn pass(number: impl Into<Option<f64>>, sentence: impl Into<String>) -> Self {
        Self::new(ProbeVerdict::Pass, number, sentence)
    }

    pub(super) fn warn(number: impl Into<Option<f64>>, sentence: impl Into<String>) -> Self {
        Self::new(ProbeVerdict::Warn, number, sentence)
    }

    pub(super) fn fail(number: impl Into<Option<f64>>, sentence: impl Into<String>) -> Self {
        Self::new(ProbeVerdict::Fail, number, sentence)
    }

    /// Adds the row and the text that show the finding.
    pub(super) fn shown_by(self, place: &str, text: &str) -> Self {
        Self { example: Some((place.to_owned(), text.to_owned())), ..self }
    }
}

/// One weakness that a reward function may have.
pub(crate) struct Probe {
    /// Name of the finding.
    pub(crate) name: &'static str,
    /// Consequence of a warning or a failure in training.
    pub(crate) meaning: &'static str,
    /// Advice for a warning or a failure.
    pub(crate) remedy: &'static str,
    pub(super) judge: fn(&Study) -> Result<ProbeResult, OutOfTime>,
}
