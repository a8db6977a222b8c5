//! Online DPO: a preference loss on the best and the worst of the responses that the policy has just written to a prompt.

use super::{LossInput, MiniBatch, PolicyLoss, PolicyLossOutput, Prepared};
use crate::options::{OptionValue, Options};
use crate::preference::{self, Answer, AnsweredPair, Form, PairCounts, PairObjective, PreferenceLoss};
use crate::rounding::settled;
use crate::sequences;
use burnish_registry::{Choice, Need, Refusal, When};

/// The key of the preference loss.
const LOSS_TYPE: &str = "actor_rollout_ref.actor.policy_loss.dpo_loss_type";

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "dpo",
    aliases: &["online_dpo"],
    doc: "Online DPO: of the responses to a prompt, that of the highest advantage is chosen and that of the lowest rejected, and a \
          preference loss compares the two with the reference.\n\
          Formula: Δ = Σ_t (log π − log π_ref) of the chosen response less that of the rejected; L = mean over prompts of \
          −log σ(βΔ), or another dpo_loss_type; β = dpo_beta. Of equal advantages the first is highest and the last lowest.\n\
          Paper: Guo et al. 2024, Direct language model alignment from online AI feedback, arXiv:2402.04792.\n\
          TRL: OnlineDPOTrainer, with two samples to a prompt; its loss ipo is ipo_sum.\n\
          Deviation: log-probabilities are at the temperature of sampling, as everywhere in this loop; at temperature 1 they are \
          TRL's. The loss is over the prompts of a mini-batch, however it is cut.\n\
          When: scores say which response is better rather than by how much, as those of most reward models do; with \
          algorithm.adv_estimator=rloo and n of 2 or more. Prompts whose responses all score alike teach noise: \
          algorithm.filter_groups leaves them out.",
    // The factor includes the mean over prompts.
    aggregation: Some("token-sum"),
    prepare: Some(prepare),
    needs: &[Need::Group, Need::Reference],
    reads: &[LOSS_TYPE, "actor_rollout_ref.actor.policy_loss.dpo_beta"],
    refuses: &[
        Refusal {
            key: "algorithm.use_kl_in_reward",
            when: When::On,
            why: "the loss `NAME` holds the policy near the reference by itself, and ranks responses by their scores alone",
            instead: "write KEY=false; actor_rollout_ref.actor.policy_loss.dpo_beta says how near",
        },
        Refusal {
            key: "actor_rollout_ref.actor.shuffle",
            when: When::On,
            why: "the loss `NAME` compares the responses to one prompt, which shuffling puts into different updates",
            instead: "write KEY=false",
        },
        Refusal {
            key: "actor_rollout_ref.actor.policy_loss.off_policy_mask_threshold",
            when: When::On,
            why: "the loss `NAME` has no advantages whose sign could leave out a response",
            instead: "write KEY=null",
        },
        Refusal {
            key: "algorithm.rollout_correction.count_rejected",
            when: When::On,
            why: "the loss `NAME` has no weights that rejected tokens could lose",
            instead: "write KEY=false",
        },
        Refusal {
            key: "algorithm.use_pf_ppo",
            when: When::On,
            why: "the loss `NAME` compares the responses to one prompt, and PF-PPO resamples responses",
            instead: "write KEY=false",
        },
        weighted("token"),
        weighted("sequence"),
        Refusal {
            key: "algorithm.adv_estimator",
            when: When::Is("gae"),
            why: "the loss `NAME` ranks whole responses, and advantages of `gae` are of tokens",
            instead: "write KEY=rloo",
        },
    ],
    chosen_by: None,
    run,
};

const fn weighted(by: &'static str) -> Refusal {
    Refusal {
        key: "algorithm.rollout_correction.rollout_is",
        when: When::Is(by),
        why: "the loss `NAME` has no advantages that weights could correct",
        instead: "write KEY=null",
    }
}

/// Returns the losses that `dpo_loss_type` can name: losses of pairs that compare with a reference and read only β.
pub fn loss_types() -> impl Iterator<Item = Choice> {
    let fits = |loss: &&PreferenceLoss| {
        let is_of_pairs = matches!(loss.form, Form::Pair(_)) && loss.reference && loss.nll.is_none();
        is_of_pairs && loss.reads.iter().all(|key| option_value(key, 0.0).is_some())
    };
    preference::PREFERENCE_LOSSES.iter().filter(fits).map(|loss| Choice::plain(LOSS_TYPE, loss.name))
}

