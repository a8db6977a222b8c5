//! Settings of conversations that have no effect beside the others. See [`super::unused_options`].

use crate::config::schema::PpoConfig;
use crate::job::unused_options::UnusedOption;

/// Settings of conversations, where there are none, or none with calls of tools.
pub fn of_conversations(config: &PpoConfig) -> Vec<UnusedOption> {
    let keys = config.actor_rollout_ref.rollout.conversations();
    let alone = (!keys.has_any(), "nobody but the model speaks in a response: there are no tools, users or environments");
    let no_calls = (!keys.has_calls(), "there are no tools to call");
    let no_environment = (keys.agent.environment.path.is_none(), "only the loop of an environment counts as TRL does");
    let chosen = (
        keys.multi_turn.enable && !keys.default_loop().by_enable,
        "rows and agent.default_agent_loop alone choose the loop, and the latter names one or there is none for it",
    );
    let rows = [
        (chosen, "actor_rollout_ref.rollout.multi_turn.enable"),
        (alone, "actor_rollout_ref.rollout.multi_turn.max_assistant_turns"),
        (alone, "actor_rollout_ref.rollout.multi_turn.max_user_turns"),
        (alone, "actor_rollout_ref.rollout.agent.call_timeout"),
        (alone, "actor_rollout_ref.rollout.agent.conversation_timeout"),
        (alone, "actor_rollout_ref.rollout.agent.memory_limit_mb"),
        (alone, "actor_rollout_ref.rollout.agent.neutralise_control_tokens"),
        (alone, "algorithm.turn_rewards"),
        (no_calls, "actor_rollout_ref.rollout.multi_turn.max_parallel_calls"),
        (no_calls, "actor_rollout_ref.rollout.multi_turn.max_tool_response_length"),
        (no_calls, "actor_rollout_ref.rollout.multi_turn.tool_response_truncate_side"),
        (no_calls, "actor_rollout_ref.rollout.multi_turn.format"),
        (no_environment, "actor_rollout_ref.rollout.agent.max_tool_calling_iterations"),
        (no_calls, "actor_rollout_ref.rollout.agent.ignore_calls_in_thinking"),
        (no_calls, "actor_rollout_ref.rollout.agent.tell_unreadable_calls"),
    ];
    rows.into_iter().map(|((unused, reason), key)| (unused, key, reason)).collect()
}
