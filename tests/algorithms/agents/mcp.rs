//! Servers of the Model Context Protocol: their tools are available over each transport, and a failing server costs only its own
//! call.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use burnish::agent::ReplyFailure;
use burnish::agent::calls::ToolCall;
use burnish::agent::config::{ToolConfig, tools};
use burnish::agent::tools::built_in::{BuiltInTools, SharedTool};
use burnish::agent::tools::mcp::{McpOptions, server_tools};
use burnish::agent::tools::{ConversationView, ToolResult, Toolbox, ValidCall};
use burnish::util::interrupt::Interrupt;
use serde_json::{Value, json};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/agents/mcp_server.py");

/// An entry for these servers, written to a file in this folder.
fn entry(folder: &Path, servers: &Value, config: &Value, selected: &Value) -> ToolConfig {
    let path = folder.join("servers.json");
    std::fs::write(&path, json!({ "mcpServers": servers }).to_string()).unwrap();
    let mcp = json!({"mcp_servers_config_path": path, "tool_selected_list": selected});
    let entry = json!({"class_name": "verl.tools.mcp_base_tool.MCPBaseTool", "config": config, "mcp": mcp});
    tools(&json!({ "tools": [entry] })).unwrap().remove(0)
}

fn options() -> McpOptions {
    McpOptions { start_timeout: Duration::from_secs(20), ..McpOptions::default() }
}

fn program(more: &[&str]) -> Value {
    let args = [&[SERVER], more].concat();
    json!({"command": "python3", "args": args, "env": {"OWN_KEY": "1"}})
}

/// The tools of one server.
fn made(folder: &Path, server: &Value) -> Vec<SharedTool> {
    let entry = entry(folder, &json!({ "s": server }), &json!({"type": "mcp", "rate_limit": 1000}), &Value::Null);
    server_tools(&entry, &options()).unwrap()
}

fn call(name: &str, arguments: Value) -> ValidCall {
    ValidCall { written: ToolCall { id: None, name: name.to_owned(), arguments: arguments.to_string() }, arguments }
}

/// The results of these calls in one turn of a conversation.
fn ask_all(made: &[SharedTool], calls: &[ValidCall], timeout: Duration) -> Vec<ToolResult> {
    let mut tools = BuiltInTools::new(made, &Value::Null, timeout, Interrupt::default()).unwrap();
    tools.call(calls, &ConversationView::EMPTY).unwrap()
}

fn ask(made: &[SharedTool], name: &str, arguments: Value) -> (String, Option<ReplyFailure>) {
    let answer = ask_all(made, &[call(name, arguments)], Duration::from_secs(20)).remove(0);
    (answer.text, answer.failure)
}

fn message(words: &str) -> (String, Option<ReplyFailure>) {
    (words.to_owned(), None)
}

fn failed(name: &str, words: &str, failure: ReplyFailure) -> (String, Option<ReplyFailure>) {
    (format!("Error executing tool '{name}': {words}"), Some(failure))
}

/// A server at an address, which ends with the test.
struct Site(Child, String);

impl Site {
    fn start() -> Self {
        let mut command = Command::new("python3");
        let mut child = command.args([SERVER, "--http"]).env("SERVER_KEY", "k3y").stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self(child, format!("http://127.0.0.1:{}", port.trim()))
    }

