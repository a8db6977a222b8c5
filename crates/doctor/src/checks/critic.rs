//! A critic that explains nothing.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, ending, largest, mean};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const CRITIC: Check = Check {
    name: "critic",
    phases: AFTER,
    reads: "`critic/vf_explained_var`",
    number: "mean explained variance of the last 20 steps",
    threshold: "0 or less in each of the last 20 steps, after 20 others, warns",
    source: "a rule of thumb: a critic explains more than 0.3 after its warm-up",
    meaning: "The critic predicts returns worse than their mean does, so the advantages are noise.",
    remedy: "Raise critic.optim.lr, and give the critic a start with trainer.critic_warmup.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::made_up(60, &[("critic/vf_explained_var", |_| -0.1)])
}

const STEPS: usize = 20;

fn judge(evidence: &Evidence) -> Finding {
    let series = evidence.series("critic/vf_explained_var");
    if series.len() < 2 * STEPS {
        return Finding::not_applicable("the run has no critic, or fewer than 40 steps");
    }
    let last = ending(&series, STEPS);
    let explained = mean(last);
    let sentence = format!("the critic explains {} of the variance of returns", short(explained));
    let is_useless = largest(last).is_some_and(|(_, most)| most <= 0.0);
    if is_useless { Finding::warn(explained, sentence) } else { Finding::pass(explained, sentence) }
}
