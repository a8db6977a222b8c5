//! The times of a whole step, per token too, its throughput and the memory in use: `timing_per_token_ms/*`, `perf/*`.

use crate::job::clock::{Clock, resident_gib};
use crate::job::device_memory::DeviceMemory;
use crate::trainer::batch::Batch;
use crate::trainer::batch::columns::Column;
use burnish_distributed::Ranks;
use burnish_tracking::Metrics;

/// The times of a whole training step, per token too, its throughput and the memory in use.
///
/// `timing_per_token_ms/gen` is per response token, the others per prompt and response token (verl's
/// `compute_timing_metrics`). Times and memory are those of rank 0. `perf/throughput` is that of one process, as verl's is that of one
/// GPU. `perf/max_memory_allocated_gb` is the peak since the start, of the GPU's memory where there is one, else of the process's
/// resident memory.
pub fn of_step(clock: &Clock, batch: &Batch, gpu: Option<&DeviceMemory>, ranks: &Ranks, metrics: &mut Metrics) {
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
    match gpu.map(DeviceMemory::peaks_gib) {
        Some([allocated, reserved]) => {
            metrics.set("perf/max_memory_allocated_gb", allocated);
            metrics.set("perf/max_memory_reserved_gb", reserved);
        }
        None => metrics.extend(resident_gib("VmHWM").map(|peak| ("perf/max_memory_allocated_gb", peak))),
    }
    metrics.extend(resident_gib("VmRSS").map(|now| ("perf/cpu_memory_used_gb", now)));
}
