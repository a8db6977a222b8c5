//! OpenRLHF as a [`Peer`].

use super::{data, find, loss, optimizer, preference, reward, run, sft, size, table, table_engine, table_preference};
use crate::peers::{Draft, Peer, PeerOptions, PeerTrainer};
use burnish_config::compat::Kind;
use std::sync::LazyLock;

static OPTIONS: LazyLock<PeerOptions> = LazyLock::new(|| PeerOptions::read(include_str!("options.tsv")));

/// OpenRLHF.
pub static OPENRLHF: Peer = Peer {
    name: "OpenRLHF",
    command: "from-openrlhf",
    example: "ray job submit -- python3 -m openrlhf.cli.train_ppo_ray --…, deepspeed --module openrlhf.cli.train_sft --…",
    options: || &OPTIONS,
    rows: &[table_preference::ROWS, table::ROWS, table_engine::ROWS],
    trainers: &[
        PeerTrainer { name: "train_ppo_ray", kind: Kind::Rl, subcommand: "" },
        PeerTrainer { name: "train_ppo", kind: Kind::Rl, subcommand: "" },
        PeerTrainer { name: "train_sft", kind: Kind::Sft, subcommand: "sft" },
        PeerTrainer { name: "train_rm", kind: Kind::Rm, subcommand: "rm" },
        PeerTrainer { name: "train_prm", kind: Kind::Rm, subcommand: "rm" },
        PeerTrainer { name: "train_dpo", kind: Kind::Dpo, subcommand: "dpo" },
        PeerTrainer { name: "train_kto", kind: Kind::Dpo, subcommand: "dpo" },
        PeerTrainer { name: "train_kd", kind: Kind::Distill, subcommand: "distill" },
    ],
    script_options: &[],
    absent: &[
        ("serve_rm", "use `trainer serve-rm`, which accepts the same requests"),
        (
            "batch_inference",
            "use `trainer generate` for responses, `trainer eval` for scores, and `trainer data select` for new rows",
        ),
        ("interactive_chat", "use `trainer generate` for responses"),
        ("lora_combiner", "use `trainer export`, which merges adapters"),
    ],
    find: find::find,
    launch: find::launch,
    program: None,
    derive,
};

fn derive(draft: &mut Draft) {
    match draft.trainer.name {
        "train_sft" => sft::derive(draft),
        "train_rm" | "train_prm" => preference::reward(draft),
        "train_dpo" | "train_kto" => preference::derive(draft),
        "train_kd" => preference::distil(draft),
        _ => {
            size::derive(draft);
            loss::derive(draft);
            reward::derive(draft);
            data::derive(draft);
        }
    }
    optimizer::derive(draft);
    run::derive(draft);
}
