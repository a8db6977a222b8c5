//! TRL as a [`Peer`].

use super::{
    a2po, data, distill, find, gold, grpo, iw_opd, online_dpo, optimizer, original, preference, program, run, self_distill, sft,
    stages, table_distill, table_model, table_preference, table_rl, table_sft, table_trainer,
};
use crate::peers::{Draft, Peer, PeerOptions};
use std::sync::LazyLock;

static OPTIONS: LazyLock<PeerOptions> = LazyLock::new(|| PeerOptions::read(include_str!("options.tsv")));

/// TRL.
pub static TRL: Peer = Peer {
    name: "TRL",
    command: "from-trl",
    example: "trl grpo --model_name_or_path …, accelerate launch … grpo.py --…",
    options: || &OPTIONS,
    rows: &[table_distill::ROWS, table_preference::ROWS, table_rl::ROWS, table_sft::ROWS, table_model::ROWS, table_trainer::ROWS],
    trainers: stages::TRAINERS,
    script_options: &["reward_funcs", "reward_model_name_or_path", "dataset_name", "dataset_config", "datasets"],
    absent: stages::ABSENT,
    find: find::find,
    launch: find::launch,
    program: Some(program::read),
    derive,
};

fn derive(draft: &mut Draft) {
    let updates = match (draft.trainer.name, draft.values.has("response_length")) {
        ("sft", _) => once(sft::derive, draft),
        ("dpo" | "kto" | "orpo" | "cpo" | "tpo", _) => once(preference::derive, draft),
        ("reward", _) => once(preference::reward, draft),
        ("gkd", _) => once(distill::derive, draft),
        ("gold", _) => once(gold::derive, draft),
        ("a2po", _) => a2po::derive(draft),
        ("iw_opd", _) => iw_opd::derive(draft),
        ("sdft", _) => self_distill::sdft(draft),
        ("sdpo", _) => self_distill::sdpo(draft),
        ("online_dpo", _) => online_dpo::derive(draft),
        (_, true) => once(original::derive, draft),
        _ => grpo::derive(draft),
    };
    optimizer::derive(draft, updates);
    data::derive(draft);
    run::derive(draft, updates);
}

/// Derives a trainer whose step is one update.
fn once(derive: fn(&mut Draft), draft: &mut Draft) -> f64 {
    derive(draft);
    1.0
}
