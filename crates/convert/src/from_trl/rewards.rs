//! Converts the rewards of today's RLOO and GRPO trainers.

use crate::peers::{Draft, ProgramReward, int, list, map, text};
use burnish_hydra::Value;

/// TRL's own reward functions, with our names.
const FUNCTIONS: &[(&str, &str)] = &[
    ("accuracy_reward", "accuracy_reward"),
    ("reasoning_accuracy_reward", "reasoning_accuracy_reward"),
    ("think_format_reward", "think_format_reward"),
    ("get_soft_overlong_punishment", "soft_overlong_punishment_reward"),
];

/// The arguments of TRL's `get_soft_overlong_punishment`, with its defaults.
const OVERLONG: &[(&str, i64)] = &[("max_completion_len", 1280), ("soft_punish_cache", 256)];

pub(super) fn derive(draft: &mut Draft) {
    let of_program = draft.program.as_ref().and_then(|program| program.rewards.clone()).filter(|rewards| !rewards.is_empty());
    let why = if of_program.is_some() { "reward_funcs" } else { "" };
    let rewards = of_program.unwrap_or_else(|| of_options(draft));
    let models: Vec<&String> =
        rewards.iter().filter_map(|one| if let ProgramReward::Model(path) = one { Some(path) } else { None }).collect();
    if let Some(path) = models.first() {
        set(draft, "reward_model.enable", Value::Bool(true), why);
        set(draft, "reward_model.model.path", text((*path).clone()), why);
    }
    if models.len() > 1 {
        draft.refuse("reward_funcs", format!("only one reward model is supported, not also {}", models[1]));
    }
    let mut names = vec![];
    let mut functions: Vec<(String, String)> = vec![];
    for reward in &rewards {
        match reward {
            ProgramReward::Model(_) if names.iter().any(|name| name == "reward_model") => {}
            ProgramReward::Model(_) => names.push("reward_model".to_string()),
            ProgramReward::Function { file, name } => {
                names.push(name.clone());
                functions.push((file.clone(), name.clone()));
            }
            ProgramReward::Library(name, arguments) => match FUNCTIONS.iter().find(|(there, _)| there == name) {
                Some((there, here)) => {
                    names.push(here.to_string());
                    if *there == "get_soft_overlong_punishment" {
                        let value =
                            |name: &str| arguments.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
                        let arguments = OVERLONG.iter().map(|(name, default)| (*name, value(name).unwrap_or(int(*default))));
                        set(draft, "reward.function_kwargs", map([(*here, map(arguments))]), why);
                    }
                }
                None => draft.refuse("reward_funcs", format!("must be functions of TRL or module.function, not `{name}`")),
            },
        }
    }
    if let Some((file, _)) = functions.first().cloned() {
        if functions.iter().any(|(other, _)| *other != file) {
            draft.refuse("reward_funcs", "only one Python file is supported: put all your functions into it");
        }
        set(draft, "custom_reward_function.path", text(file), why);
        let functions = functions.into_iter().map(|(_, function)| text(function)).collect::<Vec<_>>();
        let functions = if let [one] = functions.as_slice() { one.clone() } else { list(functions) };
        set(draft, "custom_reward_function.name", functions, why);
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
        set(draft, "reward_model.reward_functions", list(names.into_iter().map(text)), why);
    }
}

/// Returns the rewards that options name.
fn of_options(draft: &Draft) -> Vec<ProgramReward> {
    let model = draft.values.text("reward_model_name_or_path").map(ProgramReward::Model);
    let function = |item: Value| {
        let Value::Text(name) = item else { return None };
        let is_library = FUNCTIONS.iter().any(|(there, _)| *there == name);
        Some(match name.rsplit_once('.').filter(|_| !is_library) {
            Some((module, function)) => {
                ProgramReward::Function { file: format!("{}.py", module.replace('.', "/")), name: function.to_string() }
            }
            None => ProgramReward::Library(name, vec![]),
        })
    };
    model.into_iter().chain(draft.values.items("reward_funcs").into_iter().filter_map(function)).collect()
}

/// Sets a key; an empty reason stands for the options.
fn set(draft: &mut Draft, key: &str, value: Value, why: &str) {
    if why.is_empty() {
        draft.set(key, value, "reward_model_name_or_path reward_funcs");
    } else {
        draft.set_because(key, value, why);
    }
}