    fn at(&self, path: &str) -> Value {
        json!({"url": format!("{}{path}", self.1), "headers": {"Authorization": "Bearer k3y"}})
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A program, and an address over each transport: the results are equal.
#[test]
fn tools_of_servers_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start();
    for server in [program(&[]), site.at("/mcp"), site.at("/moved"), site.at("/stream"), site.at("/sse/")] {
        let made = made(folder.path(), &server);
        let names: Vec<&str> = made.iter().map(SharedTool::name).collect();
        assert_eq!((names.len(), &names[..3], names[17]), (18, &["calculator", "echo", "sleep"][..], "forget"), "every page");
        let function = &made[1].schema()["function"];
        let text = json!({"type": "string", "description": "A text", "default": "x"});
        assert_eq!(function["parameters"], json!({"type": "object", "properties": {"text": text}, "required": ["text"]}));

        assert_eq!(ask(&made, "echo", json!({"text": "ä\n\"\u{2028}"})), message("ä\n\"\u{2028}"), "{server}");
        assert_eq!(ask(&made, "fail", json!({})), failed("fail", "it is broken", ReplyFailure::Raised));
        assert_eq!(ask(&made, "refuse", json!({})), failed("refuse", "no, never (-32602)", ReplyFailure::Raised));
        assert_eq!(ask(&made, "picture", json!({})), message("[image image/png, 3 bytes, not shown] a dot"));
        assert_eq!(ask(&made, "odd", json!({})), message(""));
        let object = "the arguments must be an object of names and values";
        assert_eq!(ask(&made, "echo", json!([1])), failed("echo", object, ReplyFailure::Raised));
        assert_eq!(ask(&made, "huge", json!({"size": 10_000_000})).0.len(), 10_000_000);
        if server["url"].as_str().is_none_or(|url| !url.ends_with("/mcp") && !url.ends_with("/moved")) {
            // A ping gets a reply; capabilities that need a user are not offered.
            assert_eq!(ask(&made, "ask", json!({})), message("{} -32601"), "{server}");
        }
        // Calls of several conversations use one connection at the same time.
        let started = Instant::now();
        std::thread::scope(|scope| {
            for conversation in 0..8 {
                let made = &made;
                scope.spawn(move || {
                    let (sleep, words) = (call("sleep", json!({"seconds": 0.5})), format!("{conversation}"));
                    let calls = [sleep.clone(), call("echo", json!({"text": words})), sleep];
                    let answers = ask_all(made, &calls, Duration::from_secs(20));
                    let texts: Vec<&str> = answers.iter().map(|answer| answer.text.as_str()).collect();
                    assert_eq!(texts, ["slept", &words, "slept"]);
                });
            }
        });
        assert!(started.elapsed() < Duration::from_secs(8), "16 calls of half a second one after another");
        // A session that the server forgets is started again.
        if server["url"].is_string() {
            _ = ask(&made, "forget", json!({}));
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(ask(&made, "echo", json!({"text": "again"})), message("again"), "{server}");
        }
        let late = ask_all(&made, &[call("silent", json!({}))], Duration::from_millis(300)).remove(0);
        assert_eq!(
            (&*late.text, late.failure),
            ("Error executing tool 'silent': timed out after 0.3 s", Some(ReplyFailure::Timeout))
        );
        assert_eq!(ask(&made, "echo", json!({"text": "still"})), message("still"));
    }
}

#[test]
fn what_misbehaves_costs_its_own_call() {
    let folder = tempfile::tempdir().unwrap();
    let made = made(folder.path(), &program(&[]));
    assert_eq!(ask(&made, "noise", json!({})), message("heard"));
    let (names, _) = ask(&made, "names", json!({}));
    assert!(names.contains("OWN_KEY") && names.contains("PATH") && !names.contains("CARGO"), "{names}");

    // A server that has ended is started again for the next call. The current call is reported as lost, since the server may have
    // done it.
    assert_eq!(ask(&made, "die", json!({})), failed("die", "its server died", ReplyFailure::Died));
    assert_eq!(ask(&made, "count", json!({})), message("1 0"), "a new server");
    // If the tool declares that it changes nothing, the call is made again.
    let path = folder.path().join("died");
    assert_eq!(ask(&made, "die_once", json!({"path": path})), message("alive"));

    // An abandoned call is cancelled.
    let quick = Duration::from_millis(300);
    let late = ask_all(&made, &[call("silent", json!({}))], quick).remove(0);
    assert_eq!(late.failure, Some(ReplyFailure::Timeout));
    let started = Instant::now();
    while ask(&made, "count", json!({})).0.ends_with(" 0") {
        assert!(started.elapsed() < Duration::from_secs(20), "never cancelled");
    }
    // A server that does not reply is killed after a while, and the next call succeeds.
    let late = ask_all(&made, &[call("hang", json!({}))], quick).remove(0);
    assert_eq!(late.failure, Some(ReplyFailure::Timeout));
    assert_eq!(ask(&made, "echo", json!({"text": "there"})).1, Some(ReplyFailure::Died), "it was asked, and killed");
    assert_eq!(ask(&made, "echo", json!({"text": "there"})), message("there"));
    // A line without a line feed.
    assert_eq!(ask(&made, "line", json!({})), failed("line", "its server died", ReplyFailure::Died));
    assert_eq!(ask(&made, "echo", json!({"text": "there"})), message("there"));
}

/// Servers that ask and do not read, that list tools without end, or that say too much: each is one short error.
#[test]
fn what_floods_is_ended_and_cut() {
    let start = "import json, sys
def say(message): print(json.dumps({'jsonrpc': '2.0', **message}), flush=True)
def heard(): return json.loads(sys.stdin.readline())
def begin(version='2025-06-18'): say({'id': heard()['id'], 'result': {'protocolVersion': version, 'capabilities': {}}})
";
    let asks = "begin()\nwhile True: say({'id': 'x' * 1000, 'method': 'ping'})";
    let lists = "begin()
heard()
for i in range(1000):
    tools = [{'name': f'{i}_{j}', 'description': 'x' * 1000000, 'inputSchema': {}} for j in range(2)]
    say({'id': heard()['id'], 'result': {'tools': tools, 'nextCursor': str(i)}})
";
    let speaks = "begin('9' * 1000000)";
    for (code, says) in [(asks, "unread, and was killed"), (lists, "tools of more than 16 MiB"), (speaks, "(1000000 characters)")]
    {
        let folder = tempfile::tempdir().unwrap();
        let server = json!({"command": "python3", "args": ["-c", format!("{start}{code}")]});
        let entry = entry(folder.path(), &json!({ "s": server }), &json!({"type": "mcp"}), &Value::Null);
        let error = format!("{:#}", server_tools(&entry, &options()).map(|_| ()).unwrap_err());
        assert!(error.contains(says) && error.len() < 2000, "{}", error.chars().take(2000).collect::<String>());
    }
}

/// A stream of pings whose replies the server delays: the start ends in its time.
#[test]
fn delayed_pings_do_not_stretch_a_start() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (i, mut stream) in listener.incoming().map_while(Result::ok).enumerate() {
            std::thread::spawn(move || {
                let mut request = BufReader::new(stream.try_clone().unwrap()).lines();
                while request.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                if i > 0 {
                    std::thread::sleep(Duration::from_secs(20));
                }
                let pings = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n".repeat(10);
                let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                _ = stream.write_all(format!("{head}{pings}").as_bytes());
                std::thread::sleep(Duration::from_secs(20));
            });
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let entry = entry(folder.path(), &json!({ "s": {"url": url} }), &json!({"type": "mcp"}), &Value::Null);
    let (started, timeout) = (Instant::now(), Duration::from_secs(1));
    let error = server_tools(&entry, &McpOptions { start_timeout: timeout, ..options() }).map(|_| ()).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}: {error:#}", started.elapsed());
}

/// No process of a server is left, neither after a disconnect nor after this process is killed.
#[test]
fn servers_end_with_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    // The server ignores the end of its input, and so does its child.
    let code = format!(
        "sleep 1000 & echo $$ $! > {}; exec python3 -c \"
import json, signal, sys, time
for line in sys.stdin:
    message = json.loads(line)
    if message.get('id'):
        tools = [{{'name': 'x', 'inputSchema': {{'type': 'object'}}}}]
        result = {{'protocolVersion': '2025-06-18', 'tools': tools, 'capabilities': {{}}}}
        print(json.dumps({{'jsonrpc': '2.0', 'id': message['id'], 'result': result}}), flush=True)
time.sleep(1000)\"",
        note.display()
    );
    let server = json!({"command": "sh", "args": ["-c", code]});
    let is_running = |pid: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !status.is_empty() && !status.contains(") Z ")
    };
    let ends = |why: &str| {
        let pids = std::fs::read_to_string(&note).unwrap();
        let started = Instant::now();
        while pids.split_whitespace().any(is_running) {
            assert!(started.elapsed() < Duration::from_secs(20), "{why}: {pids}");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::fs::remove_file(&note).unwrap();
    };
    if let Ok(servers) = std::env::var("MCP_TEST_SERVERS") {
        // The process to kill: this test in a child process.
        let _made = made(Path::new(&servers), &serde_json::from_str(&std::env::var("MCP_TEST_SERVER").unwrap()).unwrap());
        kill_this_process();
    }
    let made = made(folder.path(), &server);
    assert!(std::fs::read_to_string(&note).unwrap().split_whitespace().all(is_running));
    drop(made);
    ends("the tools are dropped");
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "agents::mcp::servers_end_with_their_owner"]);
    let status = again.env("MCP_TEST_SERVERS", folder.path()).env("MCP_TEST_SERVER", server.to_string()).output().unwrap().status;
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    ends("the process is killed");
}

