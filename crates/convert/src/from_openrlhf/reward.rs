//! Converts the options of rewards and of dynamic filtering.

use super::loss::range;
use crate::peers::{Draft, float, int, one_or_list, text};
use burnish_hydra::Value;

const MODEL: &str = "reward.model_name_or_path reward_pretrain";
const REMOTE: &str = "reward.remote_url remote_rm_url";
const AGENT: &str = "train.agent_func_path agent_func_path";
const OVERLONG: &str = "reward.overlong_buffer_len overlong_buffer_len";
const FILTER: &str = "algo.dynamic_filtering_enable dynamic_filtering";

pub(super) fn derive(draft: &mut Draft) {
    let reward_model = draft.values.text(MODEL).map(|names| names.split(',').map(str::to_string).collect::<Vec<_>>());
    let agent = draft.values.text(AGENT);
    match draft.values.text(REMOTE).filter(|_| agent.is_none()) {
        _ if agent.is_some() => {
            draft.copy("actor_rollout_ref.rollout.agent.agent_func_path", AGENT);
            draft.set("actor_rollout_ref.rollout.agent.default_agent_loop", text("text_environment_agent"), AGENT);
        }
        Some(file) if file.ends_with(".py") => {
            draft.set("custom_reward_function.path", text(file), REMOTE);
            draft.set_because("custom_reward_function.name", text("reward_func"), "OpenRLHF's name");
        }
        Some(urls) => {
            let urls = urls.split(',').map(|url| url.trim().to_string()).collect();
            draft.set("reward_model.remote_url", one_or_list(urls), REMOTE);
        }
        None => match &reward_model {
            Some(models) => {
                draft.set("reward_model.enable", Value::Bool(true), MODEL);
                draft.set("reward_model.model.path", text(models[0].clone()), MODEL);
                draft.set_because(
                    "reward_model.model.input_tokenizer",
                    Value::Null,
                    "OpenRLHF's reward model reads the policy's tokens",
                );
                if models.len() > 1 {
                    draft.refuse(MODEL, "only one reward model is supported; serve others with `trainer serve-rm`");
                }
            }
            None => draft.ask_user("reward_model.model.path", "folder of the reward model: the command does not name a reward"),
        },
    }
    critic(draft, reward_model.as_ref().map(|models| models[0].as_str()));
    if let Some(length) = draft.values.number(OVERLONG) {
        let key = |name: &str| format!("reward_model.reward_kwargs.overlong_buffer_cfg.{name}");
        draft.set("reward_model.reward_manager", text("dapo"), OVERLONG);
        draft.set(&key("enable"), Value::Bool(true), OVERLONG);
        draft.set(&key("len"), int(length as i64), OVERLONG);
        draft.copy(&key("penalty_factor"), "reward.overlong_penalty_factor overlong_penalty_factor");
    }
    if draft.values.flag(FILTER) {
        draft.set("algorithm.filter_groups.enable", Value::Bool(true), FILTER);
        draft.set("algorithm.filter_groups.metric", text("seq_reward"), FILTER);
        let names = "algo.dynamic_filtering_range dynamic_filtering_reward_range";
        if let Some(range) = range(draft, names) {
            draft.set("algorithm.filter_groups.mean_range", range, names);
        }
        draft.copy("data.gen_batch_size", "rollout.vllm_generate_batch_size vllm_generate_batch_size");
    }
}

/// Sets the critic's model, if there is a critic.
fn critic(draft: &mut Draft, reward_model: Option<&str>) {
    let estimator = draft.values.text("algo.advantage.estimator advantage_estimator");
    if estimator.is_some_and(|name| name != "gae") {
        return;
    }
    let names = "critic.model_name_or_path critic_pretrain";
    if draft.values.text(names).is_some() {
        draft.copy("critic.model.path", names);
    } else if let Some(model) = reward_model.filter(|_| draft.values.text(REMOTE).is_none()) {
        draft.set("critic.model.path", text(model), MODEL);
    }
    let wide = draft.values.number("critic.value_clip value_clip").unwrap_or(0.5);
    draft.set("critic.cliprange_value", float(wide), "critic.value_clip value_clip");
}
