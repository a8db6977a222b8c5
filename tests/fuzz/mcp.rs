//! Messages of servers of the Model Context Protocol, and the files that list the servers.

use std::io::Cursor;

use burnish::agent::config::servers;
use burnish::agent::tools::mcp::{Events, incoming};

use crate::Target;

/// Streams of events, and the messages in them.
pub(crate) fn streams_of_servers() -> Target {
    Target {
        name: "streams_of_servers",
        seeds: || {
            let stream = ": hi\n\nid: 7\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n\
                 event: endpoint\r\ndata: /messages?session=1\r\n\r\ndata: [{\"method\":\"ping\",\"id\":\"a\"},\ndata: {\"id\":2,\"error\":{\"code\":-1}}]\n\n";
            vec![stream.as_bytes().to_vec()]
        },
        words: &["data:", "event:", "id:", ":", "\n", "\r\n", "\r", "\0", "{", "}", "[", "]", "\"id\":", "1e999", "null", "é"],
        cases: 1_000,
        read: |input, _| {
            let mut events = Events::new(Cursor::new(input));
            while let Ok(Some(event)) = events.read() {
                _ = incoming(event.data.as_bytes());
            }
            _ = incoming(input);
        },
    }
}

/// Files that list servers.
pub(crate) fn lists_of_servers() -> Target {
    Target {
        name: "lists_of_servers",
        seeds: || {
            let program = r#"{"mcpServers":{"a":{"command":"x","args":["${A:-b}"],"env":{"K":"${B}"},"cwd":"/","timeout":5}}}"#;
            let address =
                r#"{"mcpServers":{"b":{"url":"https://h/sse?x=1","headers":{"A":"b"},"auth_token":"t","transport":"http"}}}"#;
            [program, address].map(|text| text.as_bytes().to_vec()).to_vec()
        },
        words: &["null", "{}", "[]", "\"\"", "${", "}", ":-", "\"disabled\":true,", "\"auth\":\"oauth\",", "-1", "1e99", "é"],
        cases: 1_000,
        read: |input, _| {
            if let Ok(file) = serde_json::from_slice(input) {
                _ = servers(&file, &|name| (name == "B").then(|| "value".to_owned()));
            }
        },
    }
}
