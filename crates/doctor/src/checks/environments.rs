//! Conversations that fail.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, ending, mean};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const ENVIRONMENTS: Check = Check {
    name: "environments",
    phases: AFTER,
    reads: "`agent/end/failed`, `agent/end/timeout`, `tools/failure_frequency`",
    number: "share of conversations or calls that failed, of the last five steps",
    threshold: "above 0.05 warns, from 0.5 fails; failed calls of tools warn from 0.5",
    source: "prime-rl's page about training: a lasting share above 5 % points to a fault",
    meaning: "The program around the model fails, and the model is trained on its failures.",
    remedy: "Read trainer.log for the messages, and give tools and environments more time or memory.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::made_up(30, &[("agent/end/failed", |_| 0.55), ("agent/end/timeout", |_| 0.1)])
}

fn judge(evidence: &Evidence) -> Finding {
    let share = |name: &str| mean(ending(&evidence.series(name), 5));
    let ended = share("agent/end/failed") + share("agent/end/timeout");
    let calls = share("tools/failure_frequency");
    if evidence.series("agent/end/failed").is_empty() && evidence.series("tools/failure_frequency").is_empty() {
        return Finding::not_applicable("the run has no conversations");
    }
    let sentence = format!("{} % of conversations failed, {} % of tool calls", short(100.0 * ended), short(100.0 * calls));
    match ended {
        0.5.. => Finding::fail(ended, sentence),
        _ if ended > 0.05 || calls >= 0.5 => Finding::warn(ended.max(calls), sentence),
        _ => Finding::pass(ended, sentence),
    }
}
