//! The built-in tools of one conversation.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::settings::only_known;
use super::tool::{BuiltInKind, BuiltInTool, ToolError, ToolOutput};
use crate::tools::{ConversationView, ToolResult, Toolbox, ValidCall};
use burnish_util::interrupt::Interrupt;

/// The longest time until an interrupt is noticed.
const POLL: Duration = Duration::from_millis(50);

/// A built-in tool, or one of a service, created once for all conversations.
#[derive(Clone)]
pub struct SharedTool {
    name: String,
    schema: Value,
    tool: Arc<dyn BuiltInTool>,
    from_service: bool,
}

impl SharedTool {
    /// Creates a tool from an entry of a tool configuration: its `config`, and its `tool_schema` if it has one.
    ///
    /// # Errors
    /// An unknown, missing or invalid setting, or a schema without a name.
    pub fn new(kind: &BuiltInKind, config: &Value, schema: Option<Value>) -> Result<Self> {
        let make = || -> Result<Self> {
            only_known(kind.settings, config)?;
            let schema = schema.unwrap_or_else(kind.schema);
            let name = schema["function"]["name"].as_str().context("`tool_schema` has no function.name")?.to_owned();
            Ok(Self { name, schema, tool: (kind.make)(config)?.into(), from_service: false })
        };
        make().with_context(|| format!("the tool {}", kind.class_names[0]))
    }

    /// Creates a tool that a service offers with this schema.
    ///
    /// # Errors
    /// A schema without a name.
    pub(crate) fn from_service(schema: Value, tool: Arc<dyn BuiltInTool>) -> Result<Self> {
        let name = schema["function"]["name"].as_str().context("the schema of a tool has no function.name")?.to_owned();
        Ok(Self { name, schema, tool, from_service: true })
    }

    /// Returns the schema that the model gets, in OpenAI's form.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Returns true if the tool belongs to a service that was started or connected to for it.
    pub fn is_from_service(&self) -> bool {
        self.from_service
    }

    /// Returns true if calls of the tool wait for something outside this process.
    pub fn waits(&self) -> bool {
        self.tool.waits()
    }

    /// Returns the name by which the model calls the tool.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The built-in tools of one conversation.
pub struct BuiltInTools {
    tools: Vec<(SharedTool, Value)>,
    schemas: Vec<Value>,
    timeout: Duration,
    interrupt: Interrupt,
}

impl BuiltInTools {
    /// Begins a conversation whose row has these `tools_kwargs`: an object with one object per tool, or null. `timeout` is the
    /// time limit of one call.
    ///
    /// # Errors
    /// A value that the row lacks for a tool.
    pub fn new(made: &[SharedTool], tools_kwargs: &Value, timeout: Duration, interrupt: Interrupt) -> Result<Self> {
        let begin = |made: &SharedTool| {
            let state = made.tool.begin(&tools_kwargs[&made.name]["create_kwargs"]);
            Ok((made.clone(), state.with_context(|| format!("the tool {}", made.name))?))
        };
        let tools: Vec<_> = made.iter().map(begin).collect::<Result<_>>()?;
        let schemas = tools.iter().map(|(made, _)| made.schema.clone()).collect();
        Ok(Self { tools, schemas, timeout, interrupt })
    }

    /// Runs a call of a waiting tool on a separate thread that is never joined, because a service can hang for any time.
    fn start(&self, tool: &Arc<dyn BuiltInTool>, call: &ValidCall) -> Result<Receiver<(Result<ToolOutput, ToolError>, f64)>> {
        let (send, receive) = sync_channel(1);
        let (tool, arguments, timeout) = (tool.clone(), call.arguments.clone(), self.timeout);
        let run = move || {
            let started = Instant::now();
            let result = tool.call(&arguments, &mut Value::Null, timeout);
            _ = send.send((result, started.elapsed().as_secs_f64()));
        };
        thread::Builder::new().name("tool".to_owned()).spawn(run).context("cannot start a thread for a tool call")?;
        Ok(receive)
    }

    fn wait(
        &self,
        receive: &Receiver<(Result<ToolOutput, ToolError>, f64)>,
        end: Instant,
    ) -> Result<(Result<ToolOutput, ToolError>, f64)> {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match receive.recv_timeout(left.min(POLL)) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Disconnected) => return Ok((Err(ToolError::raised("the tool broke off")), 0.0)),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Ok((Err(ToolError::late(self.timeout)), self.timeout.as_secs_f64()));
                }
                Err(RecvTimeoutError::Timeout) => self.interrupt.check()?,
            }
        }
    }
}

impl Toolbox for BuiltInTools {
    fn schemas(&self) -> &[Value] {
        &self.schemas
    }

