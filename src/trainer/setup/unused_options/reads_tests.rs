//! Tests that losses and estimators read the settings that their entries name.

use std::sync::LazyLock;

use crate::trainer::algorithms::options;
use burnish_algorithm::advantage::{self, AdvantageInput, AdvantageOutput, Component, ESTIMATORS};
use burnish_algorithm::loss::{LossColumns, LossResult, PolicyObjective};
use burnish_algorithm::options::{OptionValue, Options};
use burnish_algorithm::policy_loss::{ANCHOR, LossOptions, MiniBatch, POLICY_LOSSES, PolicyLoss};
use burnish_config::schema::Schema;
use burnish_config::{Choices, PpoConfig, Request, complete, defaults, load};
use burnish_util::rng::Stream;

const OFFSETS: &[usize] = &[0, 40, 60, 100, 120];

/// Values between −scale and scale, different for each name.
fn column(name: &str, scale: f64) -> Vec<f32> {
    let mut stream = Stream::new(1, name, &[]);
    (0..120).map(|_| ((2.0 * stream.uniform() - 1.0) * scale) as f32).collect()
}

fn loss(policy_loss: &'static PolicyLoss, options: LossOptions) -> LossResult {
    let objective = PolicyObjective {
        policy_loss,
        options,
        entropy_coeff: 0.0,
        kl_loss: None,
        top_entropy_quantile: 1.0,
        off_policy_mask: None,
    };
    let (mask, old) = (vec![1.0; 120], column("old", 1.0).iter().map(|x| x - 2.0).collect::<Vec<f32>>());
    // Ratios on both sides of 1, of tokens and of whole sequences.
    let shift = |t: usize| [0.3, -0.3, 0.4, -0.4][OFFSETS.partition_point(|&start| start <= t) - 1];
    let changes = column("change", 1.0).into_iter().enumerate().map(|(t, change)| change + shift(t));
    let log_prob: Vec<f32> = old.iter().zip(changes).map(|(old, change)| old + change).collect();
    let (entropy, advantages) = (
        column("entropy", 1.0),
        column("advantages", 4.0)
            .iter()
            .enumerate()
            .map(|(t, a)| a + if t % 120 < 60 { 1.0 } else { -1.0 })
            .collect::<Vec<f32>>(),
    );
    let (offsets, options) = (OFFSETS, &objective.options);
    let (log_prob, old_log_prob, mask) = (&log_prob, &old, &mask);
    let mut stream = Stream::new(1, "draws", &[]);
    let (entropy, advantages, reference) = (&entropy, &advantages, column("reference", 1.0));
    let (ref_log_prob, groups) = (Some(reference.as_slice()), &[0, 0, 1, 1][..]);
    let x = MiniBatch { offsets, mask, log_prob, entropy, old_log_prob, advantages, ref_log_prob, groups, options };
    let prepared = objective.prepare(&x, &mut || stream.uniform());
    objective.evaluate(&LossColumns {
        offsets,
        mask,
        log_prob,
        entropy,
        old_log_prob: Some(old_log_prob),
        ref_log_prob: None,
        advantages,
        weights: mask,
        penalty_weights: mask,
        rollout_is_weights: None,
        full_kl: None,
        factor: prepared.factor.as_deref(),
        entropy_mask: None,
        behaviour_log_prob: None,
        entropy_bonus: None,
    })
}

/// The built-in values of an entry's settings, and each setting changed in every way.
fn each_changed(reads: &[&'static str]) -> (Options, Vec<(&'static str, Vec<Options>)>) {
    static CONFIG: LazyLock<PpoConfig> =
        LazyLock::new(|| load::<PpoConfig>(&Request::default(), &Choices::default()).unwrap().config);
    let base = options(&CONFIG, reads).unwrap();
    let written = defaults(PpoConfig::DEFAULT_NAME).unwrap();
    let changed = |key: &&'static str| {
        let name = key.rsplit('.').next().unwrap();
        if let OptionValue::Pair([low, high]) = *base.get(name) {
            return (*key, vec![base.clone().with(name, [low / 100.0, high / 100.0])]);
        }
        let words = complete::values(written.root(), &Choices::default(), key);
        let words = words.iter().filter(|word| *word != "null").map(|word| match word.as_str() {
            "true" | "false" => OptionValue::Bool(word == "true"),
            word => word.parse().map_or(OptionValue::from(word), OptionValue::Number),
        });
        let is_number = words.clone().all(|word| matches!(word, OptionValue::Number(_)));
        let numbers = [0.0, 0.05, 0.5, 1.1, 1.5, 5.0].into_iter().filter(|_| is_number).map(OptionValue::Number);
        (*key, words.chain(numbers).map(|value| base.clone().with(name, value)).collect())
    };
    (base.clone(), reads.iter().map(changed).collect())
}

/// A loss has only the settings that it names among its options; asking for another panics.
#[test]
fn losses_read_the_settings_that_they_name() {
    for entry in POLICY_LOSSES {
        let (base, changed) = each_changed(entry.reads);
        let loss = |options: &Options| loss(entry, LossOptions::new(options.clone()));
        // The anchor chooses the log-probabilities that a loss gets, not its formula.
        for (key, changed) in changed.into_iter().filter(|(key, _)| *key != ANCHOR) {
            let plain = loss(&base);
            assert!(changed.iter().any(|options| loss(options) != plain), "{} does not read {key}", entry.name);
        }
        loss(&base);
    }
}

#[test]
fn estimators_read_the_settings_that_they_name() {
    let advantages = |entry: &advantage::Estimator, options: &Options| -> AdvantageOutput {
        let (rewards, column, mask) = (column("rewards", 1.0), column("values", 1.0), vec![1.0; 120]);
        let values = |name: &str| self::column(name, 1.0)[..4].iter().map(|&v| Some(f64::from(v))).collect();
        let component = |name: &str| Component { name: name.to_owned(), weight: 1.0, values: values(name) };
        (entry.run)(&AdvantageInput {
            offsets: OFFSETS,
            rewards: &rewards,
            scores: &rewards,
            mask: &mask,
            group: &[0, 0, 1, 1],
            values: Some(&column),
            reward_baselines: Some(&column[..4]),
            role_baselines: Some(&[0.0; 4]),
            old_log_prob: Some(&column),
            sum_pi_squared: Some(&column),
            rollout_is_weights: None,
            components: &[component("a"), component("b")],
            options: options.clone(),
        })
    };
    for entry in ESTIMATORS {
        let (base, changed) = each_changed(entry.reads);
        let plain = advantages(entry, &base);
        for (key, changed) in changed {
            let differs = changed.iter().any(|options| advantages(entry, options) != plain);
            assert!(differs, "{} does not read {key}", entry.name);
        }
    }
}
