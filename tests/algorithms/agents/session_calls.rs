//! The calls of one turn: each has its own time limit, for every form of tool, and no call affects the result of another.

use std::time::{Duration, Instant};

use burnish::agent::ReplyFailure;
use burnish::agent::session::{EnvironmentClass, Host, PythonEnvironment, PythonTools, RowTools, SessionOptions, Setup};
use burnish::agent::tools::{ToolResult, Toolbox};
use serde_json::{Map, json};

use super::session::{File, call, seen};

const FORMS: &str = r#"
import asyncio, os, time
from verl.tools.base_tool import BaseTool
from verl.tools.function_tool import function_tool
from verl.tools.schemas import ToolResponse

def act(x):
    if x == 99:
        os._exit(1)
    time.sleep(1000 if x == 98 else SECONDS)
    return str(x)

def plain(x: int):
    """Works.

    Args:
        x: What.
    """
    return act(x)

async def blocks(x: int):
    """Works.

    Args:
        x: What.
    """
    return act(x)

async def awaits(x: int):
    """Works.

    Args:
        x: What.
    """
    await asyncio.sleep(1000 if x == 98 else SECONDS)
    return act(99) if x == 99 else str(x)

class Class(BaseTool):
    async def execute(self, instance_id, parameters, **kwargs):
        return ToolResponse(text=act(parameters["x"])), 0.0, {}

@function_tool("decorated")
def decorated(x: int) -> str:
    """Works.

    Args:
        x: What.
    """
    return act(x)

class Toy:
    def reset(self, **row):
        self.begun = True

    def method(self, x: int):
        """Works.

        Args:
            x: What.
        """
        assert self.begun
        return act(x)
"#;

/// The name of a tool of each form.
const NAMES: [&str; 6] = ["plain", "blocks", "awaits", "class", "decorated", "method"];

/// The tools of a conversation with an environment that has begun.
fn tools(file: &File, limit: Duration) -> PythonTools {
    let schema = json!({"type": "function", "function": {"name": "class", "description": "Works.", "parameters":
        {"type": "object", "properties": {"x": {"type": "integer", "description": "What."}}, "required": ["x"]}}});
    let mut setup = file.functions();
    setup.functions[0].names = ["plain", "blocks", "awaits"].map(str::to_owned).into();
    let setup = Setup {
        files: vec![file.path()],
        verl_tools: vec![json!({"class_name": "my_agent.Class", "config": {}, "tool_schema": schema})],
        function_tools: Some(file.path()),
        environments: vec![EnvironmentClass { name: None, path: file.path(), class: "Toy".to_owned() }],
        ..setup
    };
    let host = Host::start(&setup, SessionOptions::default()).unwrap();
    let session = host.session();
    PythonEnvironment::new(session.clone(), None, limit).reset(&Map::new()).unwrap().unwrap();
    PythonTools::new(session, host.offers(), host.offers().environments.first(), RowTools::default(), limit)
}

fn ask(tools: &mut PythonTools, calls: &[(&str, u32)]) -> Vec<ToolResult> {
    let calls: Vec<_> = calls.iter().map(|(name, x)| call(name, &format!(r#"{{"x": {x}}}"#))).collect();
    tools.call(&calls, &seen(&[])).unwrap()
}

/// Calls that together take longer than the time limit of one.
#[test]
fn each_call_has_the_whole_time_in_every_form() {
    let file = File::new(&FORMS.replace("SECONDS", "0.3"));
    let mut tools = tools(&file, Duration::from_millis(800));
    for name in NAMES {
        let answers = ask(&mut tools, &[(name, 1), (name, 2), (name, 3)]);
        let texts: Vec<&str> = answers.iter().map(|answer| answer.text.as_str()).collect();
        assert_eq!(texts, ["1", "2", "3"], "{name}");
    }
    let mixed: Vec<(&str, u32)> = NAMES.iter().map(|name| (*name, name.len() as u32)).collect();
    for (answer, (name, x)) in ask(&mut tools, &mixed).iter().zip(&mixed) {
        assert_eq!((&answer.text, answer.failure), (&x.to_string(), None), "{name} with all others");
    }
}

/// A call that hangs or ends its process loses itself and the state of its process; calls that had not begun are still made.
#[test]
fn a_call_that_is_killed_takes_no_other_with_it_that_had_not_begun() {
    let file = File::new(&FORMS.replace("SECONDS", "0.01"));
    for (x, failure) in [(98, ReplyFailure::Timeout), (99, ReplyFailure::Died)] {
        // An `async` call has begun together with the others, and ends with their process.
        for name in ["plain", "blocks", "class", "awaits"].into_iter().filter(|name| *name != "awaits" || x == 98) {
            let mut tools = tools(&file, Duration::from_secs(1));
            let started = Instant::now();
            let answers = ask(&mut tools, &[(name, 1), (name, x), (name, 3)]);
            assert!(started.elapsed() < Duration::from_secs(4), "{name}");
            let found: Vec<_> = answers.iter().map(|answer| answer.failure).collect();
            assert_eq!(found, [None, Some(failure), None], "{name}: {answers:?}");
            assert_eq!((answers[0].text.as_str(), answers[2].text.as_str()), ("1", "3"), "{name}");
        }
    }
    // The environment ended with its process, and an error reports it.
    let mut tools = tools(&file, Duration::from_secs(1));
    let answers = ask(&mut tools, &[("method", 1), ("method", 98), ("method", 3)]);
    assert_eq!((answers[0].text.as_str(), answers[1].failure), ("1", Some(ReplyFailure::Timeout)));
    assert!(answers[2].text.contains("lost with its process"), "{:?}", answers[2]);
}

/// A turn with a long error message.
#[test]
fn errors_are_told_up_to_a_length() {
    let file = File::new(
        "def fails():\n    \"\"\"Fails.\"\"\"\n    raise ValueError('é' * 5_000_000)\n\
         class Odd(Exception):\n    def __str__(self):\n        raise self\n\
         def fails_oddly():\n    \"\"\"Fails.\"\"\"\n    raise Odd\n",
    );
    let host = Host::start(&file.functions(), SessionOptions::default()).unwrap();
    let mut tools = PythonTools::new(host.session(), host.offers(), None, RowTools::default(), Duration::from_secs(20));
    for name in ["fails", "fails_oddly"] {
        let answers = tools.call(&[call(name, "{}"), call(name, "{}")], &seen(&[])).unwrap();
        for answer in answers {
            assert_eq!(answer.failure, Some(ReplyFailure::Raised));
            assert!(
                answer.text.len() < 20_000 && answer.text.contains(if name == "fails" { "(5000000 characters)" } else { "Odd" })
            );
        }
    }
}
