//! Tools that hang, crash, print, fork and lie: each fails within its time limit, and only in its own conversation.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use burnish::agent::ReplyFailure;
use burnish::agent::session::{Host, RowTools, SessionOptions};
use burnish::agent::tools::Toolbox;
use burnish::util::interrupt::Interrupt;

use super::session::{File, call, host, seen, tools};

const CHAOS: &str = r#"
import asyncio, ctypes, os, signal, subprocess, sys, threading, time

count = 0

def counted():
    """Counts."""
    global count
    count += 1
    return count

def sleeps():
    """Sleeps."""
    time.sleep(1000)

def sleeps_in_c():
    """Sleeps, and no other code runs meanwhile."""
    ctypes.PyDLL(None).sleep(1000)

def spins():
    """Spins."""
    while True:
        pass

async def awaits():
    """Awaits."""
    await asyncio.sleep(1000)

def swallows():
    """Catches everything."""
    for number in range(1, 60):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass

def exits():
    """Exits."""
    os._exit(3)

def faults():
    """Reads where nothing is."""
    ctypes.string_at(0)

def kills_itself():
    """Kills itself."""
    os.kill(os.getpid(), signal.SIGKILL)

def kills_its_group():
    """Kills its group."""
    os.killpg(0, signal.SIGKILL)

def aborts():
    """Aborts."""
    os.abort()

def allocates():
    """Allocates."""
    kept = []
    while True:
        kept.append(bytearray(1 << 24))

def prints():
    """Prints."""
    for _ in range(20000):
        print("x" * 1000)
    return "printed"

def prints_forever():
    """Prints."""
    while True:
        sys.stderr.write("x" * 10000)

def system_exit():
    """Ends."""
    sys.exit("no more")

def base_exception():
    """Raises."""
    raise BaseException("base")

def recurses():
    """Recurses."""
    return recurses()

def long_answer():
    """Answers long."""
    return "y" * 10000000

def longest_answer():
    """Answers too long."""
    return "y" * 70000000

def closes():
    """Closes everything."""
    os.closerange(0, 1024)
    return "closed"

def closes_output():
    """Closes the output."""
    os.closerange(0, 3)
    return "closed"

def alarms():
    """Leaves an alarm."""
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    return "alarm"

def forks():
    """Leaves children."""
    if os.fork() == 0:
        time.sleep(1000)
    subprocess.Popen(["sleep", "1001"])
    subprocess.Popen(["sleep", "1001"], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)
    return os.getpid()

def forks_and_exits():
    """Leaves children and exits."""
    forks()
    os._exit(0)

def fork_returns():
    """Answers twice."""
    os.fork()
    return "one"

def threads():
    """Leaves threads."""
    for _ in range(5):
        threading.Thread(target=time.sleep, args=(1000,)).start()
    return "threads"

def writes():
    """Writes to the connection."""
    for descriptor in range(3, 400):
        try:
            os.write(descriptor, b"nonsense\n")
        except OSError:
            pass
    return "written"
"#;

/// Time in addition to its limit, in which a call must end.
const MORE: Duration = Duration::from_secs(1);

/// The outcome of a call for each function: the kind of failure, a part of the result's text, and whether the conversation
/// continues in the same process.
const TABLE: &[(&str, Option<ReplyFailure>, &str, bool)] = &[
    ("sleeps", Some(ReplyFailure::Timeout), "timed out after 2 s", false),
    ("sleeps_in_c", Some(ReplyFailure::Timeout), "timed out after 2 s", false),
    ("spins", Some(ReplyFailure::Timeout), "timed out after 2 s", false),
    ("awaits", Some(ReplyFailure::Timeout), "timed out after 2 s", false),
    ("swallows", Some(ReplyFailure::Timeout), "timed out after 2 s", false),
    ("prints_forever", Some(ReplyFailure::Timeout), "timed out after 2 s", false),
    ("exits", Some(ReplyFailure::Died), "its process died", false),
    ("faults", Some(ReplyFailure::Died), "its process died", false),
    ("kills_itself", Some(ReplyFailure::Died), "its process died", false),
    ("kills_its_group", Some(ReplyFailure::Died), "its process died", false),
    ("aborts", Some(ReplyFailure::Died), "its process died", false),
    ("closes", Some(ReplyFailure::Died), "its process died", false),
    ("forks_and_exits", Some(ReplyFailure::Died), "its process died", false),
    ("allocates", Some(ReplyFailure::Raised), "{'error': ''}", true),
    ("system_exit", Some(ReplyFailure::Raised), "{'error': 'no more'}", true),
    ("base_exception", Some(ReplyFailure::Raised), "{'error': 'base'}", true),
    ("recurses", Some(ReplyFailure::Raised), "recursion", true),
    ("longest_answer", Some(ReplyFailure::Raised), "too long", true),
    ("long_answer", None, "yyyy", true),
    ("prints", None, "printed", true),
    ("closes_output", None, "closed", true),
    ("alarms", None, "alarm", true),
    ("forks", None, "", true),
    ("fork_returns", None, "one", true),
    ("threads", None, "threads", true),
];