    fn call(&mut self, calls: &[ValidCall], _: &ConversationView) -> Result<Vec<ToolResult>> {
        self.interrupt.check()?;
        let end = Instant::now() + self.timeout;
        let index = |call: &ValidCall| self.tools.iter().position(|(made, _)| made.name == call.written.name);
        let indices: Vec<Option<usize>> = calls.iter().map(index).collect();
        let mut waiting = Vec::with_capacity(calls.len());
        for (call, index) in calls.iter().zip(&indices) {
            let tool = index.map(|index| &self.tools[index].0.tool).filter(|tool| tool.waits());
            waiting.push(tool.map(|tool| self.start(tool, call)).transpose()?);
        }
        let mut answers = Vec::with_capacity(calls.len());
        for ((call, index), receive) in calls.iter().zip(indices).zip(waiting) {
            let (result, seconds) = match (index, receive) {
                (_, Some(receive)) => self.wait(&receive, end)?,
                (Some(index), None) => {
                    let started = Instant::now();
                    let (made, state) = &mut self.tools[index];
                    let result = made.tool.call(&call.arguments, state, self.timeout);
                    (result, started.elapsed().as_secs_f64())
                }
                (None, None) => (Err(ToolError::raised("there is no such tool")), 0.0),
            };
            answers.push(answer(&call.written.name, result, seconds));
        }
        Ok(answers)
    }
}

/// Returns the result for the model; errors are worded as in verl.
fn answer(name: &str, result: Result<ToolOutput, ToolError>, seconds: f64) -> ToolResult {
    match result {
        Ok(ToolOutput { text, reward }) => ToolResult { text, reward, failure: None, seconds, extra: Map::new() },
        Err(ToolError { failure, message }) => ToolResult {
            text: format!("Error executing tool '{name}': {message}"),
            reward: Some(0.0),
            failure: Some(failure),
            seconds,
            extra: Map::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use serde_json::json;

    use super::super::calculator::CALCULATOR;
    use super::super::gsm8k::GSM8K;
    use super::super::search::SEARCH;
    use super::*;
    use crate::ReplyFailure;
    use crate::calls::ToolCall;

    fn call(name: &str, arguments: Value) -> ValidCall {
        ValidCall { written: ToolCall { id: None, name: name.to_owned(), arguments: arguments.to_string() }, arguments }
    }

    fn make_tool(kind: &BuiltInKind, config: Value) -> Result<SharedTool> {
        SharedTool::new(kind, &config, None)
    }

    #[test]
    fn calls_of_a_turn_are_answered_in_order_within_the_time_of_one() {
        // A server that never replies: connections wait in the listener's queue.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", silent.local_addr().unwrap());
        let tools = [
            make_tool(&CALCULATOR, json!({"type": "native"})).unwrap(),
            make_tool(&SEARCH, json!({"retrieval_service_url": url})).unwrap(),
            make_tool(&GSM8K, Value::Null).unwrap(),
        ];
        let kwargs = json!({"calc_gsm8k_reward": {"create_kwargs": {"ground_truth": "72"}}});
        let interrupt = Interrupt::default();
        let mut toolbox = BuiltInTools::new(&tools, &kwargs, Duration::from_millis(300), interrupt.clone()).unwrap();
        let names: Vec<&str> = toolbox.schemas().iter().filter_map(|schema| schema["function"]["name"].as_str()).collect();
        assert_eq!(names, ["calculator", "search", "calc_gsm8k_reward"]);
        let calls = [
            call("search", json!({"query_list": ["a"]})),
            call("calculator", json!({"expression": "6*7"})),
            call("search", json!({"query_list": ["b"]})),
            call("calculator", json!({"expression": "1/0"})),
            call("calc_gsm8k_reward", json!({"answer": "72"})),
            call("calc_gsm8k_reward", json!({"answer": "72"})),
        ];
        let started = Instant::now();
        let answers = toolbox.call(&calls, &ConversationView::EMPTY).unwrap();
        assert!(started.elapsed() < Duration::from_secs(5));
        let texts: Vec<&str> = answers.iter().map(|answer| answer.text.as_str()).collect();
        let late = "Error executing tool 'search': timed out after 0.3 s";
        let judged = "Current parsed answer='72' reward=1.0";
        assert_eq!(texts, [late, "42", late, "Error executing tool 'calculator': division by zero", judged, judged]);
        let troubles: Vec<_> = answers.iter().map(|answer| answer.failure).collect();
        let (late, raised) = (Some(ReplyFailure::Timeout), Some(ReplyFailure::Raised));
        assert_eq!(troubles, [late, None, late, raised, None, None]);
        let rewards: Vec<_> = answers.iter().map(|answer| answer.reward).collect();
        assert_eq!(rewards, [0.0, 0.0, 0.0, 0.0, 0.0, -0.05].map(Some));
        interrupt.ask();
        assert!(toolbox.call(&calls, &ConversationView::EMPTY).is_err());
    }

    #[test]
    fn mistakes_are_said_at_the_start() {
        for (kind, config, expected) in [
            (&CALCULATOR, json!({"digits": 3}), "no setting `digits`"),
            (&CALCULATOR, json!([1]), "must be a mapping"),
            (&SEARCH, json!({}), "`retrieval_service_url` is not set"),
            (&SEARCH, json!({"retrieval_service_url": "host:1"}), "must begin with http"),
            (&SEARCH, json!({"retrieval_service_url": "http://h/", "topk": 0}), "`topk`"),
            (&SEARCH, json!({"retrieval_service_ur": "http://h/"}), "mean"),
        ] {
            let error = format!("{:#}", make_tool(kind, config).err().expect(expected));
            assert!(error.contains(expected) && error.contains(kind.class_names[0]), "{error}");
        }
        let tools = [make_tool(&GSM8K, Value::Null).unwrap()];
        assert!(BuiltInTools::new(&tools, &Value::Null, Duration::ZERO, Interrupt::default()).is_err());
    }
}
