//! Tokens that the clip range takes out of the loss.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, ending, mean};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const CLIPPING: Check = Check {
    name: "clipping",
    phases: AFTER,
    reads: "`actor/pg_clipfrac`",
    number: "mean share of clipped tokens, of the last five steps",
    threshold: "above 0.35 warns, except for losses of whole responses",
    source: "PPO practice: 0.01 to 0.2; a rate far too high shows 0.07 to 0.14 and is not found by this number",
    meaning: "Many tokens have moved beyond the clip range before the step ends, and no longer count.",
    remedy: "Lower {lr}, or use fewer epochs and larger mini-batches.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::made_up(30, &[("actor/pg_clipfrac", |_| 0.52)])
}

fn judge(evidence: &Evidence) -> Finding {
    let series = evidence.series("actor/pg_clipfrac");
    let share = mean(ending(&series, 5));
    let loss = evidence.setting("loss_mode").or_else(|| evidence.setting("importance_sampling_level"));
    let by_sequence = loss.and_then(|value| value.as_str()).is_some_and(|name| ["gspo", "sequence"].contains(&name));
    match series.len() {
        0 => Finding::not_applicable("the metrics have no share of clipped tokens"),
        _ if by_sequence => Finding::not_applicable("a loss of whole responses clips most of them"),
        _ if share > 0.35 => Finding::warn(share, format!("{} % of tokens are clipped", short((100.0 * share).round()))),
        _ => Finding::pass(share, format!("{} % of tokens are clipped", short((100.0 * share).round()))),
    }
}
