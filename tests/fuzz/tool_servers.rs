//! Servers of the Model Context Protocol that reply with generated messages: programs, streamable HTTP, and HTTP with SSE. The
//! client lists their tools, shows them to a model, calls them, and leaves, all in its time.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use burnish::agent::calls::ToolCall;
use burnish::agent::config::tools;
use burnish::agent::tools::built_in::{BuiltInTools, SharedTool};
use burnish::agent::tools::mcp::{McpOptions, server_tools};
use burnish::agent::tools::{ConversationView, Toolbox, ValidCall};
use burnish::data::Tokenizer;
use burnish::util::interrupt::Interrupt;
use serde_json::{Map, Value, json};

use crate::Target;
use crate::scripted::{NEXT, ScriptedServer};

/// The time limits of a start and of a call.
const START: Duration = Duration::from_millis(600);
const CALL: Duration = Duration::from_millis(300);
/// The time that the client may take in addition: a ping after a late call, the end of a program, a busy machine.
const MORE: Duration = Duration::from_secs(20);
/// The bytes of a reply that the client reads, and what the system and the server keep in addition.
const LARGEST_REPLY: usize = (64 << 20) + (8 << 20);

/// A program that writes the next file for each request that it reads, and replies to pings.
const PROGRAM: &str = r#"i=0
while read -r line; do
  case $line in
  *'"result":'*) ;;
  *'"method":"ping"'*) id=${line#*'"id":'}; printf '{"id":%s,"result":{}}\n' "${id%%[!0-9]*}" ;;
  *) i=$((i+1)); cat "part$i" ;;
  esac
done"#;

const HEAD: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n";
const STREAM: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n";
const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const SESSION: &str =
    r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
const FIRST_PAGE: &str = r#""result":{"tools":[{"name":"echo","description":"Says it again","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}],"nextCursor":"2"}}"#;
const PAGE: &str =
    r#""result":{"tools":[{"name":"count","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}"#;
const RESULT: &str = r#""result":{"content":[{"type":"text","text":"12"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"isError":false}}"#;

/// The scripts: the name of the transport, and the parts.
fn scripts() -> Vec<Vec<u8>> {
    let answer = |result: &str| format!("{HEAD}\r\n{{\"jsonrpc\":\"2.0\",\"id\":$ID,{result}");
    let event = |id: &str, result: &str| format!("id: {id}\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},{result}\n\n");
    let line = |id: usize, result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{result}\n");
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}";
    let http = [
        format!("{HEAD}Mcp-Session-Id: s1\r\n\r\n{{\"jsonrpc\":\"2.0\",\"id\":$ID,{SESSION}"),
        ACCEPTED.to_owned(),
        format!("{STREAM}\r\n: hi\n\ndata: {ping}\n\n{}", event("$ID", FIRST_PAGE)),
        ACCEPTED.to_owned(),
        answer(PAGE),
        // This stream breaks off, and is requested again from its event.
        format!("{STREAM}\r\nid: 7\ndata: {{\"method\":\"notifications/message\"}}\n\n"),
        format!("{STREAM}\r\n{}", event("4", RESULT)),
        answer(RESULT),
    ];
    let sse = [
        format!(
            "{STREAM}\r\nevent: endpoint\ndata: /messages?s=1\n\n\u{3}{}\u{3}\u{3}data: {ping}\n\n{}\u{3}\u{3}{}\u{3}{}\u{3}{}\u{1}\u{1}",
            event("1", SESSION),
            event("2", FIRST_PAGE),
            event("3", PAGE),
            event("4", RESULT),
            event("5", RESULT)
        ),
        ACCEPTED.to_owned(),
    ];
    let program = [
        line(1, SESSION),
        String::new(),
        format!("{ping}\n{}", line(2, FIRST_PAGE)),
        line(3, PAGE),
        line(4, RESULT),
        line(5, RESULT),
    ];
    let script = |name: &str, parts: &[String]| format!("{name}{NEXT}{}", parts.join(NEXT)).into_bytes();
    vec![script("http", &http), script("sse", &sse), script("program", &program)]
}