/// Returns the value of a setting of preference losses inside this loss.
fn option_value(key: &str, beta: f64) -> Option<OptionValue> {
    match key {
        "algorithm.beta" => Some(beta.into()),
        "algorithm.f_divergence_type" => Some("reverse_kl".into()),
        "algorithm.f_alpha_divergence_coef" => Some(0.5.into()),
        _ => None,
    }
}

/// The factor is the derivative of the loss by log π of the token; the value of the loss is among the metrics.
fn prepare(x: &MiniBatch, _: &mut dyn FnMut() -> f64) -> Prepared {
    let loss = preference::find(x.options.settings.word("dpo_loss_type")).expect("the configuration knows the losses");
    let beta = x.options.number("dpo_beta");
    let options = Options::read(loss.reads, |key| option_value(key, beta).ok_or(())).expect("loss_types has what is given");
    let objective = PairObjective { losses: vec![(loss, 1.0, options)], use_weighting: false, nll_loss_coef: 0.0 };

    let pairs = best_and_worst(x);
    let answers: Vec<AnsweredPair> = pairs.iter().map(|pair| pair.map(|sequence| answer(x, sequence))).collect();
    let mut factor = vec![0.0; x.mask.len()];
    if answers.is_empty() {
        return Prepared { factor, metrics: Vec::new() };
    }
    let evaluated = objective.evaluate(&answers, &PairCounts::count(&answers));
    for (pair, grads) in pairs.iter().zip(&evaluated.grads) {
        for (&sequence, grads) in pair.iter().zip(grads) {
            trained(x, sequence).for_each(|t| factor[t] = (grads.log_prob + grads.plain) as f32);
        }
    }
    let metrics = objective.metrics(&answers).into_iter().map(|(name, value)| (format!("actor/{name}"), value));
    Prepared { factor, metrics: metrics.chain([("actor/pg_loss".to_owned(), evaluated.loss)]).collect() }
}

/// The trained tokens of a sequence.
fn trained<'a>(x: &'a MiniBatch, sequence: usize) -> impl Iterator<Item = usize> + 'a {
    (x.offsets[sequence]..x.offsets[sequence + 1]).filter(|&t| x.mask[t] != 0.0)
}

/// The best and the worst response to each prompt that has two with a trained token.
fn best_and_worst(x: &MiniBatch) -> Vec<[usize; 2]> {
    let mut groups: indexmap::IndexMap<usize, Vec<(usize, f64)>> = indexmap::IndexMap::new();
    for sequence in 0..sequences(x.offsets).count() {
        let advantages: Vec<f64> = trained(x, sequence).map(|t| f64::from(x.advantages[t])).collect();
        if !advantages.is_empty() {
            let mean = advantages.iter().sum::<f64>() / advantages.len() as f64;
            groups.entry(x.groups[sequence]).or_default().push((sequence, mean));
        }
    }
    let pair = |group: Vec<(usize, f64)>| {
        let better = |a: (usize, f64), b: (usize, f64)| if b.1 > a.1 { b } else { a };
        let worse = |a: (usize, f64), b: (usize, f64)| if b.1 <= a.1 { b } else { a };
        let (best, worst) = (group.iter().copied().reduce(better)?.0, group.iter().copied().reduce(worse)?.0);
        (best != worst).then_some([best, worst])
    };
    groups.into_values().filter_map(pair).collect()
}

fn answer(x: &MiniBatch, sequence: usize) -> Answer {
    let reference = x.ref_log_prob.expect("the loss dpo needs a reference");
    let log_probs: Vec<f32> = trained(x, sequence).map(|t| x.log_prob[t]).collect();
    let of_reference: f64 = trained(x, sequence).map(|t| f64::from(reference[t])).sum();
    let answer = Answer::new(&log_probs, &[], log_probs.len(), 1.0);
    answer.with_reference(settled(answer.log_prob, of_reference, answer.tokens))
}

fn run(x: &LossInput) -> PolicyLossOutput {
    let factor = x.factor.clone().unwrap_or_else(|| x.mask.zeros_like());
    // 0, with the derivative of the loss.
    let per_token = (x.log_prob.clone() - x.log_prob.clone().detach()) * factor;
    PolicyLossOutput { per_token, metrics: vec![x.mean("actor/ppo_kl", x.difference().detach().neg())] }
}
