//! Checks of conversations that the types cannot express. Whether some row asks for the tools that are named is known when the rows
//! are read.

use super::agent::{AgentKeys, DEFAULT_AGENT_LOOP};
use crate::config::Report;

const GROUP: &str = "actor_rollout_ref.rollout";

/// Checks the settings of conversations.
pub fn agent(keys: &AgentKeys, report: &mut Report) {
    let (multi_turn, agent) = (keys.multi_turn, keys.agent);
    let needed = keys.needed_by(&agent.default_agent_loop);
    if !needed.is_empty() && keys.read_by(&agent.default_agent_loop).is_empty() {
        let settings: Vec<String> = needed.iter().map(|key| format!("{GROUP}.{key}=FILE")).collect();
        let message = format!("`{DEFAULT_AGENT_LOOP}={}` has nothing to call", agent.default_agent_loop);
        report.wrong(DEFAULT_AGENT_LOOP, message, format!("write {}", settings.join(", or ")));
    }
    if multi_turn.enable && !keys.has_any() && needed.is_empty() {
        let key = format!("{GROUP}.multi_turn.enable");
        let help = format!("write {GROUP}.multi_turn.tool_config_path=FILE, or {key}=false: responses of one turn");
        report.wrong(&key, format!("`{key}=true`, but there is neither a tool nor a user, nor a loop of your own"), help);
    }
    let pairs = [
        ("agent.functions_path", agent.functions_path.is_some(), "agent.functions", !agent.functions.is_empty(), "[NAME,…]"),
        (
            "agent.environment.path",
            agent.environment.path.is_some(),
            "agent.environment.name",
            agent.environment.name.is_some(),
            "CLASS",
        ),
    ];
    for (file, has_file, names, has_names, example) in pairs {
        let (file, names) = (format!("{GROUP}.{file}"), format!("{GROUP}.{names}"));
        if has_file && !has_names {
            report.wrong(
                &names,
                format!("`{file}` is set, but `{names}` names nothing of it"),
                format!("write {names}={example}"),
            );
        } else if has_names && !has_file {
            report.wrong(&file, format!("`{names}` is set, but `{file}` is not"), format!("write {file}=FILE"));
        }
    }
    let twice = agent.functions.iter().enumerate().find(|(at, name)| agent.functions[..*at].contains(name));
    if let Some((_, name)) = twice {
        let key = format!("{GROUP}.agent.functions");
        report.wrong(&key, format!("`{key}` names `{name}` twice"), "");
    }
}
