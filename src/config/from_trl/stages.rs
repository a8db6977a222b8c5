//! The stages of TRL: those with a counterpart here, and the others.

use super::super::compat::Kind;
use super::super::peers::Trainer;

const NOT_REWARD: &str = "no reward model is trained here; one that exists scores with reward_model.enable=true";
const NOT_PAIRS: &str = "nothing is trained on pairs of responses; rewards and rloo, grpo or ppo do that part";
const NOT_TEACHER: &str = "there is no distillation";

/// The trainers that have a counterpart here.
pub const TRAINERS: &[Trainer] = &[
    Trainer { name: "rloo", kind: Kind::Rl, subcommand: "" },
    Trainer { name: "grpo", kind: Kind::Rl, subcommand: "" },
    Trainer { name: "ppo", kind: Kind::Rl, subcommand: "" },
    Trainer { name: "sft", kind: Kind::Sft, subcommand: "sft" },
];

/// The other commands, and what to do instead.
pub const ABSENT: &[(&str, &str)] = &[
    ("reward reward_modeling prm", NOT_REWARD),
    ("dpo kto orpo cpo bco ipo nash_md xpo online_dpo dpo_online tpo", NOT_PAIRS),
    ("gkd gold distillation async_distillation minillm sdft sdpo ssd iw_opd server_distillation", NOT_TEACHER),
    ("async_grpo", "generation and training take turns: grpo is the same without the overlap"),
    ("vllm-serve vllm_serve", "the native engine generates, in the process that trains"),
    ("env chat skills", "it trains nothing"),
];
