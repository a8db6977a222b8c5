//! Settings that work against the aim of the run.

use serde_json::Value;

use crate::check::Check;
use crate::evidence::{Evidence, PlanFacts, RunLibrary};
use crate::finding::{Finding, Verdict};
use crate::phase::BEFORE;

pub(super) const AGAINST_AIM: Check = Check {
    name: "settings against the aim",
    phases: BEFORE,
    reads: "coefficients of the loss, weights of rewards, clip ranges, limits of the gradient",
    number: "number of such settings",
    threshold: "1 warns; fails if a coefficient of KL is -1 or less, or all weights of a reward are 0",
    source: "runs of the first recipe: with `kl_loss_coef=-1` the KL is 5 nats a token and the score 0 at step 24, with -0.1 it learns; \
             `entropy_coeff` of -1 and -5 learn at the recipe's rate, and -1 collapses at 1e-3",
    meaning: "The loss rewards what the run should avoid, or an update is clipped to nothing.",
    remedy: "Leave the setting at its default, or give it the usual sign.",
    example,
    judge,
};

fn example() -> Evidence {
    let mut evidence = Evidence::planned(RunLibrary::Verl, PlanFacts::default());
    evidence.settings.insert("actor_rollout_ref.actor.use_kl_loss".to_owned(), true.into());
    evidence.settings.insert("actor_rollout_ref.actor.kl_loss_coef".to_owned(), (-1.0).into());
    evidence
}

/// The wrong values of a setting.
struct Wrong {
    key: &'static str,
    is_wrong: fn(f64) -> bool,
    why: &'static str,
    /// A setting that must be true, or above 0; otherwise the value has no effect.
    only_if: Option<&'static str>,
    /// Highest value with which no run learns.
    fails_at: f64,
}

const fn wrong(key: &'static str, is_wrong: fn(f64) -> bool, why: &'static str) -> Wrong {
    Wrong { key, is_wrong, why, only_if: None, fails_at: f64::NEG_INFINITY }
}

const fn wrong_if(only_if: &'static str, key: &'static str, is_wrong: fn(f64) -> bool, why: &'static str) -> Wrong {
    Wrong { key, is_wrong, why, only_if: Some(only_if), fails_at: f64::NEG_INFINITY }
}

impl Wrong {
    /// The value is so wrong from here on downwards that no run learns.
    const fn fails_at(self, value: f64) -> Self {
        Self { fails_at: value, ..self }
    }
}

/// Coefficient with which the KL, which has no upper bound, outweighs the reward.
const DECIDES: f64 = -1.0;
const NEGATIVE: fn(f64) -> bool = |value| value < 0.0;
const FROM_REFERENCE: &str = "the loss rewards distance from the reference";
const CLIPPED: &str = "nearly every update of a token is clipped";
const NO_GRADIENT: &str = "every gradient is scaled down to nearly nothing";

const ALL: &[Wrong] = &[
    wrong(
        "actor_rollout_ref.actor.entropy_coeff",
        NEGATIVE,
        "the loss rewards certainty, and the policy collapses to one answer",
    ),
    wrong("actor_rollout_ref.actor.entropy_coeff", |value| value > 0.1, "the entropy outweighs the reward"),
    wrong_if("actor_rollout_ref.actor.use_kl_loss", "actor_rollout_ref.actor.kl_loss_coef", NEGATIVE, FROM_REFERENCE)
        .fails_at(DECIDES),
    wrong_if("algorithm.use_kl_in_reward", "algorithm.kl_ctrl.kl_coef", NEGATIVE, FROM_REFERENCE).fails_at(DECIDES),
    wrong("actor_rollout_ref.actor.clip_ratio", |value| value < 1e-3, CLIPPED),
    wrong("actor_rollout_ref.actor.grad_clip", |value| value > 0.0 && value < 1e-4, NO_GRADIENT),
    wrong("critic.grad_clip", |value| value > 0.0 && value < 1e-4, NO_GRADIENT),
    wrong("optim.clip_grad", |value| value > 0.0 && value < 1e-4, NO_GRADIENT),
    wrong("actor_rollout_ref.rollout.temperature", |value| value > 2.0, "sampled responses are mostly noise"),
    wrong("algorithm.beta", NEGATIVE, "the loss prefers the rejected responses"),
    wrong_if("algorithm.beta", "algorithm.label_smoothing", |value| value > 0.5, "the loss prefers the rejected responses"),
    wrong("algorithm.gamma", |value| value <= 0.0, "rewards do not reach earlier tokens"),
    wrong("actor_rollout_ref.model.lora_alpha", |value| value <= 0.0, "an adapter with this factor has no effect"),
    wrong("model.lora_alpha", |value| value <= 0.0, "an adapter with this factor has no effect"),
];

fn judge(evidence: &Evidence) -> Finding {
    let number = |key: &str| evidence.settings.get(key).and_then(Value::as_f64);
    let is_on = |key: &str| match evidence.settings.get(key) {
        Some(Value::Bool(on)) => *on,
        Some(value) => value.as_f64().is_some_and(|value| value > 0.0),
        None => false,
    };
    let found = ALL.iter().filter(|one| one.only_if.is_none_or(is_on) && number(one.key).is_some_and(one.is_wrong));
    let found: Vec<&Wrong> = found.filter(|one| !one.key.ends_with("lora_alpha") || evidence.facts.plan.has_adapter).collect();
    let mut sentences: Vec<String> =
        found.iter().map(|one| format!("{} is {}: {}", one.key, number(one.key).unwrap_or_default(), one.why)).collect();
    let mut keys: Vec<&str> = found.iter().map(|one| one.key).collect();
    let mut verdict = match () {
        () if found.is_empty() => Verdict::Pass,
        () if found.iter().any(|one| number(one.key).is_some_and(|value| value <= one.fails_at)) => Verdict::Fail,
        () => Verdict::Warn,
    };
    let weights: Vec<f64> = evidence.functions.iter().map(|(_, weight)| *weight).collect();
    if !weights.is_empty() && weights.iter().all(|weight| *weight <= 0.0) {
        let nothing = weights.iter().all(|weight| *weight == 0.0);
        sentences.push(match nothing {
            true => "all weights of the reward functions are 0: every score is 0".to_owned(),
            false => "no reward function has a weight above 0: the run avoids what they reward".to_owned(),
        });
        keys.push("reward_model.reward_weights");
        verdict = verdict.max(if nothing { Verdict::Fail } else { Verdict::Warn });
    }
    let (count, sentence) = (sentences.len() as f64, sentences.join("; "));
    let advice = format!("Correct {}, or leave it out.", keys.join(", "));
    match verdict {
        Verdict::Fail => Finding::fail(count, sentence).advise(advice),
        Verdict::Warn => Finding::warn(count, sentence).advise(advice),
        _ => Finding::pass(0.0, "no coefficient, weight or limit works against the run"),
    }
}
