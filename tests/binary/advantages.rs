//! Scores and advantages of responses that are cut, masked, unscored, or compared with a greedy one.

use serde_json::Value;

use crate::common::{last_step, number};

/// A response has ended if generation reports it, even if it does not contain the end-of-sequence token.
#[test]
fn a_response_that_stops_at_another_token_is_not_punished() {
    let folder = tempfile::tempdir().unwrap();
    let digits = "actor_rollout_ref.rollout.stop_token_ids=[4,5,6,7,8,9,10,11,12,13]";
    let row = last_step(folder.path(), "stopped", &[digits, "algorithm.missing_eos_penalty=100"]);
    assert!(number(&row, "response_length/mean") < 2.0 && number(&row, "critic/score/min") >= 0.0, "{row:?}");
}

/// At a high temperature most samples are wrong. A sampled baseline (verl before 0.9) would be as low as the samples.
#[test]
fn the_baseline_of_remax_is_greedy() {
    let folder = tempfile::tempdir().unwrap();
    let row = last_step(folder.path(), "remax", &["algorithm.adv_estimator=remax", "actor_rollout_ref.rollout.temperature=20"]);
    let greedy = number(&row, "critic/score/mean") - number(&row, "critic/advantages/mean");
    assert!(number(&row, "critic/score/mean") < 0.2 && greedy > 0.3, "{row:?}");
}

/// A response that is masked from the loss still counts in means over responses. The ratio is 1, so the loss of a token is −A.
#[test]
fn masked_responses_count_in_means_over_responses() {
    let folder = tempfile::tempdir().unwrap();
    let options = [
        "trainer.total_training_steps=1",
        // Advantages that do not cancel within a prompt's group, although most of its responses end equally.
        "algorithm.adv_estimator=reinforce",
        "actor_rollout_ref.actor.ppo_mini_batch_size=8",
        "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean",
        "algorithm.mask_truncated_completions=true",
        "data.max_response_length=3",
        "trainer.log_completions=32",
        "trainer.num_sample_generations=1",
    ];
    let row = last_step(folder.path(), "cut", &options);
    let text = std::fs::read_to_string(folder.path().join("cut/samples.jsonl")).unwrap();
    let samples: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ended: Vec<f64> =
        samples.iter().filter(|one| one["finish"] == "stop").map(|one| one["advantage"].as_f64().unwrap()).collect();
    assert!(samples.len() == 32 && (1..32).contains(&ended.len()), "{} of {} ended", ended.len(), samples.len());
    let expected = -ended.iter().sum::<f64>() / 32.0;
    assert!(expected.abs() > 0.01 && (number(&row, "actor/pg_loss") - expected).abs() < 1e-6, "{row:?}, and not {expected}");
}

/// Rows without a ground truth have no score: they are counted and have advantage 0. A batch that lacks some value altogether is
/// not an error.
#[test]
fn responses_that_nothing_scores_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, scored: usize| {
        let row = |i: usize| {
            let truth = if i < scored { Value::from((20 + 2 * i).to_string()) } else { Value::Null };
            let prompt = format!("{}+{}=", 10 + i, 10 + i);
            serde_json::json!({"data_source": "burnish/arithmetic", "prompt": prompt, "reward_model": {"ground_truth": truth}})
        };
        let lines: String = (0..8).map(|i| format!("{}\n", row(i))).collect();
        let path = folder.path().join(format!("{name}.jsonl"));
        std::fs::write(&path, lines).unwrap();
        format!("data.train_files={}", path.display())
    };
    let half = last_step(folder.path(), "half", &[&file("half", 4)]);
    assert_eq!(number(&half, "reward/abstained_ratio"), 0.5);
    assert!(number(&half, "actor/grad_norm") > 0.0);
    let rare = [&file("rare", 1), "algorithm.adv_estimator=gdpo", "algorithm.gdpo_reward_keys=[acc,score]"];
    last_step(folder.path(), "rare", &[&rare[..], &["data.train_batch_size=4", "trainer.total_training_steps=4"]].concat());
    let none = last_step(folder.path(), "none", &[&file("none", 0)]);
    assert_eq!((number(&none, "reward/abstained_ratio"), number(&none, "actor/grad_norm")), (1.0, 0.0));
    assert!(!none.contains_key("critic/score/mean"), "no score has no mean");
}
