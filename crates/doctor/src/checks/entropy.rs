//! Entropy that collapses or explodes.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, beginning, ending, largest, mean};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const ENTROPY: Check = Check {
    name: "entropy",
    phases: AFTER,
    reads: "`actor/entropy`, `critic/score/mean`, `response/truncated_ratio`",
    number: "entropy of the last three steps as a share of that of the first five",
    threshold: "below 0.1 fails if the score is flat over ten steps and not at its best; below 0.1 or above 3 warns",
    source: "sound runs end at 0.7 to 1.3, a collapse at 0.005; GRPO without KL may spend 73 % in 200 updates ([2505.22617](https://arxiv.org/abs/2505.22617))",
    meaning: "Near 0, all samples of a prompt are the same; far above the beginning, the responses are random.",
    remedy: "Lower {lr}, sample at temperature 1, give entropy_coeff no negative value, and clip higher (clip_ratio_high=0.28).",
    example,
    judge,
};

/// Share of the first entropy that is a collapse. Sound runs lose up to 73 % of it (arXiv 2505.22617).
const COLLAPSED: f64 = 0.1;

fn example() -> Evidence {
    Evidence::made_up(60, &[("actor/entropy", |s| 0.2 / (1.0 + s)), ("critic/score/mean", |s| if s < 9.0 { 0.6 } else { 0.4 })])
}

fn judge(evidence: &Evidence) -> Finding {
    let series = evidence.series("actor/entropy");
    if evidence.series("critic/score/mean").is_empty() {
        return Finding::not_applicable("the run does not learn from scores");
    }
    if series.len() < 6 {
        return Finding::not_applicable("fewer than six steps have an entropy");
    }
    let (first, last) = (mean(beginning(&series, 5)), mean(ending(&series, 3)));
    if first <= 0.0 {
        return Finding::not_applicable("the entropy is 0 from the beginning");
    }
    let share = last / first;
    let sentence = format!("the entropy went from {} to {} nats a token", short(first), short(last));
    if share > 3.0 {
        return Finding::warn(share, format!("{sentence}: responses become random"))
            .advise("Read the last responses. If they are broken text, lower {lr}, or add a KL term; go back to a checkpoint.");
    }
    if share >= COLLAPSED {
        return Finding::pass(share, sentence);
    }
    match progress(evidence) {
        Progress::Flat => Finding::fail(share, format!("{sentence}, and the score is flat: one answer is left")),
        Progress::Solved => Finding::warn(share, format!("{sentence}, with the score at its best")),
        Progress::Moving => Finding::warn(share, sentence),
    }
}

enum Progress {
    Moving,
    /// The last ten scores are equal, but for noise.
    Flat,
    /// They are, and they are the best of the run, and the responses end.
    Solved,
}

fn progress(evidence: &Evidence) -> Progress {
    let scores = evidence.series("critic/score/mean");
    let Some((_, best)) = largest(&scores) else { return Progress::Flat };
    let range = best - scores.iter().map(|(_, score)| *score).fold(f64::INFINITY, f64::min);
    let last = ending(&scores, 10);
    let (before, after) = last.split_at(last.len() / 2);
    if mean(after) - mean(before) > 0.1 * range {
        return Progress::Moving;
    }
    let is_cut = mean(ending(&evidence.series("response/truncated_ratio"), 3)) >= 0.3;
    let gained = mean(after) - mean(beginning(&scores, 5));
    if !is_cut && range > 0.0 && mean(after) >= best - 0.02 * range && gained > 0.0 { Progress::Solved } else { Progress::Flat }
}
