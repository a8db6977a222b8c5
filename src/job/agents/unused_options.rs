//! Settings of conversations that have no effect beside the others. See [`crate::job::unused_options`].

use crate::config::schema::AgentKeys;
use crate::job::unused_options::UnusedOption;

/// Settings of conversations, where there are none, or none with calls of tools; by their keys in training.
pub fn of_conversations(keys: &AgentKeys) -> Vec<UnusedOption> {
    let alone = (!keys.has_any(), "nobody but the model speaks in a response: there are no tools, users or environments");
    let no_calls = (!keys.has_calls(), "there are no tools to call");
    let not_ours = (!keys.carries_out(), "there are no tools to call, but for those that a program carries out itself");
    let no_program = (keys.agent.server.path.is_none(), "there is no program that leads conversations (agent.server.path)");
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
        (not_ours, "actor_rollout_ref.rollout.multi_turn.max_parallel_calls"),
        (not_ours, "actor_rollout_ref.rollout.multi_turn.max_tool_response_length"),
        (not_ours, "actor_rollout_ref.rollout.multi_turn.tool_response_truncate_side"),
        (no_calls, "actor_rollout_ref.rollout.multi_turn.format"),
        (no_program, "actor_rollout_ref.rollout.agent.server.name"),
        (no_program, "actor_rollout_ref.rollout.agent.server.scores"),
        (no_environment, "actor_rollout_ref.rollout.agent.max_tool_calling_iterations"),
        (no_calls, "actor_rollout_ref.rollout.agent.ignore_calls_in_thinking"),
        (not_ours, "actor_rollout_ref.rollout.agent.tell_unreadable_calls"),
    ];
    rows.into_iter().map(|((unused, reason), key)| (unused, key, reason)).collect()
}
