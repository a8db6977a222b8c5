//! TRL as a [`Peer`].

use super::super::peers::{Draft, Options, Peer};
use super::{data, find, grpo, optimizer, original, run, sft, stages, table_model, table_rl, table_sft, table_trainer};
use std::sync::LazyLock;

static OPTIONS: LazyLock<Options> = LazyLock::new(|| Options::read(include_str!("options.tsv")));

/// TRL.
pub static TRL: Peer = Peer {
    name: "TRL",
    command: "from-trl",
    example: "trl grpo --model_name_or_path …, accelerate launch … grpo.py --…",
    options: || &OPTIONS,
    rows: &[table_rl::ROWS, table_sft::ROWS, table_model::ROWS, table_trainer::ROWS],
    trainers: stages::TRAINERS,
    absent: stages::ABSENT,
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
