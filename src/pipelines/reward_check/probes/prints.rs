//! The function prints during calls.

use super::super::bench::OutOfTime;
use super::super::probe::{Probe, ProbeResult};
use super::super::study::Study;

pub(super) const PROBE: Probe = Probe {
    name: "prints",
    meaning: "Millions of lines fill the log and slow the run.",
    remedy: "Remove the output, or write it at a low level of logging.",
    judge,
};

fn judge(study: &Study) -> Result<ProbeResult, OutOfTime> {
    let Some(lines) = study.bench.printed_lines() else {
        return Ok(ProbeResult::pass(0.0, "functions of this program print nothing"));
    };
    let calls = study.bench.record().len();
    let sentence = format!("{lines} lines printed in {calls} calls");
    Ok(if lines == 0 { ProbeResult::pass(0.0, sentence) } else { ProbeResult::warn(lines as f64, sentence) })
}
