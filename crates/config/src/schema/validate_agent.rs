//! Checks of conversations that the types cannot express. Checks against the rows come later, when the rows are read.

use super::agent::AgentKeys;
use crate::Report;

/// Checks the settings of conversations.
pub(super) fn agent(keys: &AgentKeys, report: &mut Report) {
    let AgentKeys { group, multi_turn, agent } = *keys;
    let default_agent_loop = format!("{group}.agent.default_agent_loop");
    let needed = keys.needed_by(&agent.default_agent_loop);
    if !needed.is_empty() && keys.read_by(&agent.default_agent_loop).is_empty() {
        let settings: Vec<String> = needed.iter().map(|key| format!("{group}.{key}=FILE")).collect();
        let message = format!("`{default_agent_loop}={}` has nothing to call", agent.default_agent_loop);
        report.wrong(&default_agent_loop, message, format!("write {}", settings.join(", or ")));
    }
    if multi_turn.enable && !keys.has_any() && needed.is_empty() {
        let key = format!("{group}.multi_turn.enable");
        let help = format!("write {group}.multi_turn.tool_config_path=FILE, or {key}=false for responses of one turn");
        report.wrong(&key, format!("`{key}=true`, but no tool, user, environment or loop is set"), help);
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
        let (file, names) = (format!("{group}.{file}"), format!("{group}.{names}"));
        if has_file && !has_names {
            report.wrong(
                &names,
                format!("`{file}` is set, but `{names}` does not name anything in it"),
                format!("write {names}={example}"),
            );
        } else if has_names && !has_file {
            report.wrong(&file, format!("`{names}` is set, but `{file}` is not"), format!("write {file}=FILE"));
        }
    }
    let twice = agent.functions.iter().enumerate().find(|(at, name)| agent.functions[..*at].contains(name));
    if let Some((_, name)) = twice {
        let key = format!("{group}.agent.functions");
        report.wrong(&key, format!("`{key}` names `{name}` twice"), "");
    }
}
