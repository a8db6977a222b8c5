//! The result of a check.

/// The judgement of a check. Later ones are worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The evidence lacks what the check reads, or the check has no meaning for such a run.
    NotApplicable,
    /// The time for checks was over.
    NotReached,
    /// Nothing to object to.
    Pass,
    /// Unusual, and sound runs may look like this.
    Warn,
    /// The run cannot learn, or its numbers mean something else than they seem to.
    Fail,
}

impl Verdict {
    /// Returns the word of the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotApplicable => "n/a",
            Self::NotReached => "not reached",
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// The judgement of a check with its number and its sentence.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The judgement.
    pub verdict: Verdict,
    /// The number that decided, if there is one.
    pub number: Option<f64>,
    /// A sentence with the number; the reason if the check does not apply.
    pub sentence: String,
    /// Advice in place of that of the check. Settings in braces are still to be named.
    pub remedy: Option<String>,
    /// The row, and the response to it, that show the finding.
    pub example: Option<(String, String)>,
}

impl Finding {
    fn new(verdict: Verdict, number: impl Into<Option<f64>>, sentence: impl Into<String>) -> Self {
        Self { verdict, number: number.into(), sentence: sentence.into(), remedy: None, example: None }
    }

    /// Returns a finding that judges nothing, for this reason.
    pub fn not_applicable(reason: impl Into<String>) -> Self {
        Self::new(Verdict::NotApplicable, None, reason)
    }

    /// Returns a finding that the time did not suffice for, for this reason.
    pub fn not_reached(reason: impl Into<String>) -> Self {
        Self::new(Verdict::NotReached, None, reason)
    }

    /// Returns a finding without an objection.
    pub fn pass(number: impl Into<Option<f64>>, sentence: impl Into<String>) -> Self {
        Self::new(Verdict::Pass, number, sentence)
    }

    /// Returns a warning.
    pub fn warn(number: impl Into<Option<f64>>, sentence: impl Into<String>) -> Self {
        Self::new(Verdict::Warn, number, sentence)
    }

    /// Returns a failure.
    pub fn fail(number: impl Into<Option<f64>>, sentence: impl Into<String>) -> Self {
        Self::new(Verdict::Fail, number, sentence)
    }

    /// Replaces the advice of the check.
    #[must_use]
    pub(crate) fn advise(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Adds the row and the response that show the finding.
    #[must_use]
    pub fn shown_by(mut self, place: &str, response: &str) -> Self {
        self.example = Some((place.to_owned(), response.to_owned()));
        self
    }
}
