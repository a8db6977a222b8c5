//! Services outside this process that scorers use. They are started before anything else, and only if a scorer of the run may
//! need them.

use super::math_verify::MathVerify;
use super::sandbox::Sandbox;

/// A service that a scorer or function uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewardService {
    /// A Sandbox Fusion service, which runs programs: `reward.sandbox_fusion.url`.
    Sandbox,
    /// math-verify in a Python process, which compares answers other than plain numbers.
    MathVerify,
    /// The scorer of each row's data source.
    Rules,
}

/// The services of a run.
#[derive(Default)]
pub struct Services {
    pub sandbox: Option<Sandbox>,
    pub math_verify: Option<MathVerify>,
}

impl Services {
    /// Returns true if any service is running.
    pub fn any(&self) -> bool {
        self.sandbox.is_some() || self.math_verify.is_some()
    }
}
