//! The supported and unsupported trainers of TRL.

use crate::peers::PeerTrainer;
use burnish_config::compat::Kind;

/// The supported trainers.
pub(super) const TRAINERS: &[PeerTrainer] = &[
    PeerTrainer { name: "rloo", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "grpo", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "ppo", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "online_dpo", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "a2po", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "iw_opd", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "sdft", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "sdpo", kind: Kind::Rl, subcommand: "" },
    PeerTrainer { name: "sft", kind: Kind::Sft, subcommand: "sft" },
    PeerTrainer { name: "dpo", kind: Kind::Dpo, subcommand: "dpo" },
    PeerTrainer { name: "kto", kind: Kind::Dpo, subcommand: "dpo" },
    PeerTrainer { name: "orpo", kind: Kind::Dpo, subcommand: "dpo" },
    PeerTrainer { name: "cpo", kind: Kind::Dpo, subcommand: "dpo" },
    PeerTrainer { name: "tpo", kind: Kind::Dpo, subcommand: "dpo" },
    PeerTrainer { name: "reward", kind: Kind::Rm, subcommand: "rm" },
    PeerTrainer { name: "gkd", kind: Kind::Distill, subcommand: "distill" },
    PeerTrainer { name: "gold", kind: Kind::Distill, subcommand: "distill" },
];

const NOT_ONLINE: &str = "online DPO is similar: `trainer from-trl` converts dpo_online.py";
const NOT_TEACHER: &str = "`trainer distill` distils on responses from the data, `distillation.*` of ppo_trainer.yaml on the model's own responses, also by sampled_token and iw_opd";

/// The unsupported commands, with alternatives.
pub(super) const ABSENT: &[(&str, &str)] = &[
    ("prm", "TRL has removed it; `trainer rm` with algorithm.loss_type=cross_entropy trains on judged steps"),
    ("ipo", "use `trl dpo --loss_type ipo`"),
    ("bco", "TRL recommends KTO instead: `trainer dpo` with algorithm.loss_type=kto"),
    ("nash_md xpo", NOT_ONLINE),
    ("distillation async_distillation minillm ssd server_distillation self_distillation", NOT_TEACHER),
    (
        "dppo gfpo gmpo papo grpo_with_replay_buffer",
        "convert the command as `trl grpo`, and choose a similar loss (docs/algorithms.md)",
    ),
    ("iterative_sft", "use `trainer sft` for the rows of each round"),
    ("async_grpo", "use grpo, which is the same without the overlap of generation and training"),
    ("vllm-serve vllm_serve", "the built-in engine generates in the training process"),
    ("env chat skills", "this command does not train"),
];
