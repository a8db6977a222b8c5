//! Steps that become slower.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, MetricRow, ending, median};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const SPEED: Check = Check {
    name: "speed",
    phases: AFTER,
    reads: "`timing_s/step` without validation and saving, `perf/total_num_tokens`, and the other `timing_s`",
    number: "tokens per second of the last five steps as a share of steps 3 to 10",
    threshold: "below 0.5 at a similar length, in runs of at least 20 steps, warns",
    source: "sound runs stay within 20 % of their median; a run whose reward function keeps every response passed this bound",
    meaning: "Something grows with the number of steps, such as a list in a reward function.",
    remedy: "Look at the phase that grew, for lists that are never cleared and services that slow down.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::made_up(40, &[("timing_s/step", |s| s), ("timing_s/reward", |s| s - 0.5), ("perf/total_num_tokens", |_| 1000.0)])
}

const TOKENS: &str = "perf/total_num_tokens";

fn judge(evidence: &Evidence) -> Finding {
    let rates: Vec<(u64, f64)> = evidence.rows.iter().filter_map(|row| Some((row.step, rate(row)?))).collect();
    if rates.len() < 20 {
        return Finding::not_applicable("fewer than 20 steps have a time and a number of tokens");
    }
    let (early, late) = (&rates[2..10], ending(&rates, 5));
    let share = median(late) / median(early);
    let lengths = evidence.series(TOKENS);
    let similar = median(ending(&lengths, 5)) / median(&lengths[2..10.min(lengths.len())]);
    let sentence = format!("{} tokens a second; steps 3 to 10 had {}", short(median(late)), short(median(early)));
    if share >= 0.5 || !(0.67..1.5).contains(&similar) {
        return Finding::pass(share, sentence);
    }
    Finding::warn(share, format!("{sentence}. {}", grown(evidence)))
}

/// Returns the tokens per second of a step.
fn rate(row: &MetricRow) -> Option<f64> {
    let seconds = |name: &str| row.values.get(name).copied().unwrap_or_default();
    let step = seconds("timing_s/step") - seconds("timing_s/testing") - seconds("timing_s/save_checkpoint");
    Some(row.values.get(TOKENS)? / step).filter(|rate| rate.is_finite() && *rate > 0.0)
}

/// Names the phase whose time grew most.
fn grown(evidence: &Evidence) -> String {
    let names = evidence.rows.iter().flat_map(|row| row.values.keys());
    let mut phases: Vec<&String> = names.filter(|name| name.matches('/').count() == 1 && name.starts_with("timing_s/")).collect();
    phases.sort();
    phases.dedup();
    let others = ["timing_s/step", "timing_s/testing", "timing_s/save_checkpoint"];
    let growth = phases.into_iter().filter(|name| !others.contains(&name.as_str())).map(|name| {
        let times = evidence.series(name);
        let (early, late) = (median(&times[..10.min(times.len())]), median(ending(&times, 5)));
        (name, early, late)
    });
    growth
        .max_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)))
        .map_or(String::new(), |(name, early, late)| format!("{name} grew from {} to {} s", short(early), short(late)))
}
