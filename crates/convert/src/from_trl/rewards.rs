//! Converts the rewards of today's RLOO and GRPO trainers.

use crate::peers::{Draft, int, list, map, text};
use burnish_hydra::Value;

/// TRL's own reward functions, with our names.
const FUNCTIONS: &[(&str, &str)] = &[
    ("accuracy_reward", "accuracy_reward"),
    ("reasoning_accuracy_reward", "reasoning_accuracy_reward"),
    ("think_format_reward", "think_format_reward"),
    ("get_soft_overlong_punishment", "soft_overlong_punishment_reward"),
];

pub(super) fn derive(draft: &mut Draft) {
    let mut names = vec![];
    if draft.values.text("reward_model_name_or_path").is_some() {
        draft.set("reward_model.enable", Value::Bool(true), "reward_model_name_or_path");
        draft.copy("reward_model.model.path", "reward_model_name_or_path");
        names.push("reward_model".to_string());
    }
    let (mut own, mut unknown): (Vec<(String, String)>, Vec<String>) = (vec![], vec![]);
    for item in draft.values.items("reward_funcs") {
        let Value::Text(name) = item else { continue };
        if let Some((there, here)) = FUNCTIONS.iter().find(|(there, _)| *there == name) {
            names.push(here.to_string());
            if *there == "get_soft_overlong_punishment" {
                let arguments = map([("max_completion_len", int(1280)), ("soft_punish_cache", int(256))]);
                draft.set("reward.function_kwargs", map([(*here, arguments)]), "reward_funcs");
            }
        } else if let Some((module, function)) = name.rsplit_once('.') {
            names.push(function.to_string());
            own.push((format!("{}.py", module.replace('.', "/")), function.to_string()));
        } else {
            unknown.push(format!("`{name}`"));
        }
    }
    if !unknown.is_empty() {
        draft.refuse("reward_funcs", format!("must be functions of TRL or module.function, not {}", unknown.join(", ")));
    }
    if let Some((file, _)) = own.first().cloned() {
        if own.iter().any(|(other, _)| *other != file) {
            draft.refuse("reward_funcs", "only one Python file is supported: put all your functions into it");
        }
        draft.set("custom_reward_function.path", text(file), "reward_funcs");
        let functions = own.into_iter().map(|(_, function)| text(function)).collect::<Vec<_>>();
        let functions = if let [one] = functions.as_slice() { one.clone() } else { list(functions) };
        draft.set("custom_reward_function.name", functions, "reward_funcs");
    }
    if names.is_empty() {
        let message = match &draft.call.script {
            Some(script) => {
                format!("Python file with the reward functions of {script}; set their names as custom_reward_function.name")
            }
            None => {
                "Python file of a reward function; set its name as custom_reward_function.name: the command has no reward".into()
            }
        };
        return draft.ask_user("custom_reward_function.path", message);
    }
    let is_alone = names.len() == 1;
    // A single custom function or reward model needs no list.
    if !(is_alone && (draft.settings.contains_key("custom_reward_function.path") || names[0] == "reward_model")) {
        draft.set("reward_model.reward_functions", list(names.into_iter().map(text)), "reward_model_name_or_path reward_funcs");
    }
}
