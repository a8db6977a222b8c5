//! The JSON files that list Model Context Protocol servers (`mcp.mcp_servers_config_path`), in the form shared by Claude's
//! programs, editors and fastmcp: `{"mcpServers": {NAME: {command, args, env} or {url, headers}}}`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::entries::{ConfigFileError, fields, kind_of, text, wrong};

/// A server in such a file.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServerConfig {
    pub name: String,
    pub address: ServerAddress,
    /// The server's own time limit of a call; `None` for the general limit. The file has milliseconds.
    pub timeout: Option<Duration>,
    /// True if verl uses a separate client for the server (`auth_token`), so that its tools keep their names even with other
    /// servers.
    pub(crate) is_separate: bool,
    /// Keys in the file that have no effect here.
    pub ignored: Vec<String>,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerAddress {
    /// A program to start; it communicates by its input and output.
    Program { command: String, args: Vec<String>, env: Vec<(String, String)>, folder: Option<String> },
    /// An HTTP address.
    Address { url: String, headers: Vec<(String, String)>, transport: HttpTransport },
}

/// The protocol at an HTTP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpTransport {
    /// Streamable HTTP (since 2025-03-26): each message is a POST, and the reply may be a stream.
    Streamable,
    /// HTTP with SSE (2024-11-05): one stream for all replies, which names the address for messages.
    Sse,
}

/// The keys of a server. The keys in [`IGNORED`] have no effect: graphical programs use them for their display and for
/// confirmations.
const KEYS: &[&str] = &[
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "auth_token",
    "auth",
    "transport",
    "type",
    "timeout",
    "disabled",
    "description",
    "icon",
    "keep_alive",
    "sse_read_timeout",
    "authentication",
    "autoApprove",
    "alwaysAllow",
];
const IGNORED: &[&str] =
    &["description", "icon", "keep_alive", "sse_read_timeout", "authentication", "autoApprove", "alwaysAllow"];

