//! The tools that servers offer, from an entry of a tool configuration.

use std::env;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use super::rate_limit::RateLimit;
use super::server::{McpOptions, McpServer};
use super::text::{self, ResultFormat};
use crate::ReplyFailure;
use crate::config::{McpServerConfig, ServerAddress, ToolConfig, servers};
use crate::tools::built_in::{BuiltInTool, SharedTool, ToolError, ToolOutput, only_known, seconds};
use burnish_util::excerpt::{beginning, beginning_of};
use burnish_util::{foreign, secret, suggest};

/// verl's classes, and how each reads a result.
const CLASSES: &[(&str, ResultFormat)] =
    &[("verl.tools.mcp_base_tool.MCPBaseTool", text::joined), ("verl.tools.mcp_search_tool.MCPSearchTool", text::results)];
/// The limit in characters of the names in a message.
const LONGEST_NAMES: usize = 4000;
/// The keys of `config`, except `type`.
const SETTINGS: &[&str] = &["rate_limit", "timeout"];

/// A tool of a server.
struct ServerTool {
    server: Arc<McpServer>,
    /// The server's name of the tool.
    name: String,
    /// True if a call may be repeated although the server may already have run it.
    again: bool,
    reading: ResultFormat,
    timeout: Option<Duration>,
    rate: Option<Arc<RateLimit>>,
}

impl BuiltInTool for ServerTool {
    fn waits(&self) -> bool {
        true
    }

    fn call(&self, arguments: &Value, _: &mut Value, timeout: Duration) -> Result<ToolOutput, ToolError> {
        let timeout = [self.timeout, self.server.timeout()].into_iter().flatten().fold(timeout, Duration::min);
        let end = Instant::now() + timeout;
        if !arguments.is_object() {
            return Err(ToolError::raised("the arguments must be an object of names and values"));
        }
        if self.rate.as_ref().is_some_and(|rate| !rate.wait(end)) {
            return Err(ToolError::late(timeout));
        }
        let left = end.saturating_duration_since(Instant::now());
        let answer = self.server.call(&self.name, arguments, self.again, left).map_err(|failed| match failed.failure {
            ReplyFailure::Timeout => ToolError::late(timeout),
            _ => failed,
        })?;
        match answer["isError"] == true {
            true => Err(ToolError::raised(text::error(&answer))),
            false => Ok(ToolOutput::text((self.reading)(&answer))),
        }
    }
}

/// Starts the servers of an entry, and returns their tools that the entry selects, in the order of the file and of each server's
/// list. If there are several servers, a tool is named `SERVER_TOOL`, as in verl (by its client fastmcp). A server with
/// `auth_token` does not count as another server there.
///
/// # Errors
/// A mistake in the entry or in the file of servers, a server that cannot be started, or a selected tool that no server offers.
pub fn server_tools(entry: &ToolConfig, options: &McpOptions) -> Result<Vec<SharedTool>> {
    let Some((_, reading)) = CLASSES.iter().find(|(name, _)| *name == entry.class_name) else {
        let known = CLASSES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" and ");
        bail!("`class_name` {} is not supported for servers: the classes are {known}", entry.class_name);
    };
    ensure!(entry.schema.is_none(), "`tool_schema` has no effect here: the servers provide the schemas");
    let config = Value::Object(entry.config.clone());
    only_known(SETTINGS, &config)?;
    let timeout = if config["timeout"].is_null() { None } else { Some(seconds(&config, "timeout", 0)?) };
    let rate = match &config["rate_limit"] {
        Value::Null => None,
        value => {
            let rate = value.as_f64().filter(|rate| *rate > 0.0 && rate.is_finite());
            let rate = rate.with_context(|| format!("`rate_limit` must be a number of calls per second above 0, not {value}"))?;
            Some(Arc::new(RateLimit::new(rate)))
        }
    };
    let mcp = entry.mcp.as_ref().context("the entry has no `mcp`")?;
    let configs = read(&mcp.servers)?;
    let prefixes = configs.iter().filter(|one| !one.is_separate).count() > 1;
    let mut found = Vec::new();
    for config in configs {
        let prefix = if prefixes && !config.is_separate { format!("{}_", config.name) } else { String::new() };
        let (server, tools) = McpServer::start(config, &mcp.servers, options.clone())?;
        let server = Arc::new(server);
        for tool in tools {
            let Some(mut schema) = text::schema(&tool) else {
                bail!("{}: a tool has no name: {}", mcp.servers, beginning(&tool.to_string()))
            };
            let name = tool["name"].as_str().unwrap_or_default().to_owned();
            let shown = format!("{prefix}{name}");
            schema["function"]["name"] = shown.clone().into();
            let hints = &tool["annotations"];
            let again = hints["readOnlyHint"] == true || hints["idempotentHint"] == true;
            let tool = ServerTool { server: server.clone(), name, again, reading: *reading, timeout, rate: rate.clone() };
            found.push((shown, SharedTool::from_service(schema, Arc::new(tool))?));
        }
    }
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let selected = mcp.selected.iter().flatten().map(String::as_str).collect::<Vec<_>>();
    if let Some(unknown) = selected.iter().find(|name| !names.contains(*name)) {
        let behind = names.iter().find(|name| name.strip_suffix(unknown).is_some_and(|prefix| prefix.ends_with('_')));
        let hint = match behind {
            Some(whole) => format!(" Did you mean \"{whole}\"?"),
            None => suggest::did_you_mean(unknown, names.iter().copied()),
        };
        bail!("`tool_selected_list`: no server of {} offers {unknown}.{hint} There are {}", mcp.servers, shown(&names));
    }
    tracing::info!("the servers of {} offer {}", mcp.servers, shown(&names));
    let is_selected = |name: &str| selected.is_empty() || selected.contains(&name);
    let is_kept: Vec<bool> = names.iter().map(|name| is_selected(name)).collect();
    Ok(found.into_iter().zip(is_kept).filter(|(_, is_kept)| *is_kept).map(|((_, made), _)| made).collect())
}

/// Returns the names of tools for a message, cut if a server has very many or very long ones.
fn shown(names: &[&str]) -> String {
    beginning_of(&names.join(", "), LONGEST_NAMES)
}

/// Reads a file of servers, and masks its secrets in all output.
fn read(path: &str) -> Result<Vec<McpServerConfig>> {
    let text = foreign::read_text(Path::new(path), foreign::SETTINGS).context("`mcp_servers_config_path`")?;
    secret::remember_in(&text);
    let file: Value = serde_json::from_str(&text).map_err(|error| anyhow!("{path} is not valid JSON: {error}"))?;
    // Secret variables are masked wherever they occur, in arguments and addresses too.
    let variable = |name: &str| {
        let value = env::var(name).ok();
        value.iter().filter(|_| secret::is_secret(name)).for_each(|value| secret::remember(value));
        value
    };
    let servers = servers(&file, &variable).map_err(|wrong| {
        let key = if wrong.key.is_empty() { String::new() } else { format!(" `{}`:", wrong.key) };
        anyhow!("{path}:{key} {}", wrong.message)
    })?;
    for server in &servers {
        let (place, pairs) = match &server.address {
            ServerAddress::Program { env, .. } => ("env", env),
            ServerAddress::Address { headers, .. } => ("headers", headers),
        };
        pairs.iter().for_each(|(name, value)| secret::remember_setting(&format!("{place}.{name}"), value));
        if !server.ignored.is_empty() {
            tracing::info!("{path}: {} of the server `{}` has no effect", server.ignored.join(", "), server.name);
        }
    }
    Ok(servers)
}
