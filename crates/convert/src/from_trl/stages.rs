//! The stages of TRL: those with a counterpart here, and the others.

use crate::peers::PeerTrainer;
use burnish_config::compat::Kind;

/// The trainers that have a counterpart here.
pub const TRAINERS: &[PeerTrainer] = &[
    PeerTrainer { name: "rloo", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "grpo", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "ppo", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "online_dpo", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "sft", kind: Kind::Sft, subcommand: "sft" },
    PeerTrainer { name: "dpo", kind: Kind::Dpo, subcommand: "dpo" },
    PeerTrainer { name: "kto", kind: Kind::Dpo, subcommand: "dpo" },
    PeerTrainer { name: "orpo", kind: Kind::Dpo, subcommand: "dpo" },
    PeerTrainer { name: "cpo", kind: Kind::Dpo, subcommand: "dpo" },
    PeerTrainer { name: "reward", kind: Kind::Rm, subcommand: "rm" },
    PeerTrainer { name: "gkd", kind: Kind::Distill, subcommand: "distill" },
];

const NOT_ONLINE: &str = "of the losses on one's own samples there is online DPO: `trainer from-trl` converts dpo_online.py";
const NOT_TEACHER: &str =
    "`trainer distill` learns from a teacher on given answers, and `distillation.*` of ppo_trainer.yaml on one's own";

/// The other commands, and what to do instead.
pub const ABSENT: &[(&str, &str)] = &[
    ("prm", "TRL has no such trainer any more; `trainer rm` with algorithm.loss_type=cross_entropy trains on judged steps"),
    ("ipo", "it is a loss of `trl dpo`: --loss_type ipo"),
    ("bco", "`trainer dpo` with algorithm.loss_type=kto is what TRL advises in its place"),
    ("tpo", "there is no loss on three answers"),
    ("nash_md xpo", NOT_ONLINE),
    ("gold distillation async_distillation minillm sdft sdpo ssd iw_opd server_distillation", NOT_TEACHER),
    ("async_grpo", "generation and training take turns: grpo is the same without the overlap"),
    ("vllm-serve vllm_serve", "the native engine generates, in the process that trains"),
    ("env chat skills", "it trains nothing"),
];