/// Reads the servers of a file in order, without `disabled` ones. `variable` looks up environment variables, which texts contain
/// as `${NAME}` or `${NAME:-DEFAULT}`, as in Claude Code.
///
/// # Errors
/// The first mistake: no servers, an unknown key, a value of the wrong type, a server with neither or both of program and
/// address, or a variable that is not set.
pub fn servers(file: &Value, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<McpServerConfig>, ConfigFileError> {
    let Value::Object(outer) = file else {
        return Err(wrong("", format!("the file must be a mapping with the key `mcpServers`, not {}", kind_of(file))));
    };
    let servers = match outer.get("mcpServers") {
        None | Some(Value::Null) => return Err(wrong("", "the file has no `mcpServers`, a mapping of names to servers")),
        Some(Value::Object(servers)) => servers,
        Some(other) => return Err(wrong("mcpServers", format!("`mcpServers` must be a mapping, not {}", kind_of(other)))),
    };
    let mut read = Vec::new();
    for (name, entry) in servers {
        let place = format!("mcpServers.{name}");
        let fields = fields(entry, &place, KEYS)?;
        match fields.get("disabled") {
            None | Some(Value::Null | Value::Bool(false)) => read.push(server(name, fields, &place, variable)?),
            Some(Value::Bool(true)) => {}
            Some(other) => {
                return Err(wrong(
                    &format!("{place}.disabled"),
                    format!("`disabled` must be true or false, not {}", kind_of(other)),
                ));
            }
        }
    }
    if read.is_empty() {
        return Err(wrong("mcpServers", "`mcpServers` names no server without `disabled`"));
    }
    Ok(read)
}

fn server(
    name: &str,
    fields: &Map<String, Value>,
    place: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<McpServerConfig, ConfigFileError> {
    let expand = |key: &str, text: &str| expanded(text, variable).map_err(|message| wrong(&format!("{place}.{key}"), message));
    let expanded = |key: &str| text(fields, place, key)?.map(|text| expand(key, text)).transpose();
    let pairs = |key: &str| -> Result<Vec<(String, String)>, ConfigFileError> {
        let pairs = texts_by_name(fields, place, key)?;
        pairs.into_iter().map(|(name, text)| Ok((name, expand(key, &text)?))).collect()
    };
    let address = match (expanded("command")?, expanded("url")?) {
        (Some(command), None) => {
            refuse_others(fields, place, &["headers", "auth_token", "auth"], "a program that is started by `command`")?;
            let args = texts(fields, place, "args")?;
            let args = args.iter().map(|text| expand("args", text)).collect::<Result<_, _>>()?;
            if let Some(other) = transport(fields, place)?.filter(|name| *name != "stdio") {
                return Err(wrong(place, format!("the transport of a server with `command` is stdio, not {other}")));
            }
            ServerAddress::Program { command, args, env: pairs("env")?, folder: expanded("cwd")? }
        }
        (None, Some(url)) => {
            refuse_others(fields, place, &["args", "env", "cwd"], "an address (`url`)")?;
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(wrong(&format!("{place}.url"), format!("`url` must begin with http:// or https://, not {url}")));
            }
            let mut headers = pairs("headers")?;
            for key in ["auth_token", "auth"] {
                match expanded(key)?.as_deref() {
                    Some("oauth") if key == "auth" => {
                        let message =
                            "oauth needs a login in a browser, which is not supported: set a token (`auth`), or `headers`";
                        return Err(wrong(&format!("{place}.auth"), message));
                    }
                    Some(token) => headers.push(("Authorization".to_owned(), format!("Bearer {token}"))),
                    None => {}
                }
            }
            let transport = match transport(fields, place)? {
                Some("sse") => HttpTransport::Sse,
                Some("http" | "streamable-http" | "streamable_http" | "streamableHttp") => HttpTransport::Streamable,
                Some(other) => {
                    let message = format!("the transport of a server with `url` must be http or sse, not {other}");
                    return Err(wrong(place, message));
                }
                // verl's default for `auth_token`.
                None if fields.contains_key("auth_token") => HttpTransport::Sse,
                None => transport_of(&url),
            };
            ServerAddress::Address { url, headers, transport }
        }
        (Some(_), Some(_)) => return Err(wrong(place, "a server has `command` or `url`, not both")),
        (None, None) => return Err(wrong(place, "the server has neither `command`, a program, nor `url`, an address")),
    };
    let timeout = match fields.get("timeout") {
        None | Some(Value::Null) => None,
        Some(value) => Some(Duration::from_millis(value.as_u64().filter(|ms| *ms > 0).ok_or_else(|| {
            wrong(&format!("{place}.timeout"), format!("`timeout` must be a number of milliseconds, not {}", kind_of(value)))
        })?)),
    };
    let ignored = fields.keys().filter(|key| IGNORED.contains(&key.as_str())).cloned().collect();
    let is_separate = fields.contains_key("auth_token");
    Ok(McpServerConfig { name: name.to_owned(), address, timeout, is_separate, ignored })
}

/// Returns the transport of a server, from either of its keys.
fn transport<'a>(fields: &'a Map<String, Value>, place: &str) -> Result<Option<&'a str>, ConfigFileError> {
    Ok(text(fields, place, "transport")?.or(text(fields, place, "type")?))
}

/// Returns the transport of an address without a key, like fastmcp: SSE if a segment of its path is `sse`.
fn transport_of(url: &str) -> HttpTransport {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    match path.splitn(4, '/').nth(3).is_some_and(|path| path.split('/').any(|part| part == "sse")) {
        true => HttpTransport::Sse,
        false => HttpTransport::Streamable,
    }
}

fn refuse_others(fields: &Map<String, Value>, place: &str, keys: &[&str], what: &str) -> Result<(), ConfigFileError> {
    match keys.iter().find(|key| fields.get(**key).is_some_and(|value| !value.is_null())) {
        None => Ok(()),
        Some(key) => Err(wrong(&format!("{place}.{key}"), format!("`{key}` has no meaning for {what}: leave it out"))),
    }
}

fn texts(fields: &Map<String, Value>, place: &str, key: &str) -> Result<Vec<String>, ConfigFileError> {
    let fail = || wrong(&format!("{place}.{key}"), format!("`{key}` must be a list of texts"));
    match fields.get(key) {
        None | Some(Value::Null) => Ok(vec![]),
        Some(Value::Array(items)) => items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(fail)).collect(),
        Some(_) => Err(fail()),
    }
}

/// Returns texts by their names; numbers and booleans are converted to text.
fn texts_by_name(fields: &Map<String, Value>, place: &str, key: &str) -> Result<BTreeMap<String, String>, ConfigFileError> {
    let Some(value) = fields.get(key).filter(|value| !value.is_null()) else { return Ok(BTreeMap::new()) };
    let Value::Object(pairs) = value else {
        return Err(wrong(&format!("{place}.{key}"), format!("`{key}` must be a mapping, not {}", kind_of(value))));
    };
    let text = |(name, value): (&String, &Value)| match value {
        Value::String(text) => Ok((name.clone(), text.clone())),
        Value::Number(_) | Value::Bool(_) => Ok((name.clone(), value.to_string())),
        other => Err(wrong(&format!("{place}.{key}.{name}"), format!("`{name}` must be a text, not {}", kind_of(other)))),
    };
    pairs.iter().map(text).collect()
}

