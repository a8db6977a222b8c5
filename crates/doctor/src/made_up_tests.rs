//! Made-up metrics at both sides of every threshold that no stored run crosses, and the traps: sound runs that look ill.

use serde_json::json;

use super::Verdict::{Fail, NotApplicable, Pass, Warn};
use super::evidence::Curve;
use super::{
    CHECKS, Check, CheckPhase, Evidence, KnownPrompt, LengthenedResponses, PlanFacts, RunLibrary, SampledGroups, Verdict,
    diagnose,
};

fn verdict(evidence: &Evidence, name: &str) -> Verdict {
    diagnose(evidence).into_iter().find(|one| one.check.name == name).unwrap().finding.verdict
}

/// A case: what it shows, the check, steps, metrics, and the verdict.
type Case = (&'static str, &'static str, u64, &'static [Curve], Verdict);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("a solved task", "no signal", 30, &[("reward/zero_std_ratio", |s| (s / 10.0).min(1.0)), ("critic/score/mean", |s| (s / 10.0).min(1.0))], Warn),
    ("constant from the start", "no signal", 30, &[("reward/zero_std_ratio", |_| 1.0), ("critic/score/mean", |_| 1.0)], Fail),
    ("collapsed", "no signal", 30, &[("reward/zero_std_ratio", |s| (s / 10.0).min(1.0)), ("critic/score/mean", |s| 1.0 - (s / 10.0).min(1.0))], Fail),
    ("half of a reward solved", "no signal", 30, &[("reward/zero_std_ratio", |s| (s / 10.0).min(1.0)), ("critic/score/mean", |s| (s / 20.0).min(0.5))], Warn),
    ("recovered", "no signal", 30, &[("reward/zero_std_ratio", |s| if s < 5.0 { 1.0 } else { 0.5 }), ("critic/score/mean", |_| 0.4)], Warn),
    ("answers of the limit's length, by verl", "responses cut", 9, &[("response_length/clip_ratio", |_| 1.0)], Warn),
    ("answers of the limit's length", "responses cut", 9, &[("response_length/clip_ratio", |_| 1.0), ("response/truncated_ratio", |_| 0.0)], Pass),
    ("first KL, one update", "first KL", 3, &[("actor/ppo_kl", |_| 1e-7), ("actor/kl_loss", |s| 0.3 * s)], Fail),
    ("first KL, a mean over updates", "first KL", 3, &[("actor/ppo_kl", |_| 0.09), ("actor/kl_loss", |_| 0.21)], NotApplicable),
    ("first KL in the reward", "first KL", 3, &[("actor/reward_kl_penalty", |s| s - 1.0)], Pass),
    ("steps too long", "step size", 9, &[("actor/ppo_kl", |s| if s < 3.0 { 1.9 } else { 0.0 })], Fail),
    ("rate 0", "nothing moves", 9, &[("actor/lr", |_| 0.0), ("actor/grad_norm", |_| 1.0)], Fail),
    ("a warm-up longer than the run", "nothing moves", 9, &[("actor/lr", |s| s * 1e-11), ("actor/grad_norm", |_| 1.0)], Fail),
    ("a rate that ends at 0", "nothing moves", 9, &[("actor/lr", |s| 1e-6 * (9.0 - s)), ("actor/grad_norm", |_| 1.0)], Pass),
    ("updates without an effect", "nothing moves", 9, &[("actor/lr", |_| 1e-6), ("actor/grad_norm", |_| 1.0), ("actor/update_to_weight", |_| 1e-12)], Fail),
    ("updates of fine-tuning", "nothing moves", 9, &[("actor/lr", |_| 1e-6), ("actor/grad_norm", |_| 1.0), ("actor/update_to_weight", |_| 1e-6)], Pass),
    ("long updates of a stage", "step size", 9, &[("train/update_to_weight", |_| 0.2)], Warn),
    ("updates of a stage", "step size", 9, &[("train/update_to_weight", |_| 1e-3)], Pass),
    ("one NaN", "NaN", 30, &[("actor/grad_norm", |s| if s == 9.0 { f64::NAN } else { 1.0 })], Warn),
    ("a NaN score", "NaN", 30, &[("critic/score/mean", |s| if s == 9.0 { f64::NAN } else { 1.0 })], Fail),
    ("a jump of the gradient", "NaN", 30, &[("actor/grad_norm", |s| if s == 25.0 { 11.0 } else { 1.0 })], Warn),
    ("KL in one row", "KL", 30, &[("actor/kl_loss", |s| if s == 25.0 { 90.0 } else { 0.1 })], Warn),
    ("KL", "KL", 30, &[("actor/kl_loss", |s| s / 4.0)], Fail),
    ("entropy rises by a third", "entropy", 30, &[("actor/entropy", |s| 0.2 + s / 400.0), ("critic/score/mean", |_| 0.5)], Pass),
    ("entropy explodes", "entropy", 30, &[("actor/entropy", |s| 0.2 * s), ("critic/score/mean", |_| 0.5)], Warn),
    ("entropy gone, solved", "entropy", 60, &[("actor/entropy", |s| 1.0 / (s * s)), ("critic/score/mean", |s| (s / 20.0).min(1.0))], Warn),
    ("entropy gone", "entropy", 60, &[("actor/entropy", |s| 1.0 / (s * s)), ("critic/score/mean", |s| if s < 9.0 { 0.6 } else { 0.4 })], Fail),
    ("three quarters of the entropy gone", "entropy", 60, &[("actor/entropy", |s| 0.27 + 0.73 / s), ("critic/score/mean", |_| 0.4)], Pass),
    ("longer and better", "length", 30, &[("response_length/mean", |s| s), ("reward/acc/mean", |s| s / 30.0)], Pass),
    ("longer and worse", "length", 30, &[("response_length/mean", |s| s), ("reward/acc/mean", |s| 1.0 - s / 30.0)], Warn),
    ("score up, accuracy down", "score against accuracy", 30, &[("critic/score/mean", |s| s), ("reward/acc/mean", |s| 1.0 - s / 30.0)], Fail),
    ("score and accuracy up", "score against accuracy", 30, &[("critic/score/mean", |s| s), ("reward/acc/mean", |s| s / 30.0)], Pass),
    ("a score that dips", "score falls", 30, &[("critic/score/mean", |s| if s < 9.0 { 0.6 - s / 20.0 } else { 0.8 })], Pass),
    ("scores below 0", "score falls", 30, &[("critic/score/mean", |s| 2.0 - s)], NotApplicable),
    ("a loss that rises", "score falls", 60, &[("train/loss", |s| 0.1 * s)], Fail),
    ("clipping", "clipping", 9, &[("actor/pg_clipfrac", |_| 0.5)], Warn),
    ("no clipping", "clipping", 9, &[("actor/pg_clipfrac", |_| 0.0)], Pass),
    ("other weights in the engine", "generation against training", 9, &[("rollout_corr/kl", |_| 0.4)], Warn),
    ("a gap that grows with the depth", "generation against training", 9,
        &[("training/rollout_probs_diff_mean/0-15", |_| 1e-4), ("training/rollout_probs_diff_mean/64-255", |_| 0.2)], Warn),
    ("one engine at all depths", "generation against training", 9,
        &[("training/rollout_probs_diff_mean/0-15", |_| 1e-7), ("training/rollout_probs_diff_mean/64-255", |_| 1e-6)], Pass),
    ("a ratio that is not 1", "first KL", 9, &[("actor/first_ratio_min", |_| 0.4), ("actor/first_ratio_max", |_| 1.1)], Fail),
    ("a ratio of bfloat16", "first KL", 9, &[("actor/first_ratio_max", |s| if s == 7.0 { 1.1 } else { 1.0 })], Warn),
    ("ratios of 1", "first KL", 9, &[("actor/first_ratio_min", |_| 1.0 - 1e-6), ("actor/first_ratio_max", |_| 1.0)], Pass),
    ("one engine", "generation against training", 9, &[("training/rollout_probs_diff_mean", |_| 1e-7)], Pass),
    ("a critic of noise", "critic", 60, &[("critic/vf_explained_var", |_| -0.1)], Warn),
    ("a critic that learns", "critic", 60, &[("critic/vf_explained_var", |s| s / 60.0)], Pass),
    ("failing environments", "environments", 9, &[("agent/end/failed", |_| 0.2)], Warn),
    ("sound environments", "environments", 9, &[("agent/end/failed", |_| 0.01)], Pass),
    ("slower", "speed", 40, &[("timing_s/step", |s| s), ("timing_s/reward", |s| s - 1.0), ("perf/total_num_tokens", |_| 100.0)], Warn),
    ("longer, so slower", "speed", 40, &[("timing_s/step", |s| s), ("perf/total_num_tokens", |s| 100.0 + s * s)], Pass),
    ("equal pairs", "pairs", 9, &[("train/loss", |_| std::f64::consts::LN_2), ("train/grad_norm", |_| 1e-7), ("train/rewards/margins", |_| 0.0)], Fail),
    ("pairs of a run that starts", "pairs", 9, &[("train/loss", |_| std::f64::consts::LN_2), ("train/grad_norm", |_| 0.7), ("train/rewards/margins", |_| 0.0)], Pass),
    ("both unlikely", "pairs", 9, &[("train/loss", |_| 0.5), ("train/grad_norm", |_| 0.7), ("train/rewards/margins", |_| 1.0),
        ("train/logps/chosen", |s| -20.0 * s), ("train/logps/rejected", |s| -30.0 * s)], Warn),
];

