//! Converts the options of the IW-OPD trainer: a teacher judges the responses that the policy samples.

use super::{batch, grpo, teacher};
use crate::peers::{Draft, int, text};

const UPDATE: &str = "per_device_train_batch_size per_gpu_train_batch_size gradient_accumulation_steps num_generations";

/// Converts TRL's IW-OPD command, and returns the number of updates in a step.
pub(super) fn derive(draft: &mut Draft) -> f64 {
    sizes(draft);
    lengths(draft);
    teacher::other_model(draft);
    teacher::alone(draft, "IWOPDTrainer");
    teacher::without_rewards(draft, "IWOPDTrainer");
    draft.set_because("@actor.loss_agg_mode", text("token-mean"), "IWOPDTrainer");
    draft.set_because("data.prompt_key", text("messages"), "IWOPDTrainer's column");
    draft.note(
        "IWOPDTrainer leaves out a last message of the assistant in the column `messages`: remove such messages from the rows, or set \
        data.prompt_key",
    );
    loss(draft);
    if draft.values.number("lmbda").is_some_and(|share| share < 1.0) {
        draft.refuse("lmbda", "every response is the policy's; `trainer distill` learns from given texts");
    }
    grpo::shown(draft);
    1.0
}

/// Sets the batch. `generation_batch_size` counts the prompts of one process.
fn sizes(draft: &mut Draft) {
    let count = |names: &str| draft.values.count(names).unwrap_or(1);
    let each = draft.values.count("per_gpu_train_batch_size").unwrap_or_else(|| count("per_device_train_batch_size"));
    let (local, n) = (each.saturating_mul(count("gradient_accumulation_steps")), count("num_generations"));
    let prompts = draft.values.count("generation_batch_size").unwrap_or(local / n).max(1);
    if prompts.saturating_mul(n) != local {
        let name = if draft.values.is_set("generation_batch_size") { "generation_batch_size" } else { "num_generations" };
        let reason = format!(
            "a process has {local} responses in an update (per_device_train_batch_size times gradient_accumulation_steps); this must be \
            generation_batch_size times num_generations, {prompts} times {n}"
        );
        draft.refuse(name, reason);
    }
    let all = prompts.saturating_mul(draft.processes);
    draft.set("data.train_batch_size", int(all), &format!("{UPDATE} generation_batch_size"));
    draft.set("@actor.ppo_mini_batch_size", int(all), &format!("{UPDATE} generation_batch_size"));
    batch::micro_batches(draft, each, "per_device_train_batch_size per_gpu_train_batch_size");
    draft.set("actor_rollout_ref.rollout.n", int(n), "num_generations");
}

/// Sets the lengths of prompts and responses. Without a length of prompts, TRL takes what `max_length` leaves for them.
fn lengths(draft: &mut Draft) {
    draft.copy("data.max_response_length", "max_completion_length");
    let given = draft.values.count("max_prompt_length");
    let response = draft.values.count("max_completion_length").unwrap_or(512);
    match given.or_else(|| Some(draft.values.count("max_length")?.saturating_sub(response))) {
        None => grpo::no_limit(draft),
        Some(0) => draft.refuse("max_length", format!("must be above max_completion_length, which is {response}")),
        Some(length) => {
            let names = if given.is_some() { "max_prompt_length" } else { "max_length max_completion_length" };
            draft.set("data.max_prompt_length", int(length), names);
            draft.set_because(
                "data.truncation",
                text("right"),
                "truncation_side of a tokenizer, if tokenizer_config.json has none",
            );
        }
    }
}

/// Sets the distance from the teacher.
fn loss(draft: &mut Draft) {
    let objective = draft.values.text("distillation_objective").unwrap_or_else(|| "iw_opd".into());
    match objective.as_str() {
        "iw_opd" => {
            draft.set(&teacher::loss("loss_mode"), text("iw_opd"), "distillation_objective");
            draft.copy(&teacher::loss("iw_opd_gamma"), "iw_opd_gamma");
            draft.copy(&teacher::loss("iw_opd_epsilon"), "iw_opd_epsilon");
            sampled(draft);
        }
        "jsd" => divergence(draft),
        _ => draft.refuse("distillation_objective", "supported are iw_opd and jsd"),
    }
}

/// Sets the distribution that the log-probabilities of sampled tokens are of. Without vLLM, TRL computes them itself, and knows no
/// cut distribution.
fn sampled(draft: &mut Draft) {
    let number = |name: &str, default: f64| draft.values.number(name).unwrap_or(default);
    let is_cut = number("top_p", 1.0) < 1.0 || number("top_k", 0.0) > 0.0;
    if !is_cut || draft.values.flag("use_vllm") {
        return;
    }
    if number("temperature", 1.0) == 1.0 {
        let why = "without vLLM, TRL's log-probabilities are of the whole distribution";
        draft.set_because("actor_rollout_ref.rollout.logprobs_mode", text("raw_logprobs"), why);
    } else {
        draft.differ(
            "top_p, top_k: log-probabilities of sampled tokens are of the distribution that is sampled; TRL's, without vLLM, are of \
             the whole one",
        );
    }
}

/// Sets the divergence on the most probable tokens.
fn divergence(draft: &mut Draft) {
    let beta = draft.values.number("beta").unwrap_or(1.0);
    teacher::divergence(draft, beta, "distillation_objective beta", "beta");
    let tokens = draft.values.number("loss_top_k").unwrap_or(1.0);
    if beta > 0.0 && tokens == 1.0 {
        draft.refuse("loss_top_k", "with beta above 0, TRL compares the sampled token only: set 0 for all tokens, or 2 or more");
    }
    draft.copy(&teacher::loss("loss_top_k"), "loss_top_k");
    if tokens > 0.0 {
        draft.copy(&teacher::loss("loss_add_tail"), "loss_add_tail");
    }
}
