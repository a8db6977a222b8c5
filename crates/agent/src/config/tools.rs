//! Lists of tools in verl's form (`multi_turn.tool_config_path`).

use serde_json::{Map, Value};

use super::entries::{ConfigFileError, Names, class_name, entries, fields, kind_of, mapping, text, wrong};

/// The kind of a tool (`config.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// A class.
    Native,
    /// The tools of Model Context Protocol servers (verl until 0.7).
    Mcp,
}

/// A tool of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolConfig {
    /// The dotted name of the class.
    pub class_name: String,
    /// The `config` for the class, including `type`.
    pub config: Map<String, Value>,
    /// The schema in OpenAI's form; `None` if the class has its own.
    pub schema: Option<Value>,
    pub kind: ToolKind,
    /// The servers of an MCP tool.
    pub mcp: Option<McpConfig>,
    /// The dotted key of the entry in its file, for messages.
    pub place: String,
}

/// The Model Context Protocol servers of a tool entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpConfig {
    /// The JSON file that lists the servers.
    pub servers: String,
    /// The selected tools; `None` = all.
    pub selected: Option<Vec<String>>,
}

/// Reads a list of tools: `tools: [{class_name, config, tool_schema, mcp}, …]`.
///
/// # Errors
/// The first mistake: an unknown key, a value of the wrong type, a schema without a function name, or two functions with the same
/// name.
pub fn tools(file: &Value) -> Result<Vec<ToolConfig>, ConfigFileError> {
    let (mut read, mut names) = (Vec::new(), Names::default());
    for (entry, place) in entries(file, "tools")? {
        let fields = fields(entry, &place, &["class_name", "config", "tool_schema", "mcp"])?;
        let class_name = class_name(fields, &place, "class_name")?;
        let config = mapping(fields, &place, "config")?;
        let schema = match fields.get("tool_schema") {
            None | Some(Value::Null) => None,
            Some(schema) => Some(checked_schema(schema, &format!("{place}.tool_schema"))?.clone()),
        };
        let mcp = match fields.get("mcp") {
            None | Some(Value::Null) => None,
            Some(mcp) => Some(servers(mcp, &format!("{place}.mcp"))?),
        };
        let kind = match config.get("type") {
            None | Some(Value::Null) if mcp.is_some() => ToolKind::Mcp,
            None | Some(Value::Null) => ToolKind::Native,
            Some(kind) => match kind.as_str() {
                Some("native") => ToolKind::Native,
                Some("mcp") => ToolKind::Mcp,
                _ => return Err(wrong(&format!("{place}.config.type"), format!("`type` must be native or mcp, not {kind}"))),
            },
        };
        if kind == ToolKind::Mcp && mcp.is_none() {
            return Err(wrong(&place, "a tool of the type mcp needs `mcp`, with `mcp_servers_config_path`"));
        }
        let tool = ToolConfig { class_name, config, schema, kind, mcp, place };
        if let Some(name) = tool.function() {
            names.take(name, "function", &tool.place)?;
        }
        read.push(tool);
    }
    Ok(read)
}

impl ToolConfig {
    /// Returns the name of the function, if the file has its schema.
    pub fn function(&self) -> Option<&str> {
        self.schema.as_ref()?.get("function")?.get("name")?.as_str()
    }
}

/// Returns the schema of a tool, if it has OpenAI's form; the parameters stay unchanged.
fn checked_schema<'a>(schema: &'a Value, place: &str) -> Result<&'a Value, ConfigFileError> {
    let Value::Object(outer) = schema else {
        return Err(wrong(place, format!("`tool_schema` must be a mapping, not {}", kind_of(schema))));
    };
    if !matches!(outer.get("type").and_then(Value::as_str), None | Some("function")) {
        return Err(wrong(&format!("{place}.type"), "`type` of a tool's schema must be function"));
    }
    let Some(Value::Object(function)) = outer.get("function") else {
        return Err(wrong(place, "the schema has no `function`, a mapping with `name`, `description` and `parameters`"));
    };
    let place = format!("{place}.function");
    if text(function, &place, "name")?.is_none() {
        return Err(wrong(&place, "the function has no `name`"));
    }
    for (key, is_fine) in [("description", Value::is_string as fn(&Value) -> bool), ("parameters", Value::is_object)] {
        if let Some(other) = function.get(key).filter(|value| !value.is_null() && !is_fine(value)) {
            let expected = if key == "parameters" { "a mapping" } else { "a text" };
            return Err(wrong(&format!("{place}.{key}"), format!("`{key}` must be {expected}, not {}", kind_of(other))));
        }
    }
    Ok(schema)
}