#[test]
fn thresholds_and_traps() {
    for (what, check, steps, curves, expected) in CASES {
        assert_eq!(verdict(&Evidence::made_up(*steps, curves), check), *expected, "{what}");
    }
}

/// The depth at which generation and training differ says where to look.
#[test]
fn a_gap_has_its_advice_by_depth() {
    let advice = |early: fn(f64) -> f64, late: fn(f64) -> f64| {
        let evidence = Evidence::made_up(
            9,
            &[("training/rollout_probs_diff_mean/0-15", early), ("training/rollout_probs_diff_mean/256-1023", late)],
        );
        let found = diagnose(&evidence).into_iter().find(|one| one.check.name == "generation against training").unwrap();
        (found.finding.sentence, found.finding.remedy.unwrap())
    };
    let (sentence, remedy) = advice(|_| 0.001, |_| 0.1);
    assert!(sentence.contains("at tokens 256-1023") && sentence.contains("grows") && remedy.contains("cache"), "{sentence}");
    assert!(advice(|_| 0.1, |_| 0.001).1.contains("template"));
    assert!(advice(|_| 0.1, |_| 0.09).1.contains("temperature"));
    // A filter makes such a gap in a sound run.
    let mut evidence = Evidence::made_up(9, &[("training/rollout_probs_diff_mean/0-15", |_| 0.2)]);
    assert_eq!(verdict(&evidence, "generation against training"), Warn);
    evidence.settings.insert("actor_rollout_ref.rollout.top_p".to_owned(), json!(0.9));
    assert_eq!(verdict(&evidence, "generation against training"), NotApplicable);
}

