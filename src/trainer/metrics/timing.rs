//! The times of a step, also per token, its throughput and its memory: `timing_per_token_ms/*`, `perf/*`.

use crate::job::clock::StepClock;
use crate::job::device_memory::DeviceMemory;
use crate::job::memory_estimate::GIB;
use crate::trainer::batch::Batch;
use crate::trainer::batch::columns::Column;
use burnish_distributed::Ranks;
use burnish_tracking::Metrics;
use burnish_util::platform::{own_memory, peak_memory};

/// Adds the times of a step, also per token, its throughput and its memory.
///
/// `timing_per_token_ms/gen` is per response token, the others are per prompt and response token (verl's
/// `compute_timing_metrics`). Times and memory are rank 0's. `perf/throughput` is per rank, as verl's is per GPU.
/// `perf/max_memory_allocated_gb` is the peak since the start: of the GPU's memory, or of the process's resident memory without a
/// GPU.
pub(crate) fn of_step(clock: &StepClock, batch: &Batch, gpu: Option<&DeviceMemory>, ranks: &Ranks, metrics: &mut Metrics) {
    let step = clock.elapsed();
    clock.report(metrics);
    metrics.set("timing_s/step", step);
    let total = batch.total_tokens() as f64;
    for (phase, seconds) in clock.phases() {
        let tokens = match *phase {
            "gen" => batch[Column::Mask].len() as f64,
            "ref" | "values" | "adv" | "update_critic" | "update_actor" => total,
            _ => continue,
        };
        metrics.set(format!("timing_per_token_ms/{phase}"), seconds * 1000.0 / tokens.max(1.0));
    }
    metrics.set("perf/total_num_tokens", total);
    metrics.set("perf/time_per_step", step);
    metrics.set("perf/throughput", total / step / ranks.size() as f64);
    let gib = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / GIB);
    match gpu.map(DeviceMemory::peaks_gib) {
        Some([allocated, reserved]) => {
            metrics.set("perf/max_memory_allocated_gb", allocated);
            metrics.set("perf/max_memory_reserved_gb", reserved);
        }
        None => metrics.extend(gib(peak_memory()).map(|peak| ("perf/max_memory_allocated_gb", peak))),
    }
    metrics.extend(gib(own_memory()).map(|now| ("perf/cpu_memory_used_gb", now)));
}
