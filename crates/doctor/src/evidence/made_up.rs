//! Made-up evidence, for the example on the page of a check and for tests.

use super::names::RunLibrary;
use super::of_run::Evidence;
use super::plan::PlanFacts;
use super::rows::MetricRow;
use crate::phase::CheckPhase;

/// A metric as a function of the step.
pub(crate) type Curve = (&'static str, fn(f64) -> f64);

impl Evidence {
    /// Returns evidence of a run with these metrics, from step 1 on.
    pub(crate) fn made_up(steps: u64, curves: &[Curve]) -> Self {
        let mut evidence = Self::new(CheckPhase::After, RunLibrary::Verl);
        evidence.rows = (1..=steps)
            .map(|step| {
                let values = curves.iter().map(|(name, value)| ((*name).to_owned(), value(step as f64))).collect();
                MetricRow { step, values }
            })
            .collect();
        evidence
    }

    /// Returns evidence about a configuration that has not run.
    pub(crate) fn planned(library: RunLibrary, plan: PlanFacts) -> Self {
        let mut evidence = Self::new(CheckPhase::Before, library);
        evidence.facts.plan = plan;
        evidence
    }
}
