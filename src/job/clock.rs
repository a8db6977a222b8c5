//! Wall-clock times of the phases of a step, `timing_s/*`.

use std::time::{Duration, Instant};

use burnish_run::RunStage;
use burnish_tracking::Metrics;

/// Measures the phases of a step.
pub struct StepClock {
    stage: RunStage,
    start: Instant,
    phases: Vec<(&'static str, f64)>,
}

impl StepClock {
    /// Starts the clock. `stage` gets the name of each phase.
    pub fn start(stage: &RunStage) -> Self {
        Self { stage: stage.clone(), start: Instant::now(), phases: Vec::new() }
    }

    /// Runs a phase, and adds its time to earlier time of the same phase.
    pub fn time<T>(&mut self, phase: &'static str, run: impl FnOnce() -> T) -> T {
        self.stage.enter(phase);
        let start = Instant::now();
        let result = run();
        let seconds = start.elapsed().as_secs_f64();
        match self.phases.iter_mut().find(|(name, _)| *name == phase) {
            Some((_, total)) => *total += seconds,
            None => self.phases.push((phase, seconds)),
        }
        result
    }

    /// Moves a part of the time of one phase to another.
    pub fn shift(&mut self, from: &'static str, to: &'static str, part: Duration) {
        if self.seconds(to).is_none() {
            self.phases.push((to, 0.0));
        }
        for (phase, seconds) in &mut self.phases {
            match *phase {
                phase if phase == from => *seconds -= part.as_secs_f64(),
                phase if phase == to => *seconds += part.as_secs_f64(),
                _ => {}
            }
        }
    }

    pub fn seconds(&self, phase: &str) -> Option<f64> {
        self.phases.iter().find(|(name, _)| *name == phase).map(|(_, seconds)| *seconds)
    }

    /// Reports `timing_s/PHASE` for every phase.
    pub fn report(&self, metrics: &mut Metrics) {
        metrics.extend(self.phases.iter().map(|(phase, seconds)| (format!("timing_s/{phase}"), *seconds)));
    }

    /// Phases so far, with their seconds.
    pub(crate) fn phases(&self) -> &[(&'static str, f64)] {
        &self.phases
    }

    /// Seconds since the start.
    pub fn elapsed(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }
}
