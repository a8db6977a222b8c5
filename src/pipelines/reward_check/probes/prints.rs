//! The function prints during calls.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "prints",
    meaning: "Millions of lines fill the log and slow the run.",
    remedy: "Remove the output, or write it at a low level of logging.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let Some(lines) = study.bench.printed_lines() else {
        return Ok(Finding::pass(0.0, "functions of this program print nothing"));
    };
    let calls = study.bench.record().len();
    let sentence = format!("{lines} lines printed in {calls} calls");
    Ok(if lines == 0 { Finding::pass(0.0, sentence) } else { Finding::warn(lines as f64, sentence) })
}
