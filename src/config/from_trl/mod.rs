//! `trainer from-trl`: converts a command line, a script or a YAML file of TRL into a recipe.
//!
//! The tables say what becomes of each option; what several options decide together is computed beside them, from the defaults of
//! TRL's own dataclasses: batch sizes, schedule, losses, rewards.

mod batch;
mod data;
mod find;
mod grpo;
mod optimizer;
mod original;
mod rewards;
mod run;
mod sft;
mod table_model;
mod table_rl;
mod table_sft;
mod table_trainer;

use super::compat::Kind;
use super::peers::{Draft, Options, Peer, Trainer};
use std::sync::LazyLock;

static OPTIONS: LazyLock<Options> = LazyLock::new(|| Options::read(include_str!("options.tsv")));

const NOT_REWARD: &str = "no reward model is trained here; one that exists scores with reward_model.enable=true";
const NOT_PAIRS: &str = "nothing is trained on pairs of responses; rewards and rloo, grpo or ppo do that part";
const NOT_TEACHER: &str = "there is no distillation";

/// TRL.
pub static TRL: Peer = Peer {
    name: "TRL",
    command: "from-trl",
    example: "trl grpo --model_name_or_path …, accelerate launch … grpo.py --…",
    options: || &OPTIONS,
    rows: &[table_rl::ROWS, table_sft::ROWS, table_model::ROWS, table_trainer::ROWS],
    trainers: &[
        Trainer { name: "rloo", kind: Kind::Rl, subcommand: "" },
        Trainer { name: "grpo", kind: Kind::Rl, subcommand: "" },
        Trainer { name: "ppo", kind: Kind::Rl, subcommand: "" },
        Trainer { name: "sft", kind: Kind::Sft, subcommand: "sft" },
    ],
    absent: &[
        ("reward reward_modeling prm", NOT_REWARD),
        ("dpo kto orpo cpo bco ipo nash_md xpo online_dpo dpo_online tpo", NOT_PAIRS),
        ("gkd gold distillation async_distillation minillm sdft sdpo ssd iw_opd server_distillation", NOT_TEACHER),
        ("async_grpo", "generation and training take turns: grpo is the same without the overlap"),
        ("vllm-serve vllm_serve", "the native engine generates, in the process that trains"),
        ("env chat skills", "it trains nothing"),
    ],
    find: find::find,
    launch: find::launch,
    derive,
};

fn derive(draft: &mut Draft) {
    let updates = match (draft.trainer.name, draft.values.has("response_length")) {
        ("sft", _) => {
            sft::derive(draft);
            1.0
        }
        (_, true) => {
            original::derive(draft);
            1.0
        }
        _ => grpo::derive(draft),
    };
    optimizer::derive(draft, updates);
    data::derive(draft);
    run::derive(draft, updates);
}
