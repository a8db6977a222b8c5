//! Checks of generation that the types cannot express.

use super::ppo::{ADV_ESTIMATOR, PpoConfig};
use crate::Report;
use burnish_registry::Need;

/// Checks that the settings of generation agree with the estimator, with `data`, and with each other.
pub(super) fn rollout(config: &PpoConfig, report: &mut Report) {
    let (data, rollout) = (&config.data, &config.actor_rollout_ref.rollout);
    let estimator = config.algorithm.adv_estimator.as_str();
    let compares = config.reads_advantages() && report.choices.needs(ADV_ESTIMATOR, estimator, Need::Group);
    if rollout.n == 1 && compares {
        report.wrong(
            "actor_rollout_ref.rollout.n",
            format!("`{estimator}` compares the responses to one prompt, but `actor_rollout_ref.rollout.n` is 1"),
            "write actor_rollout_ref.rollout.n=2 or more, or algorithm.adv_estimator=reinforce_plus_plus",
        );
    }
    if !rollout.do_sample && compares {
        report.wrong(
            "actor_rollout_ref.rollout.do_sample",
            format!("`{estimator}` compares the responses to one prompt, which are all the same without sampling"),
            "write actor_rollout_ref.rollout.do_sample=true",
        );
    }
    let mirrors = [
        ("actor_rollout_ref.rollout.prompt_length", rollout.prompt_length, "data.max_prompt_length", data.max_prompt_length),
        (
            "actor_rollout_ref.rollout.response_length",
            rollout.response_length,
            "data.max_response_length",
            data.max_response_length,
        ),
    ];
    for (key, value, master, expected) in mirrors {
        if value != expected {
            report.wrong(
                key,
                format!("`{key}` is {value}, but `{master}` is {expected}"),
                format!("set only {master}, and remove {key}"),
            );
        }
    }
    let group = "actor_rollout_ref.rollout";
    let longest = (data.max_prompt_length, data.max_response_length);
    lengths(group, longest, rollout.min_tokens, rollout.max_model_len, report);
    stop_strings("actor_rollout_ref.rollout.stop", &rollout.stop, report);
    rollout.token_rules().check("actor_rollout_ref.rollout", report);
}

/// Checks the minimum and maximum length of a response, and the maximum length of a prompt and a response together.
pub(super) fn lengths(
    group: &str,
    (prompt, response): (usize, usize),
    min_tokens: usize,
    max_model_len: Option<usize>,
    report: &mut Report,
) {
    if min_tokens > response {
        let key = format!("{group}.min_tokens");
        report.wrong(&key, format!("`{key}` is {min_tokens}, but a response has at most {response} tokens"), "");
    }
    if let Some(max) = max_model_len.filter(|&max| max <= prompt) {
        let key = format!("{group}.max_model_len");
        let message = format!("`{key}` is {max}, which leaves no room for a response to a prompt of {prompt} tokens");
        report.wrong(&key, message, format!("write {key}={} or more, or null", prompt + 1));
    }
}

/// Refuses an empty stop string, which would end every response immediately.
pub(super) fn stop_strings(key: &str, stop: &[String], report: &mut Report) {
    if stop.iter().any(String::is_empty) {
        report.wrong(key, format!("`{key}` has an empty text"), "");
    }
}