fn kill_this_process() -> ! {
    _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
    std::thread::sleep(Duration::from_secs(60));
    std::process::exit(1)
}

#[test]
fn mistakes_are_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start();
    let null = Value::Null;
    let mcp = json!({"type": "mcp"});
    let one = |server: Value| json!({ "s": server });
    let started = |mode: &str| one(program(&[&format!("--start={mode}")]));
    let keyless = json!({"url": site.at("/mcp")["url"]});
    let twice = json!({"a": program(&[]), "b": program(&[])});
    for (servers, config, selected, parts) in [
        (one(json!({"command": "no-such-program"})), &mcp, &null, &["the server `s` cannot be used", "no-such-program"][..]),
        (one(json!({"command": "python3", "cwd": "/no/such"})), &mcp, &null, &["folder /no/such"]),
        (started("exit"), &mcp, &null, &["`s` does not begin a session", "exit status 1", "no key: set SECRET_KEY"]),
        (started("hang"), &mcp, &null, &["within 1 s"]),
        (started("version"), &mcp, &null, &["\"1999-01-01\"", "2025-11-25"]),
        (started("empty"), &mcp, &null, &["offers no tools"]),
        (started("endless"), &mcp, &null, &["pages"]),
        (one(json!({"command": "echo", "args": ["hello"]})), &mcp, &null, &["ended with exit status 0"]),
        (one(keyless), &mcp, &null, &["status 401", "who are you?", "a token"]),
        (one(site.at("/none")), &mcp, &null, &["does not begin a session"]),
        (one(json!({"url": "http://127.0.0.1:9/mcp"})), &mcp, &null, &["cannot be reached"]),
        (one(json!({"url": "http://127.0.0.1:9/sse"})), &mcp, &null, &["cannot be reached"]),
        (one(json!({"url": "http://127.0.0.1:9/ x"})), &mcp, &null, &["not a valid address"]),
        (one(json!({"comand": "x"})), &mcp, &null, &["servers.json: `mcpServers.s.comand`", "Did you mean \"command\"?"]),
        (one(program(&[])), &mcp, &json!(["ecko"]), &["no server", "Did you mean \"echo\"?"]),
        (twice.clone(), &mcp, &json!(["echo"]), &["Did you mean \"a_echo\"?"]),
        (one(program(&[])), &json!({"rate_limit": 0}), &null, &["`rate_limit`"]),
        (one(program(&[])), &json!({"timeout": "x"}), &null, &["`timeout`"]),
        (one(program(&[])), &json!({"rate_limits": 3}), &null, &["Did you mean \"rate_limit\"?"]),
    ] {
        let entry = entry(folder.path(), &servers, config, selected);
        let patient = Duration::from_secs(if servers["s"]["args"][1] == "--start=hang" { 1 } else { 20 });
        let error = server_tools(&entry, &McpOptions { start_timeout: patient, ..options() }).err();
        let error = format!("{:#}", error.unwrap_or_else(|| panic!("{servers}")));
        assert!(parts.iter().all(|part| error.contains(part)), "{servers} {parts:?}: {error}");
    }
    let selected = server_tools(&entry(folder.path(), &twice, &mcp, &json!(["b_echo", "a_count"])), &options()).unwrap();
    assert_eq!(selected.iter().map(SharedTool::name).collect::<Vec<_>>(), ["a_count", "b_echo"]);
    assert_eq!(ask(&selected, "b_echo", json!({"text": "x"})), message("x"));
    let own = ToolConfig { class_name: "my.Tool".into(), ..entry(folder.path(), &twice, &mcp, &null) };
    assert!(format!("{:#}", server_tools(&own, &options()).err().unwrap()).contains("MCPBaseTool"));
    let damaged = entry(folder.path(), &twice, &mcp, &null);
    for (content, part) in [("{", "servers.json is not valid JSON"), ("{}", "has no `mcpServers`")] {
        std::fs::write(folder.path().join("servers.json"), content).unwrap();
        assert!(format!("{:#}", server_tools(&damaged, &options()).err().unwrap()).contains(part));
    }
}
