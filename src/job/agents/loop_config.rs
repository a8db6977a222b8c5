//! What agent loops of the user's own see of the settings.

use serde_json::Value;

use burnish_config::schema::AgentKeys;

/// `sections` (`data`, `actor_rollout_ref` and others) with the names that verl's rollout has beside ours; null without such
/// loops.
pub fn config_of_own_loops(keys: &AgentKeys, lengths: (usize, usize), sections: impl FnOnce() -> Value) -> Value {
    if keys.agent.agent_loop_config_path.is_none() {
        return Value::Null;
    }
    let (mut sections, (prompt, response)) = (sections(), lengths);
    let of_rollout = &mut sections["actor_rollout_ref"]["rollout"];
    of_rollout["prompt_length"] = prompt.into();
    of_rollout["response_length"] = response.into();
    of_rollout["full_determinism"] = false.into();
    sections
}
