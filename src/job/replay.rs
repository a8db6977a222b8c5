//! Steps of an earlier run, made again from its checkpoint and with its settings, without a record.

use std::ops::RangeInclusive;

use anyhow::Result;

use super::pipeline::Pipeline;
use super::probe::{ProbedStep, StepProbe};
use super::run::Run;
use burnish_tracking::Metrics;

/// The steps of a replay.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// Last step.
    pub until: u64,
    /// Steps that are looked into.
    pub probed: RangeInclusive<u64>,
    /// Steps that are validated if the run validated them.
    pub validated: RangeInclusive<u64>,
    /// True to validate each of these steps, also if the run did not.
    pub validates_all: bool,
    /// True to save the state after the last step.
    pub saves: bool,
}

/// A step that was made again.
pub struct ReplayedStep {
    pub step: u64,
    /// Its row, under the names of the run.
    pub row: Metrics,
    /// The inside of a probed step.
    pub inside: Option<ProbedStep>,
}

impl<P: Pipeline> Run<P> {
    /// Makes the steps after the checkpoint again, up to the last of the plan, and returns them. Validations before the first
    /// validated step are left out: no later row depends on them.
    ///
    /// # Errors
    /// The errors of a step.
    pub fn replay(mut self, plan: &ReplayPlan) -> Result<Vec<ReplayedStep>> {
        let mut steps = Vec::new();
        self.at.progress.start(self.at.step, plan.until);
        while self.at.step < plan.until {
            self.at.step += 1;
            let step = self.at.step;
            self.at.record.stage().step(step);
            self.at.probe = plan.probed.contains(&step).then(StepProbe::default);
            let mut row = self.pipeline.step(&mut self.at)?;
            let inside = self.at.probe.take().map(StepProbe::into_step);
            let is_due = plan.validates_all || self.at.settings.validates_at(step);
            if self.pipeline.validates() && is_due && plan.validated.contains(&step) {
                row.extend(self.pipeline.validate(&mut self.at)?);
            }
            self.pipeline.complete(&mut row);
            self.at.progress.update(step, self.pipeline.headline(&row), row.get("perf/throughput").unwrap_or(0.0));
            steps.push(ReplayedStep { step, row: self.pipeline.renamed(row), inside });
        }
        self.at.progress.finish();
        if plan.saves {
            self.save()?;
        }
        Ok(steps)
    }
}