/// A text is bare only if the model has a template whose marks the text lacks.
#[test]
fn plain_texts_of_chat_models() {
    let mut evidence = Evidence::made_up(1, &[]);
    let plain = |text: &str| KnownPrompt { text: text.to_owned(), is_plain_text: true };
    evidence.facts.prompts = vec![plain("12+3="), plain("<|im_start|>user\n1+1=<|im_end|>")];
    assert_eq!(verdict(&evidence, "text prompt of a chat model"), NotApplicable);
    evidence.facts.has_chat_template = Some(true);
    assert_eq!(verdict(&evidence, "text prompt of a chat model"), Fail);
    evidence.facts.prompts.remove(0);
    assert_eq!(verdict(&evidence, "text prompt of a chat model"), Pass);
}

/// A negative coefficient may be on purpose; one that outweighs the reward is not.
#[test]
fn coefficients_with_the_wrong_sign() {
    let judged = |settings: &[(&str, serde_json::Value)]| {
        let mut evidence = Evidence::planned(RunLibrary::Verl, PlanFacts::default());
        evidence.settings = settings.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        verdict(&evidence, "settings against the aim")
    };
    let entropy = "actor_rollout_ref.actor.entropy_coeff";
    assert_eq!([0.0, -0.01, -1.0, 0.5].map(|value| judged(&[(entropy, json!(value))])), [Pass, Warn, Warn, Warn]);
    let kl = |on: bool, value: f64| {
        judged(&[("actor_rollout_ref.actor.use_kl_loss", json!(on)), ("actor_rollout_ref.actor.kl_loss_coef", json!(value))])
    };
    assert_eq!([kl(true, 0.1), kl(true, -0.1), kl(true, -2.0), kl(false, -2.0)], [Pass, Warn, Fail, Pass]);
}

