//! The files of `config/`, built into the program.

/// Path inside `config/`, without `.yaml`, and text. A test compares this table with the folder.
pub const FILES: &[(&str, &str)] = &[
    ("actor/dp_actor", include_str!("../../config/actor/dp_actor.yaml")),
    ("algorithm/default", include_str!("../../config/algorithm/default.yaml")),
    ("critic/dp_critic", include_str!("../../config/critic/dp_critic.yaml")),
    ("data/legacy_data", include_str!("../../config/data/legacy_data.yaml")),
    ("model/hf_model", include_str!("../../config/model/hf_model.yaml")),
    ("optim/adamw", include_str!("../../config/optim/adamw.yaml")),
    ("ppo_trainer", include_str!("../../config/ppo_trainer.yaml")),
    ("ref/dp_ref", include_str!("../../config/ref/dp_ref.yaml")),
    ("reward_model/dp_reward_model", include_str!("../../config/reward_model/dp_reward_model.yaml")),
    ("rollout/rollout", include_str!("../../config/rollout/rollout.yaml")),
    ("sft_trainer", include_str!("../../config/sft_trainer.yaml")),
    ("trainer/default", include_str!("../../config/trainer/default.yaml")),
];
