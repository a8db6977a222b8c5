//! What a host is asked to load, its options, and what it offers.

use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use burnish_util::interrupt::Interrupt;

/// The user's files, and what is wanted of them. The default is nothing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Setup {
    /// Folders in which modules are looked for, behind all others.
    pub folders: Vec<String>,
    /// Files that are loaded first, for what they register, and so that their classes can be named `FILE.CLASS`.
    pub files: Vec<String>,
    /// The list `tools` of verl's tool configuration: `class_name`, `config`, and `tool_schema`.
    pub verl_tools: Vec<Value>,
    /// A file with functions that have verl's decorator `@function_tool`.
    pub function_tools: Option<String>,
    /// Plain functions, as TRL takes them.
    pub functions: Vec<Functions>,
    /// TRL's environments.
    pub environments: Vec<EnvironmentClass>,
    /// The list `interaction` of verl's interaction configuration: `name`, `class_name` and `config`.
    pub interactions: Vec<Value>,
    /// A file with OpenRLHF's `AgentExecutor` or `AgentInstance`.
    pub agent: Option<String>,
    /// The list of verl's agent loops: `name`, `_target_`, and arguments of the class. Without a `_target_`, the class is the one that a file
    /// of `files` registers under the name.
    pub loops: Vec<Value>,
    /// A function that leads a conversation itself.
    pub program: Option<ProgramFunction>,
    /// The settings of the run that agent loops see, in verl's names.
    pub loop_config: Value,
    /// True if prompts have the schemas of tools as verl narrows them, false for everything that the user wrote.
    pub narrow_schemas: bool,
}

/// Functions of a file.
#[derive(Clone, Debug, Serialize)]
pub struct Functions {
    pub path: String,
    /// The names; none for all functions that the file defines and whose names do not begin with an underscore.
    pub names: Vec<String>,
}

/// A function of a file that leads a conversation by requests to the model.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramFunction {
    pub path: String,
    pub name: String,
}

/// A class, or a function that makes an instance, in a file.
#[derive(Clone, Debug, Serialize)]
pub struct EnvironmentClass {
    /// The name that rows have in their column `environment`; `None` for the only environment, which all rows use.
    pub name: Option<String>,
    pub path: String,
    pub class: String,
}

/// The start of the processes of conversations (`agent.start_method`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartMethod {
    /// Forked, unless the files leave something that forked processes would share, such as a connection or a thread.
    #[default]
    Auto,
    /// Forked from a process that has loaded the files.
    Fork,
    /// Each loads the files itself.
    Spawn,
}

/// The options of a host and its conversations.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The Python interpreter, version 3.8 or later.
    pub python: String,
    /// The time limit for loading the files, and for beginning a conversation.
    pub start_timeout: Duration,
    /// The memory that each process can allocate, in MiB.
    pub memory_limit_mb: Option<u64>,
    /// The processor time of one call, in seconds.
    pub cpu_limit: Option<u64>,
    /// The environment variables that processes get in addition to the usual ones.
    pub pass_env: Vec<String>,
    /// The start of the processes of conversations.
    pub start_method: StartMethod,
    pub interrupt: Interrupt,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            python: "python3".to_owned(),
            start_timeout: Duration::from_secs(60),
            memory_limit_mb: Some(8192),
            cpu_limit: None,
            pass_env: Vec::new(),
            start_method: StartMethod::default(),
            interrupt: Interrupt::default(),
        }
    }
}

/// What the files offer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Offers {
    pub tools: Vec<OfferedTool>,
    pub environments: Vec<OfferedEnvironment>,
    /// The names of interactions.
    pub interactions: Vec<String>,
    /// True if there is an agent of OpenRLHF.
    pub agent: bool,
    /// Agent loops: those of the list, and those that their modules register under further names.
    pub loops: Vec<OfferedLoop>,
    /// True if there is a function that leads conversations itself.
    #[serde(default)]
    pub program: bool,
}

/// An agent loop.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct OfferedLoop {
    pub name: String,
    /// True if it says that it scores all its conversations itself (a class attribute `scores`).
    pub scores: bool,
}

/// A tool that every conversation may use.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct OfferedTool {
    pub name: String,
    /// In OpenAI's form.
    pub schema: Value,
    /// True if it gives rewards, as verl's tools do; an error counts 0 then.
    pub rewards: bool,
}

/// An environment of TRL.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct OfferedEnvironment {
    pub name: Option<String>,
    /// The name of the class, under which its reward is reported.
    pub class: String,
    /// The schemas of its methods that are tools.
    pub schemas: Vec<Value>,
    /// True if it has `get_reward`.
    pub rewards: bool,
}

/// The first line that a host gets; `later`: true if each conversation loads the files, and the host does not.
pub(super) fn first_line(setup: &Setup, options: &SessionOptions, start_cpu: u64, later: bool) -> Result<Vec<u8>> {
    let mut line = match serde_json::to_value(setup)? {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    line.insert("memory_limit_mb".to_owned(), options.memory_limit_mb.into());
    line.insert("start_cpu_seconds".to_owned(), start_cpu.into());
    line.insert("later".to_owned(), later.into());
    let mut line = serde_json::to_vec(&line)?;
    line.push(b'\n');
    Ok(line)
}
