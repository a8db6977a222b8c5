//! Settings by which all responses to a prompt are the same, or alone.

use serde_json::Value;

use crate::check::Check;
use crate::evidence::{Evidence, PlanFacts, RunLibrary};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const ALIKE_SAMPLES: Check = Check {
    name: "responses to compare",
    phases: BEFORE,
    reads: "`rollout.n`, `temperature`, `top_k`, `top_p`, `do_sample`, and what the estimator compares",
    number: "number of different responses to a prompt that the settings allow, at most",
    threshold: "1 fails",
    source: "the formulas of the estimators; at temperature 0.05 the most probable token is nearly always taken",
    meaning: "An advantage compares different responses to a prompt; with one response there is nothing to compare.",
    remedy: "Write {temperature}=1 and {n}=4 or more, with do_sample=true.",
    example,
    judge,
};

fn example() -> Evidence {
    let mut evidence = Evidence::planned(RunLibrary::Verl, PlanFacts { compares_groups: true, ..PlanFacts::default() });
    evidence.settings.insert("actor_rollout_ref.rollout.n".to_owned(), 8.into());
    evidence.settings.insert("actor_rollout_ref.rollout.temperature".to_owned(), 0.01.into());
    evidence
}

fn judge(evidence: &Evidence) -> Finding {
    let Some(n) = evidence.setting_number("n") else { return Finding::not_applicable("the training samples nothing") };
    let rollout = |name: &str| evidence.settings.get(&format!("actor_rollout_ref.rollout.{name}"));
    let number = |name: &str| rollout(name).and_then(Value::as_f64);
    let temperature = evidence.setting_number("temperature").unwrap_or(1.0);
    let why = match () {
        () if rollout("do_sample") == Some(&Value::Bool(false)) => "do_sample is off".to_owned(),
        () if temperature <= 0.05 => format!("the temperature is {temperature}"),
        () if number("top_k") == Some(1.0) => "top_k is 1".to_owned(),
        () if number("top_p").is_some_and(|p| p <= 0.01) => "top_p keeps one token".to_owned(),
        () if n < 2.0 && evidence.facts.plan.compares_groups => {
            return Finding::fail(1.0, "each prompt gets one response, and the advantages compare responses to a prompt");
        }
        () => return Finding::pass(n, format!("{n} responses to a prompt at temperature {temperature}")),
    };
    Finding::fail(1.0, format!("all {n} responses to a prompt are the same, since {why}: no advantage can differ from 0"))
}
