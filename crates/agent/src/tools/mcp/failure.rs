//! The reason why a request has no answer.

/// A request without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server answered with an error, or with what is no answer; its words.
    Refused(String),
    /// There was no answer within the time.
    Late,
    /// There is no link any more, for this reason. `delivered` is true if the server may have got the request and carried it out.
    Gone { why: String, delivered: bool },
    /// The run was asked to stop.
    Interrupted,
}

impl Failure {
    /// The end of a link before a request went out.
    pub fn not_there(why: impl Into<String>) -> Self {
        Self::Gone { why: why.into(), delivered: false }
    }

    /// The failure in words, after the name of the server. `seconds` is the time that there was.
    pub fn words(&self, seconds: f64) -> String {
        match self {
            Self::Refused(words) => format!("answers: {words}"),
            Self::Late => format!("does not answer within {seconds} s"),
            Self::Gone { why, .. } => why.clone(),
            Self::Interrupted => "was not waited for, because the run was asked to stop".to_owned(),
        }
    }
}
