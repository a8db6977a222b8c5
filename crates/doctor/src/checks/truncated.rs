//! Responses that the length limit cuts.

use burnish_util::number::short;

use crate::alarms::Alarm;
use crate::check::Check;
use crate::evidence::{Evidence, ending, mean};
use crate::finding::{Finding, Verdict};
use crate::phase::AFTER;

pub(super) const TRUNCATED: Check = Check {
    name: "responses cut",
    phases: AFTER,
    reads: "`response/truncated_ratio`; of verl `response_length/clip_ratio`, which also counts answers of exactly the limit",
    number: "share of responses that end by the length limit, in the last three steps",
    threshold: "from 0.3 warns, from 0.9 fails; verl's ratio only warns",
    source: "sound runs have less than 0.1; verl's ratio is 0.94 to 1 in a sound run whose answers have the limit's length",
    meaning: "A response that is cut has no end and often no answer, so it cannot be right.",
    remedy: "Raise {max_response}, or ask for shorter answers. If no response ends, check the end token and ignore_eos.",
    example,
    judge,
};

pub(super) const ALARM: Alarm = Alarm {
    check: &TRUNCATED,
    when: "fails, over 3 steps",
    rings: |evidence, finding| {
        let has_steps = evidence.first_of(NAMES).is_some_and(|(_, series)| series.len() >= STEPS);
        finding.verdict == Verdict::Fail && has_steps
    },
};

const NAMES: &[&str] = &["response/truncated_ratio", "response_length/clip_ratio"];

/// Steps whose mean decides.
const STEPS: usize = 3;

fn example() -> Evidence {
    let mut evidence = Evidence::made_up(30, &[("response/truncated_ratio", |_| 0.97)]);
    evidence.settings.insert("data.max_response_length".to_owned(), 8.into());
    evidence
}

fn judge(evidence: &Evidence) -> Finding {
    let Some((name, series)) = evidence.first_of(NAMES) else {
        return Finding::not_applicable("the metrics have no share of cut responses");
    };
    let share = mean(ending(&series, STEPS));
    let percent = short((100.0 * share).round());
    let limit = evidence.setting_number("max_response").map_or(String::new(), |limit| format!(" of {} tokens", short(limit)));
    match (share, name == NAMES[1]) {
        (0.3.., true) => {
            let sentence =
                format!("{percent} % of responses have the length of the limit{limit}; verl does not say if they were cut");
            Finding::warn(share, sentence)
        }
        (0.9.., false) => Finding::fail(share, format!("{percent} % of responses are cut by the limit{limit}")),
        (0.3.., false) => Finding::warn(share, format!("{percent} % of responses are cut by the limit{limit}")),
        _ => Finding::pass(share, format!("{percent} % of responses are cut")),
    }
}