/// Reads the servers of an MCP tool.
fn servers(mcp: &Value, place: &str) -> Result<McpConfig, ConfigFileError> {
    let fields = fields(mcp, place, &["mcp_servers_config_path", "tool_selected_list"])?;
    let Some(servers) = text(fields, place, "mcp_servers_config_path")? else {
        return Err(wrong(place, "`mcp` has no `mcp_servers_config_path`, the JSON file that lists the servers"));
    };
    let selected = match fields.get("tool_selected_list") {
        None | Some(Value::Null) => None,
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Some(_) => {
            return Err(wrong(&format!("{place}.tool_selected_list"), "`tool_selected_list` must be a list of names"));
        }
    };
    Ok(McpConfig { servers: servers.to_owned(), selected })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn verls_tools_are_read() {
        let schema =
            json!({"type": "function", "function": {"name": "search", "description": "", "parameters": {"type": "object"}}});
        let file = json!({"tools": [
            {"class_name": "my_tools.Search", "config": {"type": "native", "topk": 3}, "tool_schema": schema},
            {"class_name": "verl.tools.mcp_search_tool.MCPSearchTool", "config": {"rate_limit": 120},
             "mcp": {"mcp_servers_config_path": "servers.json", "tool_selected_list": ["tavily_search"]}},
            {"class_name": "burnish.Calculator", "tool_schema": null},
        ]});
        let read = tools(&file).unwrap();
        assert_eq!(read.iter().map(|tool| tool.kind).collect::<Vec<_>>(), [ToolKind::Native, ToolKind::Mcp, ToolKind::Native]);
        assert_eq!((read[0].function(), read[0].config["topk"].as_i64(), &*read[0].place), (Some("search"), Some(3), "tools.0"));
        let mcp = McpConfig { servers: "servers.json".into(), selected: Some(vec!["tavily_search".into()]) };
        assert_eq!((&read[1].mcp, read[2].schema.is_none()), (&Some(mcp), true));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let named = |name: &str| json!({"class_name": "m.T", "tool_schema": {"function": {"name": name}}});
        for (file, key, part) in [
            (json!([]), "", "`tools`, not a list"),
            (json!({"tool": []}), "tool", "one key, `tools`"),
            (json!({"tools": 3}), "tools", "a list, not 3"),
            (json!({"tools": ["m.T"]}), "tools.0", "a mapping"),
            (json!({"tools": [{"class_nam": "m.T"}]}), "tools.0.class_nam", "Did you mean \"class_name\"?"),
            (json!({"tools": [{"config": {}}]}), "tools.0", "no `class_name`"),
            (json!({"tools": [{"class_name": "T"}]}), "tools.0.class_name", "in a module"),
            (json!({"tools": [{"class_name": "m.T", "config": {"type": "mpc"}}]}), "tools.0.config.type", "native or mcp"),
            (json!({"tools": [{"class_name": "m.T", "config": {"type": "mcp"}}]}), "tools.0", "mcp_servers_config_path"),
            (
                json!({"tools": [{"class_name": "m.T", "tool_schema": {"function": {}}}]}),
                "tools.0.tool_schema.function",
                "no `name`",
            ),
            (json!({"tools": [named("a"), named("b"), named("a")]}), "tools.2", "first at `tools.0`"),
        ] {
            let wrong = tools(&file).unwrap_err();
            assert!(wrong.key == key && wrong.message.contains(part), "{file}: {wrong:?}");
        }
    }
}
