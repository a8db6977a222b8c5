//! Reads the files that settings of conversations name: tools, users, loops, and Python files.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use burnish_agent::config::{ToolKind, UserConfig, loops, tools, users};
use burnish_agent::session::{EnvironmentClass, Functions, ProgramFunction, Setup};
use burnish_agent::tools::built_in::{self, SharedTool};
use burnish_agent::tools::mcp;
use burnish_agent::users as built_in_users;
use burnish_config::schema::{AGENT_LOOPS, AgentKeys, Location};
use burnish_config::yaml_file::YamlFile;
use burnish_util::crc::IEEE;

/// Returns the tools that are built in or offered by servers, the Python files to load, and the users.
pub(super) fn read(keys: &AgentKeys, servers: &mcp::McpOptions) -> Result<(Vec<SharedTool>, Option<Setup>, Vec<UserConfig>)> {
    let AgentKeys { group, multi_turn, agent } = *keys;
    let (mut made, mut setup) = (Vec::new(), Setup::default());
    let mut uses_python = false;
    if let Some(path) = &multi_turn.tool_config_path {
        let key = format!("{group}.multi_turn.tool_config_path");
        let file = YamlFile::read(&key, path.as_path())?;
        for tool in tools(file.value()).map_err(|wrong| file.wrong(&wrong.key, wrong.message))? {
            if tool.kind == ToolKind::Mcp {
                let server_tools = mcp::server_tools(&tool, servers);
                made.extend(server_tools.map_err(|error| file.wrong(&tool.place, format!("{error:#}")))?);
                continue;
            }
            match built_in::find(&tool.class_name) {
                Some(kind) => {
                    let one = SharedTool::new(kind, &Value::Object(tool.config), tool.schema);
                    made.push(one.map_err(|error| file.wrong(&tool.place, format!("{error:#}")))?);
                }
                None => setup.verl_tools.push(json!({
                    "class_name": tool.class_name,
                    "config": tool.config,
                    "tool_schema": tool.schema,
                })),
            }
        }
    }
    setup.function_tools = python_file(group, "multi_turn.function_tool_path", multi_turn.function_tool_path.as_ref())?;
    if let Some(path) = python_file(group, "agent.functions_path", agent.functions_path.as_ref())? {
        setup.functions.push(Functions { path, names: agent.functions.clone() });
    }
    let environment = python_file(group, "agent.environment.path", agent.environment.path.as_ref())?;
    if let (Some(path), Some(class)) = (environment, &agent.environment.name) {
        setup.environments.push(EnvironmentClass { name: None, path, class: class.clone() });
    }
    setup.agent = python_file(group, "agent.agent_func_path", agent.agent_func_path.as_ref())?;
    let program = python_file(group, "agent.server.path", agent.server.path.as_ref())?;
    setup.program = program.map(|path| ProgramFunction { path, name: agent.server.name.clone() });
    let mut all_users = Vec::new();
    if let Some(path) = &multi_turn.interaction_config_path {
        let key = format!("{group}.multi_turn.interaction_config_path");
        let file = YamlFile::read(&key, path.as_path())?;
        all_users = users(file.value()).map_err(|wrong| file.wrong(&wrong.key, wrong.message))?;
        let own = all_users.iter().filter(|user| built_in_users::find(&user.class_name).is_none());
        setup.interactions =
            own.map(|user| json!({"name": user.name, "class_name": user.class_name, "config": user.config})).collect();
    }
    if let Some(path) = &agent.agent_loop_config_path {
        read_loops(group, path, &mut setup)?;
    }
    uses_python |= !setup.loops.is_empty();
    uses_python |= !setup.verl_tools.is_empty() || !setup.functions.is_empty() || !setup.environments.is_empty();
    uses_python |=
        setup.function_tools.is_some() || setup.agent.is_some() || setup.program.is_some() || !setup.interactions.is_empty();
    Ok((made, uses_python.then_some(setup), all_users))
}

/// Returns a checksum of the files that settings of conversations name, without files that these name or import.
pub fn files_crc(keys: &AgentKeys) -> u32 {
    let AgentKeys { multi_turn, agent, .. } = *keys;
    let named = [
        &multi_turn.tool_config_path,
        &multi_turn.function_tool_path,
        &multi_turn.interaction_config_path,
        &agent.functions_path,
        &agent.environment.path,
        &agent.agent_func_path,
        &agent.server.path,
        &agent.agent_loop_config_path,
    ];
    // Unreadable files were refused before, except `pkg://MODULE`.
    let bytes = |path: &Location| std::fs::read(on_disk(path)).unwrap_or_default();
    named.into_iter().flatten().fold(IEEE.checksum(&[]), |crc, path| IEEE.extend(crc, &bytes(path)))
}

/// Reads the user's loops. Their modules may lie in the folder of the file that lists them.
fn read_loops(group: &str, path: &Location, setup: &mut Setup) -> Result<()> {
    let file = YamlFile::read(&format!("{group}.agent.agent_loop_config_path"), path.as_path())?;
    for own in loops(file.value()).map_err(|wrong| file.wrong(&wrong.key, wrong.message))? {
        if AGENT_LOOPS.contains(&own.name.as_str()) {
            let message = format!("{} is the name of a built-in loop: rename this one", own.name);
            return Err(file.wrong(&format!("{}.name", own.place), message).into());
        }
        let mut entry = own.arguments;
        entry.insert("name".to_owned(), own.name.into());
        entry.insert("_target_".to_owned(), own.class_name.into());
        setup.loops.push(entry.into());
    }
    let folder = std::path::absolute(path.as_path())?.parent().map(|folder| folder.display().to_string());
    setup.folders.extend(folder);
    Ok(())
}

/// Returns the Python file that a setting names: a path, `file://PATH` or `pkg://MODULE`.
fn python_file(group: &str, key: &str, path: Option<&Location>) -> Result<Option<String>> {
    let Some(path) = path else { return Ok(None) };
    let is_there = path.starts_with("pkg://") || on_disk(path).is_file();
    ensure!(is_there, "{group}.{key}: {path} is missing");
    Ok(Some(path.as_path().display().to_string()))
}

/// Returns the path of a file that a setting names as a path or as `file://PATH`.
fn on_disk(path: &Location) -> PathBuf {
    path.strip_prefix("file://").map_or_else(|| path.as_path().to_owned(), PathBuf::from)
}
