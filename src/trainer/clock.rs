//! Wall-clock times of the phases of a step, and the memory of the process: `timing_s/*`, `timing_per_token_ms/*`, `perf/*`.

use std::time::{Duration, Instant};

use super::batch::Batch;
use super::columns::Column;
use super::device_memory::DeviceMemory;
use crate::run::Stage;
use crate::tracking::Metrics;

pub struct Clock {
    stage: Stage,
    start: Instant,
    phases: Vec<(&'static str, f64)>,
}

impl Clock {
    /// `stage` is told of every phase.
    pub fn start(stage: &Stage) -> Self {
        Self { stage: stage.clone(), start: Instant::now(), phases: Vec::new() }
    }

    /// Runs a phase and remembers how long it took, beside what the same phase took before.
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

    /// Counts a part of what a phase took as another's.
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

    /// `timing_s/PHASE` of every phase.
    pub fn report(&self, metrics: &mut Metrics) {
        metrics.extend(self.phases.iter().map(|(phase, seconds)| (format!("timing_s/{phase}"), *seconds)));
    }

    /// The times of a whole training step, per token too, its throughput and the memory in use.
    ///
    /// `timing_per_token_ms/gen` is per response token, the others per prompt and response token (verl's
    /// `compute_timing_metrics`). `perf/max_memory_allocated_gb` is the peak since the start, of the GPU's memory where there is one,
    /// else of the process's resident memory.
    pub fn report_step(&self, batch: &Batch, gpu: Option<&DeviceMemory>, metrics: &mut Metrics) {
        let step = self.start.elapsed().as_secs_f64();
        self.report(metrics);
        metrics.set("timing_s/step", step);
        let total = batch.total_tokens() as f64;
        for (phase, seconds) in &self.phases {
            let tokens = match *phase {
                "gen" => batch[Column::Mask].len() as f64,
                "ref" | "values" | "adv" | "update_critic" | "update_actor" => total,
                _ => continue,
            };
            metrics.set(format!("timing_per_token_ms/{phase}"), seconds * 1000.0 / tokens.max(1.0));
        }
        metrics.set("perf/total_num_tokens", total);
        metrics.set("perf/time_per_step", step);
        metrics.set("perf/throughput", total / step);
        match gpu.map(DeviceMemory::peaks_gib) {
            Some([allocated, reserved]) => {
                metrics.set("perf/max_memory_allocated_gb", allocated);
                metrics.set("perf/max_memory_reserved_gb", reserved);
            }
            None => metrics.extend(resident_gib("VmHWM").map(|peak| ("perf/max_memory_allocated_gb", peak))),
        }
        metrics.extend(resident_gib("VmRSS").map(|now| ("perf/cpu_memory_used_gb", now)));
    }
}

/// A memory figure of this process in GiB, where /proc has it.
pub(super) fn resident_gib(field: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / (1024.0 * 1024.0))
}
