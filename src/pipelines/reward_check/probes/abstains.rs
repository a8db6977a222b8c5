//! Responses for which a function gives no score.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "abstains",
    meaning: "A function that gives no score has no part in training, at any weight.",
    remedy: "Return a number, or take the function out of reward_model.reward_functions.",
    judge,
};

/// Share of responses without a score that causes a warning.
const MANY: f64 = 0.5;

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let (mut worst, mut of) = (0.0, None);
    for (at, name) in study.bench.rewards().names().into_iter().enumerate() {
        let parts: Vec<_> = study.samples.iter().filter_map(|sample| Some((sample, *sample.answer.parts.get(at)?))).collect();
        let none: Vec<_> = parts.iter().filter(|(_, part)| part.is_none()).collect();
        let share = none.len() as f64 / parts.len().max(1) as f64;
        if share > worst {
            worst = share;
            of = none
                .first()
                .map(|(sample, _)| (*sample, format!("{name} gives no score to {} of {} responses", none.len(), parts.len())));
        }
    }
    let Some((sample, sentence)) = of else {
        return Ok(Finding::pass(0.0, "every function gives a score to every response"));
    };
    if worst < MANY {
        return Ok(Finding::pass(worst, sentence));
    }
    let judged = if worst == 1.0 { Finding::fail } else { Finding::warn };
    Ok(judged(Some(worst), sentence).shown_by(&study.rows[sample.attempt.row].place, &sample.attempt.text))
}
