//! Preference pairs that teach nothing, and both of whose responses become unlikely.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, beginning, ending, mean};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const SAME_PAIRS: Check = Check {
    name: "pairs",
    phases: AFTER,
    reads: "`train/loss`, `grad_norm`, margins and log-probabilities of a preference run",
    number: "share of steps with the loss of equal responses; without one, the fall of the chosen log-probability in nats",
    threshold: "loss 0.6931 with a gradient below 1e-5: above 0.02 warns, from 0.2 fails; both fall by 50 nats: warns",
    source: "ln 2 = 0.6931 is the loss of two equal answers; runs on such pairs have gradients near 1e-7",
    meaning: "Chosen and rejected are the same after rendering and cutting, or both become unlikely.",
    remedy: "Check the keys of chosen and rejected, and {max_length}; if both become unlikely, lower {lr} or add an NLL term.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::made_up(
        40,
        &[("train/loss", |_| std::f64::consts::LN_2), ("train/grad_norm", |_| 1e-7), ("train/rewards/margins", |_| 0.0)],
    )
}

fn judge(evidence: &Evidence) -> Finding {
    let is_pairs = ["train/rewards/margins", "train/margin"].iter().any(|name| !evidence.series(name).is_empty());
    let losses = evidence.series("train/loss");
    let gradients = evidence.first_of(&["train/grad_norm", "actor/grad_norm"]).map(|(_, series)| series).unwrap_or_default();
    if !is_pairs || losses.is_empty() {
        return Finding::not_applicable("the run does not learn from pairs");
    }
    let is_equal = |loss: f64, norm: f64| (loss - std::f64::consts::LN_2).abs() < 1e-4 && norm < 1e-5;
    let equal = losses.iter().zip(&gradients).filter(|((_, loss), (_, norm))| is_equal(*loss, *norm)).count();
    let share = equal as f64 / losses.len() as f64;
    let sentence = format!("{equal} of {} steps have the loss of two equal responses, 0.6931, and no gradient", losses.len());
    match share {
        0.2.. => return Finding::fail(share, sentence),
        _ if share > 0.02 => return Finding::warn(share, sentence),
        _ => {}
    }
    let fall = |name: &str| {
        let series = evidence.series(name);
        mean(beginning(&series, 3)) - mean(ending(&series, 3))
    };
    let (chosen, rejected) = (fall("train/logps/chosen"), fall("train/logps/rejected"));
    if chosen > 50.0 && rejected > 50.0 {
        let sentence =
            format!("chosen and rejected fell by {} and {} nats: both become unlikely", short(chosen), short(rejected));
        return Finding::warn(chosen, sentence);
    }
    Finding::pass(share, "the pairs differ")
}