/// Responses with words: the best and the worst ones, the range of all scores, and the verdict.
#[test]
fn length_is_paid_if_words_raise_the_best_score() {
    let judged = |best: (f64, f64), worst: (f64, f64), range: (f64, f64)| {
        let lengthened = LengthenedResponses { best: vec![best; 8], worst: vec![worst; 8], range, limit: 32 };
        let samples = SampledGroups { lengthened: Some(lengthened), ..SampledGroups::default() };
        let plan = PlanFacts { samples: Some(samples), ..PlanFacts::default() };
        verdict(&Evidence::planned(RunLibrary::Verl, plan), "paid length")
    };
    assert_eq!(judged((1.0, 0.0), (0.0, 0.0), (0.0, 1.0)), Pass, "the words hide the answer");
    assert_eq!(judged((1.0, 1.0), (0.0, 0.0), (0.0, 1.0)), Pass);
    assert_eq!(judged((1.0, 0.6), (-1.0, -0.6), (-1.0, 1.0)), Pass, "a wrong answer may grow, a right one may not");
    assert_eq!(judged((0.2, 0.9), (0.0, 0.9), (0.0, 1.0)), Pass, "nothing beats the best sample");
    assert_eq!(judged((1.0, 1.6), (0.0, 0.6), (0.0, 1.0)), Warn);
    assert_eq!(judged((1.0, 6.0), (0.0, 5.0), (0.0, 1.0)), Fail, "a wrong answer with words beats every right one");
    assert_eq!(judged((0.3, 6.0), (0.3, 6.0), (0.3, 0.3)), Warn, "no sample differs from another");
    let none = PlanFacts { samples: Some(SampledGroups::default()), ..PlanFacts::default() };
    assert_eq!(verdict(&Evidence::planned(RunLibrary::Verl, none), "paid length"), NotApplicable);
}

/// Advice names settings of the library. No check says anything without evidence.
#[test]
fn every_objection_has_its_remedy() {
    for library in [RunLibrary::Verl, RunLibrary::Stage, RunLibrary::Trl] {
        let mut evidence =
            Evidence::made_up(9, &[("actor/ppo_kl", |_| 2.0), ("response/truncated_ratio", |_| 1.0), ("actor/kl_loss", |_| 9.0)]);
        evidence.library = library;
        evidence.settings.insert("max_completion_length".to_owned(), json!(8));
        let objections = diagnose(&evidence).into_iter().filter(|one| one.finding.verdict >= Warn);
        let remedies: Vec<String> = objections.map(|one| one.finding.remedy.unwrap()).collect();
        assert!(remedies.len() >= 3 && remedies.iter().all(|text| !text.contains('{')), "{remedies:?}");
    }
    for phase in [CheckPhase::Before, CheckPhase::After] {
        let empty = Evidence::new(phase, RunLibrary::Verl);
        assert!(diagnose(&empty).iter().all(|one| one.finding.verdict < Warn));
    }
    let has_all = |check: &Check| {
        [check.reads, check.number, check.threshold, check.source, check.meaning, check.remedy]
            .iter()
            .all(|text| !text.is_empty())
    };
    assert!(CHECKS.iter().all(|check| has_all(check)));
}

/// The page of a check shows evidence to which the check objects; rows that are only shown have no fault.
#[test]
fn examples_have_the_fault() {
    for check in CHECKS {
        let verdict = verdict(&(check.example)(), check.name);
        let is_right = if check.name == "rendered rows" { verdict == Pass } else { verdict >= Warn };
        assert!(is_right, "{}: {verdict:?}", check.name);
        let fails = check.threshold.contains("fails") || check.threshold.contains("fail;");
        assert!(!fails || verdict == Fail, "{}: the example only warns", check.name);
        let page = check.page();
        let parts = [check.name, check.number, check.source, check.meaning, "```text\n", "→ "];
        assert!(parts.iter().all(|part| page.contains(part)) && !page.contains('{'), "{page}");
    }
    let ids: std::collections::BTreeSet<String> = CHECKS.iter().map(|check| check.id()).collect();
    let is_plain = |id: &String| id.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    assert!(ids.len() == CHECKS.len() && ids.iter().all(is_plain), "{ids:?}");
}

#[test]
fn rows_may_be_far_apart() {
    let mut evidence = Evidence::made_up(10, &[("actor/kl_loss", |s| if s < 6.0 { 0.05 } else { 3.0 })]);
    evidence.rows.iter_mut().for_each(|row| row.step *= 25);
    assert_eq!(verdict(&evidence, "KL"), Warn);
}
