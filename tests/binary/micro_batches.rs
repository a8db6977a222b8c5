//! Settings of memory change no gradient.

use crate::common::{last_step, number};

/// Memory options change no gradient beyond rounding, even for a loss that depends on the whole mini-batch. There is only one
/// update: Adam makes full steps from gradients of mere rounding noise, and one different token is more than rounding.
#[test]
fn the_size_of_a_micro_batch_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let micro = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu";
    let losses = ["vanilla", "clip_cov", "kl_cov", "gspo", "bypass_mode"];
    for loss in losses {
        let loss_mode = format!("actor_rollout_ref.actor.policy_loss.loss_mode={loss}");
        let mut options = vec![
            loss_mode.as_str(),
            "actor_rollout_ref.actor.policy_loss.top_entropy_quantile=0.5",
            "actor_rollout_ref.actor.policy_loss.kl_cov_ratio=0.2",
            "actor_rollout_ref.actor.policy_loss.clip_cov_ratio=0.2",
            "actor_rollout_ref.actor.policy_loss.clip_cov_lb=0.1",
            "actor_rollout_ref.actor.ppo_mini_batch_size=8",
            "trainer.total_training_steps=1",
        ];
        if loss == "bypass_mode" {
            options.extend([
                "algorithm.rollout_correction.bypass_mode=true",
                "algorithm.rollout_correction.loss_type=reinforce",
                "algorithm.rollout_correction.rollout_is=sequence",
                "algorithm.rollout_correction.rollout_is_batch_normalize=true",
                // A second update, whose ratios are not 1; its size follows the gradient.
                "actor_rollout_ref.actor.ppo_epochs=2",
                "actor_rollout_ref.actor.optim.eps=1",
                "actor_rollout_ref.actor.optim.lr=0.02",
            ]);
        }
        let norms = [format!("{micro}=32"), format!("{micro}=4"), "actor_rollout_ref.actor.use_dynamic_bsz=true".to_owned()].map(
            |size| {
                let more = [&options[..], &[&size, "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=40"]].concat();
                number(&last_step(folder.path(), &format!("{loss}-{}", size.len()), &more), "actor/grad_norm")
            },
        );
        assert!(norms.iter().all(|norm| (norm / norms[0] - 1.0).abs() < 1e-3), "{loss}: {norms:?}");
    }
}
