//! Users' files for the agents of verl, TRL and OpenRLHF, in the worker processes of conversations.

use std::fs;
use std::time::Duration;

use burnish::agent::ReplyFailure;
use burnish::agent::calls::ToolCall;
use burnish::agent::participants::{TextEnvironment, User};
use burnish::agent::session::{
    EnvironmentClass, Functions, Host, PythonEnvironment, PythonTextEnvironment, PythonTools, PythonUser, RowTools,
    SessionOptions, Setup,
};
use burnish::agent::tools::{ConversationView, ToolResult, Toolbox, ValidCall};
use serde_json::{Value, json};

const TIME: Duration = Duration::from_secs(20);

/// A file of the user, in a folder that is removed when this is dropped.
pub(super) struct File(tempfile::TempDir);

impl File {
    pub(super) fn new(code: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("my_agent.py"), code).unwrap();
        Self(folder)
    }

    pub(super) fn path(&self) -> String {
        self.0.path().join("my_agent.py").to_str().unwrap().to_owned()
    }

    /// All functions of the file as tools.
    pub(super) fn functions(&self) -> Setup {
        Setup { functions: vec![Functions { path: self.path(), names: vec![] }], ..Setup::default() }
    }
}

pub(super) fn host(setup: &Setup) -> Host {
    Host::start(setup, SessionOptions::default()).unwrap()
}

pub(super) fn call(name: &str, arguments: &str) -> ValidCall {
    let written = ToolCall { id: None, name: name.to_owned(), arguments: arguments.to_owned() };
    ValidCall { written, arguments: serde_json::from_str(arguments).unwrap() }
}

pub(super) fn seen(messages: &[Value]) -> ConversationView<'_> {
    ConversationView { messages, prompt: &[1, 2], response: &[3], sampled: &[true], ..ConversationView::EMPTY }
}

pub(super) fn tools(host: &Host, row: RowTools, timeout: Duration) -> PythonTools {
    PythonTools::new(host.session(), host.offers(), None, row, timeout)
}

fn answers(tools: &mut PythonTools, calls: &[ValidCall]) -> Vec<ToolResult> {
    tools.call(calls, &seen(&[])).unwrap()
}

fn texts(answers: &[ToolResult]) -> Vec<&str> {
    answers.iter().map(|answer| answer.text.as_str()).collect()
}

const VERL_TOOL: &str = r#####"
from uuid import uuid4
from verl.tools.base_tool import BaseTool
from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse
from verl.utils.reward_score import gsm8k
from verl.utils.rollout_trace import rollout_trace_op

class Gsm8kTool(BaseTool):
    def __init__(self, config: dict, tool_schema: OpenAIFunctionToolSchema):
        super().__init__(config, tool_schema)
        self.instances = {}

    async def create(self, instance_id=None, ground_truth=None, **kwargs):
        instance_id = instance_id or str(uuid4())
        truth = ground_truth or kwargs.get("create_kwargs", {}).get("ground_truth")
        self.instances[instance_id] = {"truth": truth, "reward": 0.0}
        return instance_id, ToolResponse()

    @rollout_trace_op
    async def execute(self, instance_id, parameters, **kwargs):
        data, state = kwargs["agent_data"], self.instances[instance_id]
        assert data.prompt_ids == [1, 2, 3] and data.response_mask == [1] and data.request_id == "row 7"
        data.extra_fields["tried"] = data.extra_fields.get("tried", 0) + 1
        answer = parameters["answer"]
        reward = gsm8k.compute_score("#### " + answer, state["truth"], method="flexible")
        step = 0.0 if reward > state["reward"] else -0.05
        return ToolResponse(text=f"Current parsed answer={answer!r} reward={reward}"), step, {}

    async def release(self, instance_id, **kwargs):
        del self.instances[instance_id]
        assert not self.instances
"#####;

