//! The learning rate, compared with the known range for models of this size.

use crate::check::Check;
use crate::evidence::{Evidence, PlanFacts, RatePlan, RunLibrary};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const LEARNING_RATE: Check = Check {
    name: "learning rate",
    phases: BEFORE,
    reads: "learning rate and its schedule over the run, number of parameters, adapters",
    number: "highest learning rate of the run",
    threshold: "0 fails, or a warm-up of the whole run; ten times outside of the known range warns, a hundred times above it fails",
    source: "170 scripts of verl (1e-6 in 149), LoRA Without Regret (adapters: ten times as much), runs of models below 10 M parameters \
             (1e-4 to 1e-3). Up to ten times the range is silent: a rate of 4e-3 destroys the task of the recipes, which `step size` \
             says after step 1, and adapters of small models learn at 3e-3",
    meaning: "A rate far too high destroys the model in a few steps; one far too low changes nothing.",
    remedy: "Write {lr} inside of the range.",
    example,
    judge,
};

fn example() -> Evidence {
    let rate = RatePlan {
        section: "actor_rollout_ref.actor.optim".to_owned(),
        optimizer: "AdamW".to_owned(),
        lr: 1e-3,
        highest: 1e-3,
        warmup: 0,
        has_known_range: true,
    };
    let plan = PlanFacts { parameters: Some(500_000_000), steps: 100, rates: vec![rate], ..PlanFacts::default() };
    Evidence::planned(RunLibrary::Verl, plan)
}

fn judge(evidence: &Evidence) -> Finding {
    let plan = &evidence.facts.plan;
    let judged = plan.rates.iter().map(|rate| of_rate(evidence, rate));
    let worst = judged.reduce(|worst, next| if next.verdict > worst.verdict { next } else { worst });
    worst.unwrap_or_else(|| Finding::not_applicable("no model is trained"))
}

fn of_rate(evidence: &Evidence, rate: &RatePlan) -> Finding {
    let plan = &evidence.facts.plan;
    let (key, lr, highest) = (format!("{}.lr", rate.section), rate.lr, rate.highest);
    let steps = plan.steps;
    if lr == 0.0 {
        return Finding::fail(0.0, format!("{key} is 0: the model does not change")).advise(format!("Write {key} above 0."));
    }
    if rate.warmup as u64 >= steps.max(2) {
        let sentence =
            format!("the warm-up lasts {} steps and the run {steps}: the rate does not pass {highest:.2e}", rate.warmup);
        return Finding::fail(highest, sentence).advise(format!(
            "Write {}.lr_warmup_steps={} or less.",
            rate.section,
            (steps / 10).max(1)
        ));
    }
    if highest <= 1e-12 {
        return Finding::fail(highest, format!("the highest rate of the run is {highest:.1e}: the model does not change"))
            .advise(format!("Raise {key}, or change its schedule."));
    }
    let (true, Some((low, high))) = (rate.has_known_range, range(evidence)) else {
        return Finding::pass(highest, format!("the highest rate of the run is {highest:.2e}; no range is known for it"));
    };
    let parameters = plan.parameters.unwrap_or_default() as f64;
    let model = format!("{}{} parameters", if plan.has_adapter { "an adapter of a model of " } else { "" }, count(parameters));
    let known = format!("{low:.0e} to {high:.0e} is known to work for {model}");
    let advice = format!("Write {key} between {low:.0e} and {high:.0e}.");
    let sentence = |by: f64, word: &str| format!("{highest:.1e} is {by:.0} times {word} the usual rates: {known}");
    match highest {
        rate if rate >= 100.0 * high => Finding::fail(rate, sentence(rate / high, "above")).advise(advice),
        rate if rate > 10.0 * high => Finding::warn(rate, sentence(rate / high, "above")).advise(advice),
        rate if rate < low / 10.0 => Finding::warn(rate, sentence(low / rate, "below")).advise(advice),
        rate => Finding::pass(rate, format!("{rate:.2e}; {known}")),
    }
}

/// Returns the lowest and the highest usual rate of AdamW. Between small and large models it falls evenly on a logarithmic scale.
fn range(evidence: &Evidence) -> Option<(f64, f64)> {
    let plan = &evidence.facts.plan;
    let parameters = plan.parameters? as f64;
    let (low, high) = match (evidence.library, evidence.settings.contains_key("algorithm.beta")) {
        (RunLibrary::Stage, true) => (1e-7, 1e-6),
        (RunLibrary::Stage, false) => (5e-6, 5e-5),
        _ => (1e-7, 5e-6),
    };
    // From 10 million to 500 million parameters.
    let share = ((parameters / 1e7).ln() / 50_f64.ln()).clamp(0.0, 1.0);
    let between = |small: f64, large: f64| small * (large / small).powf(share);
    let (low, high) = (between(1e-4, low), between(1e-3, high));
    let factor = if plan.has_adapter || plan.is_random { 10.0 } else { 1.0 };
    Some((low, factor * high))
}

fn count(parameters: f64) -> String {
    match parameters {
        n if n >= 1e9 => format!("{:.1} billion", n / 1e9),
        n if n >= 1e6 => format!("{:.0} million", n / 1e6),
        n => format!("{:.2} million", n / 1e6),
    }
}
