//! Supervised rows without a trained token.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const NO_TRAINED_TOKEN: Check = Check {
    name: "no trained token",
    phases: AFTER,
    reads: "`train/loss`, `grad_norm`, `train/trained_tokens`; of TRL also `epoch`, the batch and the number of rows",
    number: "share of steps without a trained token, or of rows that were left out",
    threshold: "above 0.02 warns, from 0.2 fails",
    source: "runs of TRL 1.16 with labels of -100, and with `max_length=5`: TRL drops such rows and says nothing",
    meaning: "The rows are cut before the answer begins, or every token is masked, so nothing is trained.",
    remedy: "Raise {max_length} above the longest prompt, and check which part of a row is trained.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::made_up(40, &[("train/loss", |_| 0.0), ("train/grad_norm", |_| 0.0)])
}

fn judge(evidence: &Evidence) -> Finding {
    if !evidence.series("critic/score/mean").is_empty() {
        return Finding::not_applicable("the run learns from scores");
    }
    let tokens = evidence.series("train/trained_tokens");
    let losses = evidence.series("train/loss");
    let gradients = evidence.first_of(&["train/grad_norm", "actor/grad_norm"]).map(|(_, series)| series).unwrap_or_default();
    let empty = match tokens.is_empty() {
        false => tokens.iter().filter(|(_, count)| *count == 0.0).count(),
        true => losses.iter().zip(&gradients).filter(|((_, loss), (_, norm))| *loss == 0.0 && *norm == 0.0).count(),
    };
    let steps = tokens.len().max(losses.len());
    if steps == 0 {
        return Finding::not_applicable("the metrics have no loss of a supervised run");
    }
    let share = empty as f64 / steps as f64;
    let dropped = evidence.facts.dropped_rows.unwrap_or_default();
    let (share, sentence) = match dropped > share {
        true => {
            (dropped, format!("{} % of the rows were left out: epochs pass faster than rows", short((100.0 * dropped).round())))
        }
        false => (share, format!("{empty} of {steps} steps have no trained token: loss and gradient are 0")),
    };
    match share {
        0.2.. => Finding::fail(share, sentence),
        _ if share > 0.02 => Finding::warn(share, sentence),
        _ => Finding::pass(share, "every step has trained tokens"),
    }
}
