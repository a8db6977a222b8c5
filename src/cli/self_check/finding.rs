//! The result of a check.

/// A fact about this machine, with advice if something should change.
#[derive(Debug)]
pub(super) struct Finding {
    pub found: String,
    /// Advice that belongs to a problem.
    pub advice: Option<String>,
}

impl Finding {
    pub(super) fn ok(found: impl Into<String>) -> Self {
        Self { found: found.into(), advice: None }
    }

    pub(super) fn problem(found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { found: found.into(), advice: Some(advice.into()) }
    }

    pub(super) fn is_ok(&self) -> bool {
        self.advice.is_none()
    }
}
