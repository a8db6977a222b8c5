//! Starting points for the user's model and rows: the settings that people look at first, with their usual values.

use burnish_config::compat::Kind;

/// A starting point.
pub(super) struct Starter {
    pub name: &'static str,
    pub kind: Kind,
    pub goal: &'static str,
    /// Settings, their values as YAML, and comments.
    pub settings: &'static [&'static [Setting]],
}

pub(super) type Setting = (&'static str, &'static str, &'static str);

/// Rows of a step in the settings below; a file with fewer rows has one step per epoch.
pub(super) const RL_BATCH: usize = 64;
pub(super) const STAGE_BATCH: usize = 32;

/// Sizes of reinforcement learning.
const RL: &[Setting] = &[
    ("data.train_batch_size", "64", "prompts of a step"),
    ("actor_rollout_ref.actor.ppo_mini_batch_size", "64", "prompts of an update"),
    ("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "8", "responses in memory at once"),
    ("actor_rollout_ref.actor.optim.lr", "1e-6", "1e-5 to 1e-4 with LoRA"),
    ("trainer.total_epochs", "1", ""),
];

/// Several responses to each prompt, which are compared with each other.
const GROUPS: &[Setting] = &[("actor_rollout_ref.rollout.n", "8", "responses to each prompt")];

const STAGE: &[Setting] =
    &[("data.train_batch_size", "32", ""), ("data.micro_batch_size_per_gpu", "4", "rows in memory at once")];

const ONE_EPOCH: &[Setting] = &[("trainer.total_epochs", "1", "")];

const PREFERENCES: &[Setting] = &[
    ("optim.lr", "1e-6", "1e-5 with LoRA"),
    ("algorithm.beta", "0.1", "a larger value keeps the policy closer to the reference"),
];

pub(super) const STARTERS: &[Starter] = &[
    Starter {
        name: "grpo",
        kind: Kind::Rl,
        goal: "reinforcement learning; responses to one prompt are compared with each other",
        settings: &[&[("algorithm.adv_estimator", "grpo", "")], GROUPS, RL],
    },
    Starter {
        name: "rloo",
        kind: Kind::Rl,
        goal: "reinforcement learning; each response is compared with the mean of the others",
        settings: &[&[("algorithm.adv_estimator", "rloo", "")], GROUPS, RL],
    },
    Starter {
        name: "ppo",
        kind: Kind::Rl,
        goal: "reinforcement learning with a critic",
        settings: &[
            &[
                ("algorithm.adv_estimator", "gae", ""),
                ("actor_rollout_ref.rollout.n", "1", "responses to each prompt"),
                ("critic.optim.lr", "1e-5", ""),
            ],
            RL,
        ],
    },
    Starter {
        name: "sft",
        kind: Kind::Sft,
        goal: "supervised fine-tuning on conversations, prompts with responses, or texts",
        settings: &[STAGE, &[("optim.lr", "1e-5", "1e-4 with LoRA"), ("trainer.total_epochs", "2", "")]],
    },
    Starter {
        name: "dpo",
        kind: Kind::Dpo,
        goal: "learn from pairs of a better and a worse response",
        settings: &[STAGE, PREFERENCES, ONE_EPOCH],
    },
    Starter {
        name: "kto",
        kind: Kind::Dpo,
        goal: "learn from responses that are labelled good or bad",
        settings: &[&[("algorithm.loss_type", "kto", "")], STAGE, PREFERENCES, ONE_EPOCH],
    },
    Starter {
        name: "rm",
        kind: Kind::Rm,
        goal: "a reward model of pairs of responses, or of judged steps",
        settings: &[STAGE, &[("optim.lr", "1e-5", "")], ONE_EPOCH],
    },
    Starter {
        name: "distill",
        kind: Kind::Distill,
        goal: "a small model learns the distribution of a large one; the model is the small one",
        settings: &[STAGE, &[("optim.lr", "1e-5", "")], ONE_EPOCH],
    },
];