fn chaos(file: &File) -> Host {
    let options = SessionOptions { memory_limit_mb: Some(512), ..SessionOptions::default() };
    Host::start(&file.functions(), options).unwrap()
}

/// The number of processes that `forks` has started and that still run.
fn sleepers() -> usize {
    let commands = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    commands.filter(|command| command.starts_with(b"sleep\x001001")).count()
}

/// Ends the other conversation, if a check fails too: the test would wait for it without end.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn whatever_a_tool_does_costs_its_own_conversation() {
    let file = File::new(CHAOS);
    let host = chaos(&file);
    let limit = Duration::from_secs(2);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stops = Stops(&stop);
        // A second conversation continues undisturbed in the meantime.
        let quiet = scope.spawn(|| {
            let mut tools = tools(&host, RowTools::default(), Duration::from_secs(20));
            let mut calls = 0;
            while !stop.load(Ordering::Relaxed) {
                calls += 1;
                let answer = tools.call(&[call("counted", "{}")], &seen(&[])).unwrap().remove(0);
                assert_eq!((answer.text, answer.failure), (calls.to_string(), None));
                thread::sleep(Duration::from_millis(20));
            }
        });
        for &(name, failure, text, goes_on) in TABLE {
            let mut tools = tools(&host, RowTools::default(), limit);
            let count = |tools: &mut burnish::agent::session::PythonTools| {
                tools.call(&[call("counted", "{}")], &seen(&[])).unwrap().remove(0).text
            };
            assert_eq!(count(&mut tools), "1", "{name}");
            let started = Instant::now();
            let answer = tools.call(&[call(name, "{}")], &seen(&[])).unwrap().remove(0);
            let took = started.elapsed();
            assert!(took < limit + MORE, "{name} took {took:?}");
            assert_eq!(answer.failure, failure, "{name}: {:.200}", answer.text);
            assert!(answer.text.contains(text), "{name}: {:.200}", answer.text);
            if name == "alarms" {
                thread::sleep(Duration::from_millis(300));
            }
            assert_eq!(count(&mut tools), if goes_on { "2" } else { "1" }, "{name}");
        }
        drop(stops);
        quiet.join().unwrap();
    });
    assert_eq!(sleepers(), 0, "what conversations started outlives them");
}

#[test]
fn what_is_done_of_a_turn_counts_although_another_call_of_it_hangs() {
    let file = File::new(CHAOS);
    let host = chaos(&file);
    let mut tools = tools(&host, RowTools::default(), Duration::from_secs(1));
    let calls = [call("counted", "{}"), call("awaits", "{}"), call("counted", "{}")];
    let answers = tools.call(&calls, &seen(&[])).unwrap();
    assert_eq!(answers.iter().map(|answer| answer.failure).collect::<Vec<_>>(), [None, Some(ReplyFailure::Timeout), None]);
    assert_eq!((answers[0].text.as_str(), answers[2].text.as_str()), ("1", "2"));
    // Text that a tool prints to the connection is not trusted; after it, the next call gets a result again.
    let _ = tools.call(&[call("writes", "{}")], &seen(&[])).unwrap();
    let _ = tools.call(&[call("counted", "{}")], &seen(&[])).unwrap();
    assert_eq!(tools.call(&[call("counted", "{}")], &seen(&[])).unwrap()[0].failure, None);
}

#[test]
fn a_host_that_is_killed_is_started_again() {
    let file = File::new(&format!(
        "{CHAOS}\ndef kills_host():\n    \"\"\"Kills.\"\"\"\n    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(1000)\n"
    ));
    let host = chaos(&file);
    let mut tools = tools(&host, RowTools::default(), Duration::from_secs(5));
    let answer = tools.call(&[call("kills_host", "{}")], &seen(&[])).unwrap().remove(0);
    assert_eq!(answer.failure, Some(ReplyFailure::Died));
    assert_eq!(tools.call(&[call("counted", "{}")], &seen(&[])).unwrap()[0].text, "1");
}

#[test]
fn an_interrupt_ends_a_call_and_not_the_host() {
    let file = File::new(CHAOS);
    let interrupt = Interrupt::default();
    let options = SessionOptions { interrupt: interrupt.clone(), ..SessionOptions::default() };
    let host = Host::start(&file.functions(), options).unwrap();
    thread::scope(|scope| {
        let call =
            scope.spawn(|| tools(&host, RowTools::default(), Duration::from_secs(60)).call(&[call("sleeps", "{}")], &seen(&[])));
        thread::sleep(Duration::from_millis(500));
        let started = Instant::now();
        interrupt.ask();
        assert!(call.join().unwrap().is_err());
        assert!(started.elapsed() < MORE);
    });
}

#[test]
fn many_conversations_run_at_the_same_time() {
    let file = File::new(CHAOS);
    let host = host(&file.functions());
    thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                let mut tools = tools(&host, RowTools::default(), Duration::from_secs(60));
                for count in 1..5 {
                    assert_eq!(tools.call(&[call("counted", "{}")], &seen(&[])).unwrap()[0].text, count.to_string());
                }
            });
        }
    });
}
