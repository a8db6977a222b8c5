//! Settings of conversations that have no effect with the other settings. See [`crate::job::unused_options`].

use super::start::{ENVIRONMENT, SERVER, TEXT_ENVIRONMENT, TOOLS};
use crate::job::unused_options::UnusedOption;
use burnish_config::schema::AgentKeys;

/// Stands for the user's loops.
const CUSTOM: &str = "";

const ALL: &[&str] = &[TOOLS, ENVIRONMENT, TEXT_ENVIRONMENT, SERVER, CUSTOM];
const NO_PARTIES: &str = "a response has only turns of the model: there are no tools, users or environments";

/// Each setting, the loops that read it, and why the others do not. The user's loops get all of `multi_turn` in their settings.
const READ_BY: &[(&str, &[&str], &str)] = &[
    ("actor_rollout_ref.rollout.multi_turn.max_assistant_turns", ALL, NO_PARTIES),
    ("actor_rollout_ref.rollout.multi_turn.max_user_turns", ALL, NO_PARTIES),
    ("actor_rollout_ref.rollout.agent.call_timeout", ALL, NO_PARTIES),
    ("actor_rollout_ref.rollout.agent.conversation_timeout", ALL, NO_PARTIES),
    ("actor_rollout_ref.rollout.agent.memory_limit_mb", ALL, NO_PARTIES),
    ("actor_rollout_ref.rollout.agent.start_method", ALL, NO_PARTIES),
    ("algorithm.turn_rewards", ALL, NO_PARTIES),
    (
        "actor_rollout_ref.rollout.agent.neutralise_control_tokens",
        &[TOOLS, ENVIRONMENT, SERVER, CUSTOM],
        "text_environment_agent appends the environment's text verbatim, including special tokens of the next turn",
    ),
    ("actor_rollout_ref.rollout.multi_turn.max_parallel_calls", &[TOOLS, CUSTOM], CALLS_OF_OTHERS),
    ("actor_rollout_ref.rollout.multi_turn.max_tool_response_length", &[TOOLS, CUSTOM], CALLS_OF_OTHERS),
    ("actor_rollout_ref.rollout.multi_turn.tool_response_truncate_side", &[TOOLS, CUSTOM], CALLS_OF_OTHERS),
    ("actor_rollout_ref.rollout.agent.tell_unreadable_calls", &[TOOLS], "only tool_agent can report them to the model"),
    ("actor_rollout_ref.rollout.multi_turn.format", &[TOOLS, ENVIRONMENT, SERVER, CUSTOM], "there are no tools to call"),
    (
        "actor_rollout_ref.rollout.agent.ignore_calls_in_thinking",
        &[TOOLS, SERVER, CUSTOM],
        "environment_agent reads turns as TRL does, and in other loops there are no tools to call",
    ),
    ("actor_rollout_ref.rollout.agent.server.name", &[SERVER], "no program leads conversations (agent.server.path is null)"),
    ("actor_rollout_ref.rollout.agent.server.scores", &[SERVER], "no program leads conversations (agent.server.path is null)"),
    (
        "actor_rollout_ref.rollout.agent.max_tool_calling_iterations",
        &[ENVIRONMENT],
        "only the loop of an environment counts as TRL does",
    ),
];
const CALLS_OF_OTHERS: &str = "environment_agent carries out every call and keeps every answer, as TRL does; \
                               in text_environment_agent there are no calls, and in server_agent the program carries them out";

/// Returns the settings of conversations that no loop of the run reads, by their keys in training.
pub fn of_conversations(keys: &AgentKeys) -> Vec<UnusedOption> {
    let mut loops: Vec<&str> =
        [TOOLS, ENVIRONMENT, TEXT_ENVIRONMENT, SERVER].into_iter().filter(|name| !keys.read_by(name).is_empty()).collect();
    loops.extend(keys.agent.agent_loop_config_path.is_some().then_some(CUSTOM));
    let chosen = (
        keys.multi_turn.enable && !keys.default_loop().by_enable,
        "actor_rollout_ref.rollout.multi_turn.enable",
        "only rows and agent.default_agent_loop choose the loop, and it names one, or multi_turn.enable has no loop to choose",
    );
    let unread = READ_BY.iter().map(|(key, readers, why)| {
        let why = if loops.is_empty() && readers.len() > 1 { NO_PARTIES } else { why };
        (!readers.iter().any(|reader| loops.contains(reader)), *key, why)
    });
    [chosen].into_iter().chain(unread).collect()
}