#[test]
fn a_tool_of_verl_keeps_what_it_knows_in_its_conversation() {
    let file = File::new(VERL_TOOL);
    let schema = json!({"type": "function", "function": {"name": "calc_gsm8k_reward", "description": "Scores an answer.", "parameters":
        {"type": "object", "properties": {"answer": {"type": "string", "description": "The answer", "minLength": 1}}, "required": ["answer"]}}});
    let tool = json!({"class_name": "my_agent.Gsm8kTool", "config": {"type": "native"}, "tool_schema": schema});
    let host = host(&Setup { files: vec![file.path()], verl_tools: vec![tool], ..Setup::default() });
    let kwargs = json!({"calc_gsm8k_reward": {"create_kwargs": {"ground_truth": "72"}, "release_kwargs": null}});
    let row =
        || RowTools { tools_kwargs: kwargs.as_object().unwrap().clone(), tool_selection: vec![], request_id: "row 7".to_owned() };
    let mut first = tools(&host, row(), TIME);
    assert_eq!(first.schemas(), [schema]);
    let right = [call("calc_gsm8k_reward", r#"{"answer": "72"}"#)];
    let answer = answers(&mut first, &right).remove(0);
    assert_eq!((answer.text.as_str(), answer.reward), ("Current parsed answer='72' reward=1.0", Some(0.0)));
    let both = [call("calc_gsm8k_reward", r#"{"answer": "5"}"#), call("calc_gsm8k_reward", "{}")];
    let two = answers(&mut first, &both);
    assert_eq!(texts(&two), ["Current parsed answer='5' reward=0.0", "Error executing tool 'calc_gsm8k_reward': 'answer'"]);
    assert_eq!([two[0].reward, two[1].reward], [Some(-0.05), Some(0.0)]);
    assert_eq!([two[0].failure, two[1].failure], [None, Some(ReplyFailure::Raised)]);
    assert_eq!(two[1].extra["tried"], 3);
    // Another conversation does not see it.
    assert_eq!(answers(&mut tools(&host, row(), TIME), &right)[0].extra["tried"], 1);
}

#[test]
fn functions_and_environments_of_trl_are_called_as_trl_calls_them() {
    let file = File::new(
        r#"
import asyncio, random

def add(a: int, b: int = 1) -> int:
    """Adds.

    Args:
        a: One.
        b: Another.
    """
    return a + b

async def parts(text: str):
    """Says.

    Args:
        text: What.
    """
    await asyncio.sleep(0.05)
    return [{"type": "text", "text": text}, {"type": "text", "text": "!"}]

def nothing():
    """Returns nothing."""

def dice():
    """Throws dice."""
    return random.random()

class Counter:
    def reset(self, **row):
        self.count = row["start"]
        return "It starts at %d." % self.count

    def increase(self, by: int) -> str:
        """Increases.

        Args:
            by: By how much.
        """
        self.count += by
        return {"count": self.count}

    def _hidden(self):
        pass

    def get_reward(self) -> float:
        return self.count / 10
"#,
    );
    let class = EnvironmentClass { name: None, path: file.path(), class: "Counter".to_owned() };
    let host = host(&Setup { environments: vec![class], ..file.functions() });
    let offered = &host.offers().environments[0];
    let session = host.session();
    let mut tools = PythonTools::new(session.clone(), host.offers(), Some(offered), RowTools::default(), TIME);
    let names: Vec<&str> = tools.schemas().iter().map(|schema| schema["function"]["name"].as_str().unwrap()).collect();
    assert_eq!((names, offered.rewards), (vec!["add", "parts", "nothing", "dice", "increase"], true));
    let environment = PythonEnvironment::new(session, None, TIME);
    let row = json!({"start": 4, "prompt": []});
    assert_eq!(environment.reset(row.as_object().unwrap()).unwrap().unwrap().as_deref(), Some("It starts at 4."));
    let calls = [
        call("parts", r#"{"text": "so"}"#),
        call("add", r#"{"a": 100000000000000000000000000000}"#),
        call("increase", r#"{"by": 3}"#),
        call("nothing", "{}"),
        call("add", r#"{"c": 1}"#),
    ];
    let found = answers(&mut tools, &calls);
    let wrong = r#"{'error': "add() got an unexpected keyword argument 'c'"}"#;
    assert_eq!(texts(&found), ["so!", "100000000000000000000000000001", "{'count': 7}", "None", wrong]);
    assert!(found.iter().all(|answer| answer.reward.is_none()));
    assert_eq!(environment.reward().unwrap().unwrap(), Some(0.7));
    // The same call gets the same random numbers, independent of time and process.
    let throw = || answers(&mut self::tools(&host, RowTools::default(), TIME), &[call("dice", "{}")]).remove(0).text;
    assert_eq!(throw(), throw());
    let row = RowTools { tool_selection: vec!["dice".to_owned(), "unknown".to_owned()], ..RowTools::default() };
    assert_eq!(self::tools(&host, row, TIME).schemas()[0]["function"]["name"], "dice");
}

#[test]
fn an_interaction_of_verl_answers_as_a_user() {
    let file = File::new(
        r#####"
from verl.interactions.base import BaseInteraction

class Gsm8kInteraction(BaseInteraction):
    def __init__(self, config):
        super().__init__(config)
        self.known = {}

    async def start_interaction(self, instance_id=None, ground_truth=None, **kwargs):
        assert self.name == "gsm8k"
        self.known[instance_id] = ground_truth
        return instance_id

    async def generate_response(self, instance_id, messages, **kwargs):
        last = [message["content"] for message in messages if message["role"] == "assistant"][-1]
        if last.endswith("#### " + self.known[instance_id]):
            return True, "Your response is correct!", 1.0, {}
        return False, "Your response is incorrect! You need to reflect on your answer and try again.", 0.0, {}

    async def finalize_interaction(self, instance_id, **kwargs):
        del self.known[instance_id]
"#####,
    );
    let interaction = json!({"class_name": "my_agent.Gsm8kInteraction", "config": {}});
    let host = host(&Setup { files: vec![file.path()], interactions: vec![interaction], ..Setup::default() });
    assert_eq!(host.offers().interactions, ["gsm8k"]);
    let kwargs = json!({"name": "gsm8k", "ground_truth": "7"});
    let mut user = PythonUser::new(host.session(), "gsm8k", kwargs, "row 1".to_owned(), TIME);
    let mut say = |text: &str| user.respond(&seen(&[json!({"role": "assistant", "content": text})])).unwrap().unwrap();
    let reply = say("#### 6");
    assert!(reply.text.starts_with("Your response is incorrect!") && !reply.ends && reply.score == Some(0.0));
    let reply = say("So: #### 7");
    assert!(reply.text == "Your response is correct!" && reply.ends && reply.score == Some(1.0));
}

#[test]
fn an_agent_of_openrlhf_takes_steps() {
    let file = File::new(
        r#"
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor

class Tensor:
    def item(self):
        return 0.5

class AgentInstance(AgentInstanceBase):
    def __init__(self, *args, **kwargs):
        self.steps = 0

    async def reset(self, states, **kwargs):
        return {"observation": states["observation"] + "\n"}

    async def step(self, states, **kwargs):
        self.steps += 1
        states["sampling_params"].max_tokens -= 1
        done = states["action_text"] == states["label"]
        return {"rewards": Tensor(), "scores": 2, "environment_feedback": f"[{self.steps}]", "done": done,
                "extra_logs": {"steps": self.steps}, "sampling_params": states["sampling_params"]}

class AgentExecutor(MultiTurnAgentExecutor):
    def __init__(self):
        super().__init__(AgentInstance)
"#,
    );
    let host = host(&Setup { agent: Some(file.path()), ..Setup::default() });
    let params = json!({"max_tokens": 9}).as_object().unwrap().clone();
    let mut agent = PythonTextEnvironment::new(host.session(), params, TIME);
    assert_eq!(agent.step("", "").unwrap().unwrap_err().failure, ReplyFailure::Raised);
    assert_eq!(agent.reset("Play", &json!("win")).unwrap().unwrap(), "Play\n");
    let step = agent.step("Play\n", "lose").unwrap().unwrap();
    assert_eq!((step.reward, step.score, step.feedback.as_str(), step.done), (0.5, Some(2.0), "[1]", false));
    assert_eq!((step.max_tokens, &step.extra["steps"]), (Some(8), &json!(1.0)));
    let step = agent.step("Play\nlose[1]", "win").unwrap().unwrap();
    assert_eq!((step.feedback.as_str(), step.done), ("[2]", true));
}

#[test]
fn an_agent_loop_of_verl_asks_the_trainer_for_turns_and_tokens() {
    let file = File::new(
        r#"
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register

@register("twice")
class Twice(AgentLoopBase):
    def __init__(self, *args, bonus=0, **kwargs):
        super().__init__(*args, **kwargs)
        self.bonus = bonus

    async def run(self, sampling_params, **kwargs):
        ids = self.tokenizer.apply_chat_template(kwargs["raw_prompt"], add_generation_prompt=True, tokenize=True)
        response = []
        for _ in range(2):
            output = await self.server_manager.generate(request_id="r", prompt_ids=ids + response, sampling_params=sampling_params)
            response += output.token_ids
        length = self.rollout_config.response_length
        return AgentLoopOutput(prompt_ids=ids, response_ids=response[:length], response_mask=[1] * length, num_turns=3,
                               metrics={}, reward_score=0.5 + self.bonus, extra_fields={"seen": len(response)})
"#,
    );
    let loops = vec![json!({"name": "twice", "bonus": 1})];
    let loop_config = json!({"actor_rollout_ref": {"rollout": {"response_length": 3}}});
    let host = host(&Setup { files: vec![file.path()], loops, loop_config, ..Setup::default() });
    let session = host.session();
    let ask = |op: &str, arguments: Value| session.ask(op, &arguments, TIME).unwrap().unwrap();
    let arguments = json!({"name": "twice", "sampling_params": {"temperature": 0.5}, "row": {"raw_prompt": [{"role": "user"}]},
        "tokenizer": {}, "request_id": "r"});
    let request = ask("loop", arguments.clone());
    assert_eq!(request["tokenize"]["messages"], json!([{"role": "user"}]));
    let request = ask("turn", json!([10, 11]));
    assert_eq!(request, json!({"generate": {"prompt_ids": [10, 11], "sampling_params": {"temperature": 0.5}}}));
    let request = ask("turn", json!({"token_ids": [1, 2]}));
    assert_eq!(request["generate"]["prompt_ids"], json!([10, 11, 1, 2]));
    let done = &ask("turn", json!({"token_ids": [3, 4]}))["done"][0];
    assert_eq!((&done["response_ids"], &done["reward_score"]), (&json!([1, 2, 3]), &json!(1.5)));
    assert_eq!((&done["extra_fields"], &done["num_turns"]), (&json!({"seen": 4}), &json!(3)));
    // The trainer's errors are raised in the loop.
    let session = host.session();
    session.ask("loop", &arguments, TIME).unwrap().unwrap();
    let error = session.ask("turn", &json!({"error": "no such template"}), TIME).unwrap().unwrap_err();
    assert!(error.message.starts_with("ValueError: no such template"), "{}", error.message);
}

#[test]
fn a_file_that_cannot_be_used_is_an_error_that_says_why() {
    let error = |setup: &Setup| format!("{:#}", Host::start(setup, SessionOptions::default()).err().unwrap());
    let file = File::new("def f(x):\n    \"\"\"F.\"\"\"\nclass E:\n    pass\n1 / 0 if __name__ == 'never' else 0\n");
    let functions = |names: &[&str]| Setup {
        functions: vec![Functions { path: file.path(), names: names.iter().map(|name| (*name).to_owned()).collect() }],
        ..Setup::default()
    };
    assert!(error(&functions(&["g"])).ends_with("has no g; it has f, E"), "{}", error(&functions(&["g"])));
    assert!(error(&functions(&["f"])).contains("the argument x of f has no type hint"));
    let class = EnvironmentClass { name: None, path: file.path(), class: "E".to_owned() };
    assert!(error(&Setup { environments: vec![class], ..Setup::default() }).contains("E has no method reset"));
    let tool = json!({"class_name": "verl.tools.no_such_tool.Tool", "config": {}});
    assert!(error(&Setup { verl_tools: vec![tool], ..Setup::default() }).contains("no_such_tool"));
}
