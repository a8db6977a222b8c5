//! OpenRLHF as a [`Peer`].

use super::super::compat::Kind;
use super::super::peers::{Draft, Options, Peer, Trainer};
use super::{data, find, loss, optimizer, reward, run, sft, size, table, table_engine};
use std::sync::LazyLock;

static OPTIONS: LazyLock<Options> = LazyLock::new(|| Options::read(include_str!("options.tsv")));

const NOT_PAIRS: &str = "nothing is trained on pairs of responses; rewards and train_ppo_ray do that part";

/// OpenRLHF.
pub static OPENRLHF: Peer = Peer {
    name: "OpenRLHF",
    command: "from-openrlhf",
    example: "ray job submit -- python3 -m openrlhf.cli.train_ppo_ray --…, deepspeed --module openrlhf.cli.train_sft --…",
    options: || &OPTIONS,
    rows: &[table::ROWS, table_engine::ROWS],
    trainers: &[
        Trainer { name: "train_ppo_ray", kind: Kind::Rl, subcommand: "" },
        Trainer { name: "train_ppo", kind: Kind::Rl, subcommand: "" },
        Trainer { name: "train_sft", kind: Kind::Sft, subcommand: "sft" },
    ],
    absent: &[
        ("train_rm train_prm", "no reward model is trained here; one that exists scores with reward_model.enable=true"),
        ("train_dpo train_kto", NOT_PAIRS),
        ("train_kd", "there is no distillation"),
        ("serve_rm", "`trainer serve-rm` answers the same requests"),
        ("batch_inference interactive_chat", "`trainer generate` writes responses"),
        ("lora_combiner", "`trainer export` merges adapters"),
    ],
    find: find::find,
    launch: find::launch,
    derive,
};

fn derive(draft: &mut Draft) {
    if draft.is_sft() {
        sft::derive(draft);
    } else {
        size::derive(draft);
        loss::derive(draft);
        reward::derive(draft);
        data::derive(draft);
    }
    optimizer::derive(draft);
    run::derive(draft);
}
