//! The settings that the user's agent loops read.

use serde_json::Value;

use burnish_config::schema::AgentKeys;

/// Returns `sections` (`data`, `actor_rollout_ref` and others) with the additional names of verl's rollout; null without such
/// loops.
pub fn custom_loop_config(keys: &AgentKeys, lengths: (usize, usize), sections: impl FnOnce() -> Value) -> Value {
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
