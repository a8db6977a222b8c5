//! Files that open something when they are loaded: a connection, a thread, a position in a file. Conversations do not share it,
//! and each gets its own results.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use burnish::agent::ReplyFailure;
use burnish::agent::session::{Host, RowTools, SessionOptions, StartMethod};
use burnish::agent::tools::{ToolResult, Toolbox};

use super::session::{File, call, seen, tools};

const CONVERSATIONS: usize = 4;
const CALLS: usize = 2;

/// Actions of a file when it is loaded, and the result of its tool `ask(x)`: x, if conversations do not disturb each other.
/// `PORT` is the port of a server that echoes each line, `FOLDER` is the file's folder.
const LEAVE: &[(&str, &str, &str)] = &[
    (
        "a connection",
        "import socket\nS = socket.create_connection(('127.0.0.1', PORT))\nF = S.makefile()",
        "S.sendall(('%s\\n' % x).encode()); return F.readline().strip()",
    ),
    (
        "a pair of sockets",
        "import socket, threading\nA, B = socket.socketpair()",
        "A.sendall(b'%d\\n' % x); return B.recv(100).decode().strip()",
    ),
    (
        "a thread",
        "import queue, threading\nQ = queue.Queue()\ndef _work():\n    while True:\n        x, reply = Q.get()\n        reply.put(x)\n\
         threading.Thread(target=_work, daemon=True).start()",
        "reply = queue.Queue(); Q.put((x, reply)); return reply.get(timeout=3)",
    ),
    (
        "a pool of threads",
        "from concurrent.futures import ThreadPoolExecutor\nP = ThreadPoolExecutor(2)\nP.submit(int, '1').result()",
        "return P.submit(int, x).result(timeout=3)",
    ),
    (
        "a database",
        "import sqlite3\nD = sqlite3.connect(FOLDER + '/d.sqlite', timeout=10)\nD.execute('create table if not exists t (x)')\nD.commit()",
        "D.execute('insert into t values (?)', (x,)); D.commit(); return D.execute('select x from t where x = ?', (x,)).fetchone()[0]",
    ),
    (
        "a place in a file",
        "F = open(FOLDER + '/lines')\nN = iter(range(1000))",
        "line = F.readline().strip(); return x if line == str(next(N)) else 'line ' + line",
    ),
    (
        "an event loop",
        "import asyncio\nL = asyncio.new_event_loop()",
        "asyncio.set_event_loop(L); return L.run_until_complete(asyncio.wait_for(asyncio.sleep(0.01, x), 3))",
    ),
    (
        "a child process",
        "import subprocess\nC = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)",
        "C.stdin.write('%s\\n' % x); C.stdin.flush(); return C.stdout.readline().strip()",
    ),
    (
        "shared memory",
        "import mmap\nM = mmap.mmap(-1, 8)\nN = iter(range(100))",
        "M[0] += 1; return x if M[0] == next(N) + 1 else 'shared'",
    ),
];

/// Actions of a file that forked conversations may share.
const HARMLESS: &[(&str, &str, &str)] = &[
    ("nothing", "", "return x"),
    ("a log", "L = open(FOLDER + '/log', 'a')", "L.write('%s\\n' % x); L.flush(); return x"),
    ("a thread that ended", "import threading\nT = threading.Thread(target=int)\nT.start()\nT.join()", "return x"),
    ("a connection that was closed", "import socket\nsocket.create_connection(('127.0.0.1', PORT)).close()", "return x"),
];

/// A server that echoes each line of each connection, after a delay.
fn echo() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut reply = connection.try_clone().unwrap();
                for line in BufReader::new(connection).lines().map_while(Result::ok) {
                    thread::sleep(Duration::from_millis(5));
                    if reply.write_all(format!("{line}\n").as_bytes()).is_err() {
                        break;
                    }
                }
            });
        }
    });
    port
}

fn file(port: u16, top: &str, body: &str) -> File {
    let code = format!(
        "import os\nPORT, FOLDER = {port}, os.path.dirname(os.path.abspath(__file__))\n{}\n\
         def ask(x: int):\n    \"\"\"Asks.\n\n    Args:\n        x: What.\n    \"\"\"\n    {body}\n",
        top.trim()
    );
    let file = File::new(&code);
    let lines: String = (0..100).map(|line| format!("{line}\n")).collect();
    fs::write(file.path().replace("my_agent.py", "lines"), lines).unwrap();
    file
}

fn start(file: &File, start_method: StartMethod) -> Host {
    Host::start(&file.functions(), SessionOptions { start_method, ..SessionOptions::default() }).unwrap()
}

/// The results of the calls of a conversation.
fn ask_tool(host: &Host, conversation: usize) -> Vec<ToolResult> {
    let mut tools = tools(host, RowTools::default(), Duration::from_secs(10));
    let mut ask = |nth: usize| {
        let arguments = format!(r#"{{"x": {}}}"#, 100 * conversation + nth);
        tools.call(&[call("ask", &arguments)], &seen(&[])).unwrap().remove(0)
    };
    (0..CALLS).map(&mut ask).collect()
}

/// Asserts that each of several conversations gets its own results.
fn assert_right(label: &str, host: &Host) {
    thread::scope(|scope| {
        let running: Vec<_> =
            (1..=CONVERSATIONS).map(|conversation| (conversation, scope.spawn(move || ask_tool(host, conversation)))).collect();
        for (conversation, answers) in running {
            for (nth, answer) in answers.join().unwrap().into_iter().enumerate() {
                assert_eq!((answer.text, answer.failure), ((100 * conversation + nth).to_string(), None), "{label}");
            }
        }
    });
}

#[test]
fn what_files_leave_open_is_not_shared() {
    let port = echo();
    for (label, top, body) in LEAVE {
        let file = file(port, top, body);
        let host = start(&file, StartMethod::Auto);
        assert!(host.loads_each(), "{label} was not seen");
        assert_right(label, &host);
        // It is shared if a setting asks for that.
        assert!(!start(&file, StartMethod::Fork).loads_each());
    }
    for (label, top, body) in HARMLESS {
        let file = file(port, top, body);
        let host = start(&file, StartMethod::Auto);
        assert!(!host.loads_each(), "{label} does no harm");
        assert_right(label, &host);
        let host = start(&file, StartMethod::Spawn);
        assert!(host.loads_each());
        assert_right(label, &host);
    }
}

#[test]
fn a_file_that_loads_once_only_fails_its_conversations() {
    let file = file(0, "os.mkdir(FOLDER + '/once')", "return x");
    let answers = ask_tool(&start(&file, StartMethod::Spawn), 1);
    assert!(answers.iter().all(|answer| answer.failure == Some(ReplyFailure::Died)), "{answers:?}");
    fs::remove_dir(file.path().replace("my_agent.py", "once")).unwrap();
    assert_eq!(ask_tool(&start(&file, StartMethod::Fork), 1)[0].failure, None);
}