/// Returns a text with its environment variables expanded.
fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        out += before;
        let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
        match after.split_once('}') {
            Some((inside, behind)) => {
                let (name, default) = inside.split_once(":-").map_or((inside, None), |(name, default)| (name, Some(default)));
                if name.is_empty() || !name.chars().all(is_name) {
                    return Err(format!("${{{inside}}} is not the name of an environment variable"));
                }
                match variable(name).or_else(|| default.map(str::to_owned)) {
                    Some(value) => out += &value,
                    None => return Err(format!("the environment has no variable {name}: set it, or write ${{{name}:-DEFAULT}}")),
                }
                rest = behind;
            }
            None => return Err(format!("{text:?} has ${{ without a closing }}")),
        }
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(file: &Value) -> Result<Vec<McpServerConfig>, ConfigFileError> {
        servers(file, &|name| (name == "TOKEN").then(|| "t0k".to_owned()))
    }

    #[test]
    fn programs_and_addresses_are_read() {
        let file = json!({"mcpServers": {
            "time": {"command": "uvx", "args": ["mcp-server-time", "--tz=${ZONE:-UTC}"], "env": {"A": "x${TOKEN}", "B": 3},
                     "icon": "clock.png", "timeout": 1500},
            "off": {"command": "no", "disabled": true},
            "web": {"url": "https://h/mcp", "headers": {"X-Key": "${TOKEN}"}},
            "old": {"type": "sse", "url": "http://h/x"},
            "guessed": {"url": "http://h/sse/?a=1"},
            "verl": {"url": "http://h/x", "auth_token": "abc"},
        }});
        let read = read(&file).unwrap();
        assert_eq!(read.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["time", "web", "old", "guessed", "verl"]);
        let program = ServerAddress::Program {
            command: "uvx".into(),
            args: vec!["mcp-server-time".into(), "--tz=UTC".into()],
            env: vec![("A".into(), "xt0k".into()), ("B".into(), "3".into())],
            folder: None,
        };
        assert_eq!((&read[0].address, &read[0].ignored), (&program, &vec!["icon".to_owned()]));
        assert_eq!(read[0].timeout, Some(Duration::from_millis(1500)));
        let transports = read[1..].iter().map(|one| match &one.address {
            ServerAddress::Address { transport, headers, .. } => (*transport, headers.len(), one.is_separate),
            ServerAddress::Program { .. } => panic!("{one:?}"),
        });
        let expected = [
            (HttpTransport::Streamable, 1, false),
            (HttpTransport::Sse, 0, false),
            (HttpTransport::Sse, 0, false),
            (HttpTransport::Sse, 1, true),
        ];
        assert_eq!(transports.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let one = |server: Value| json!({"mcpServers": {"s": server}});
        for (file, key, part) in [
            (json!([]), "", "`mcpServers`, not a list"),
            (json!({"servers": {}}), "", "has no `mcpServers`"),
            (json!({"mcpServers": {}}), "mcpServers", "names no server"),
            (one(json!({})), "mcpServers.s", "neither `command`"),
            (one(json!({"command": "a", "url": "http://h"})), "mcpServers.s", "not both"),
            (one(json!({"comand": "a"})), "mcpServers.s.comand", "Did you mean \"command\"?"),
            (one(json!({"command": "a", "args": "b"})), "mcpServers.s.args", "a list of texts"),
            (one(json!({"command": "a", "env": {"A": []}})), "mcpServers.s.env.A", "must be a text"),
            (one(json!({"command": "${NO}"})), "mcpServers.s.command", "no variable NO"),
            (one(json!({"command": "a", "headers": {"A": "b"}})), "mcpServers.s.headers", "leave it out"),
            (one(json!({"url": "h/mcp"})), "mcpServers.s.url", "begin with http"),
            (one(json!({"url": "http://h", "auth": "oauth"})), "mcpServers.s.auth", "a browser"),
            (one(json!({"url": "http://h", "transport": "ws"})), "mcpServers.s", "http or sse"),
        ] {
            let wrong = read(&file).unwrap_err();
            assert!(wrong.key == key && wrong.message.contains(part), "{file}: {wrong:?}");
        }
    }
}
