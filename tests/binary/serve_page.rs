//! The page of `trainer serve`, and the lines of its log.

use std::io::Read;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::serve::Server;

/// The page is one file with a policy that allows only its own script. A client without a token also gets the page, because the
/// page requests the token.
#[test]
fn the_page_is_whole_and_closed() {
    let server = Server::start(&["--token-env", "SERVE_TOKEN"]);
    let site = server.address.trim_end_matches("/v1");
    let mut reply = ureq::get(format!("{site}/")).call().unwrap();
    let header = |name: &str| reply.headers().get(name).unwrap().to_str().unwrap().to_owned();
    let (policy, kind) = (header("content-security-policy"), header("content-type"));
    assert_eq!(kind, "text/html; charset=utf-8");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-") && policy.contains("connect-src 'self'"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    let page = reply.body_mut().read_to_string().unwrap();
    for part in
        ["/v1/chat/completions", "/v1/completions", "/v1/models", "prefers-color-scheme: dark", "id=\"stop\"", "id=\"system\""]
    {
        assert!(page.contains(part), "{part}");
    }
    for part in ["innerHTML", "insertAdjacentHTML", "outerHTML", "document.write", "eval(", "https://", "http://", "src="] {
        assert!(!page.contains(part), "{part}");
    }
    in_browser(&["--key", "s3cret"], site);
    in_browser(&[], Server::start(&[]).address.trim_end_matches("/v1"));
}

#[expect(clippy::print_stderr, reason = "the test reports a check that it leaves out")]
fn in_browser(options: &[&str], site: &str) {
    if !Command::new("chromium").arg("--version").output().is_ok_and(|output| output.status.success()) {
        assert!(
            std::env::var_os("BURNISH_REQUIRE_CHROMIUM").is_none(),
            "BURNISH_REQUIRE_CHROMIUM is set, and chromium is not installed"
        );
        eprintln!("chromium is not installed: the page is not checked in a browser");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check/chat_page.py");
    let output = Command::new("python3").arg(&script).arg(format!("{site}/")).args(options).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{out}{err}");
}

/// Each request has a line: time, method, path, status, tokens, seconds; a summary is last.
#[test]
fn requests_are_logged() {
    let mut server = Server::logged(&[]);
    server.json("/completions", &json!({"prompt": "1+2=", "max_tokens": 2, "temperature": 0}));
    server.ask("/completions", &json!({"prompt": "1+2=", "max_tokens": 2, "stream": true}), "");
    server.ask("/completions", &json!({"prompt": 7}), "");
    server.ask("/nothing", &json!({}), "");
    let log = server.stopped();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("Z ")).collect();
    for (line, parts) in lines.iter().zip([
        &["Z POST /v1/completions 200, 4 + ", " tokens, ", " s"][..],
        &["Z POST /v1/completions 200, 4 + ", " tokens, ", " s"],
        &["Z POST /v1/completions 400: `prompt`", " s"],
        &["Z POST /v1/nothing 404: "],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{parts:?}: {log}");
    }
    assert!(lines.len() == 4 && log.contains("served 2 requests in ") && log.contains("2 refused"), "{log}");
}

impl Server {
    /// Starts a server whose standard error is kept.
    fn logged(options: &[&str]) -> Self {
        Self::started("data/arithmetic/model", options, std::process::Stdio::piped())
    }

    /// Stops the server and returns its log.
    fn stopped(&mut self) -> String {
        assert!(Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap().success());
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log
    }
}