/// Runs a script: returns the number of tools, and for each call true if it succeeds.
fn run(input: &[u8], folder: &Path, start: Duration, timeout: Duration) -> Result<(usize, Vec<bool>), String> {
    let split = input.iter().position(|byte| *byte == NEXT.as_bytes()[0]).unwrap_or(0);
    let (transport, script) = (&input[..split], input.get(split + 1..).unwrap_or_default());
    let server = (transport != b"program").then(|| ScriptedServer::start(script));
    let entry = match &server {
        Some(server) => {
            let transport = if transport == b"sse" { "sse" } else { "http" };
            json!({"url": format!("http://{}/mcp", server.address), "transport": transport, "headers": {"X-Key": "k"}})
        }
        None => {
            for (at, part) in script.split(|byte| *byte == NEXT.as_bytes()[0]).enumerate().take(20) {
                fs::write(folder.join(format!("part{}", at + 1)), part).unwrap();
            }
            fs::write(folder.join("program.sh"), PROGRAM).unwrap();
            json!({"command": "/bin/sh", "args": ["program.sh"], "cwd": folder})
        }
    };
    let list = folder.join("servers.json");
    fs::write(&list, json!({"mcpServers": {"s": entry}}).to_string()).unwrap();
    let mcp = json!({"mcp_servers_config_path": list});
    let entry = json!({"class_name": "verl.tools.mcp_base_tool.MCPBaseTool", "config": {"type": "mcp"}, "mcp": mcp});
    let entry = tools(&json!({ "tools": [entry] })).unwrap().remove(0);

    let begun = Instant::now();
    let options = McpOptions { start_timeout: start, ..McpOptions::default() };
    let made = server_tools(&entry, &options).map_err(|error| format!("{error:#}"));
    assert!(begun.elapsed() < start + MORE, "the start takes {:?}", begun.elapsed());
    let made = made.inspect_err(|message| assert!(message.len() < 20_000, "a message of {} bytes", message.len()))?;
    shown(&made);
    let calls = made.iter().take(2).map(|tool| called(tool, &made, timeout)).collect();
    let number = made.len();
    drop(made);
    if let Some(server) = server {
        let most = (server.requests() + 1) * LARGEST_REPLY;
        assert!(server.sent() <= most, "the client reads {} bytes in {} replies", server.sent(), server.requests());
    }
    Ok((number, calls))
}

/// Calls a tool; returns true if it succeeds.
fn called(tool: &SharedTool, made: &[SharedTool], timeout: Duration) -> bool {
    let arguments = json!({"text": "a"});
    let written = ToolCall { id: None, name: tool.name().to_owned(), arguments: arguments.to_string() };
    let Ok(mut tools) = BuiltInTools::new(made, &Value::Null, timeout, Interrupt::default()) else { return false };
    let begun = Instant::now();
    let results = tools.call(&[ValidCall { written, arguments }], &ConversationView::EMPTY).unwrap();
    assert!(begun.elapsed() < timeout + MORE, "a call takes {:?}", begun.elapsed());
    assert_eq!(results.len(), 1);
    results[0].failure.is_none()
}

/// Shows tools to a model, by the chat template of one.
fn shown(made: &[SharedTool]) {
    static TOKENIZER: LazyLock<Tokenizer> =
        LazyLock::new(|| Tokenizer::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/calculator/model")).unwrap());
    let schemas: Vec<&Value> = made.iter().map(SharedTool::schema).collect();
    let variables: Map<String, Value> = [("tools".to_owned(), json!(schemas))].into_iter().collect();
    let messages = json!([{"role": "user", "content": "1+2="}]);
    _ = TOKENIZER.apply_chat_template(&messages, true, &variables).map_err(|error| format!("{error:#}"));
}

pub(crate) fn tool_servers() -> Target {
    Target {
        name: "tool_servers",
        seeds: scripts,
        words: &[
            NEXT,
            "\u{1}",
            "\u{2}",
            "\u{3}",
            "\n",
            "\n\n",
            "data: ",
            "event: endpoint\ndata: http://evil.example/\n\n",
            "event: endpoint\ndata: //[\n\n",
            "id: 9\n",
            ": \n",
            "{\"id\":1,\"result\":{}}\n",
            "data: {\"id\":$ID,\"result\":null}\n\n",
            "data: {\"id\":\"p\",\"method\":\"ping\"}\n\n",
            "{\"id\":7,\"method\":\"sampling/createMessage\"}\n",
            "{\"id\":$ID,\"error\":{\"code\":-1,\"message\":\"\\u001b[2J\"}}",
            "\"nextCursor\":\"3\",",
            "\"isError\":true,",
            "\"protocolVersion\":\"x\",",
            "{\"name\":\"a\"},",
            "{\"type\":\"text\",\"text\":\"b\"},",
            "\"$ref\":\"#\",",
            "[",
            "]",
            "{",
            "}",
            "HTTP/1.1 307 X\r\nLocation: http://$HOST/mcp\r\n\r\n",
            "HTTP/1.1 307 X\r\nLocation: http://evil.example/\r\n\r\n",
            "HTTP/1.1 404 X\r\n\r\n",
            "Content-Length: 99999999999\r\n",
            "Content-Encoding: gzip\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Mcp-Session-Id: é\u{7f}\r\n",
            "X: y\r\n",
        ],
        cases: 25,
        read: |input, folder| _ = run(input, folder, START, CALL),
    }
}

/// The scripts without edits are right: both tools are found, and their calls succeed.
#[test]
fn scripts_of_tool_servers_are_right() {
    let patient = Duration::from_secs(20);
    for script in scripts() {
        let folder = tempfile::tempdir().unwrap();
        let seen = run(&script, folder.path(), patient, patient);
        assert_eq!(seen, Ok((2, vec![true, true])), "{}", String::from_utf8_lossy(&script));
    }
}
