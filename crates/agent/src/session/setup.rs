//! The setup of a host: files to load, options, and the offers of the files.

use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use burnish_util::interrupt::Interrupt;

/// The user's files, and the objects to load from them; empty by default.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Setup {
    /// Folders in which modules are searched, after all others.
    pub folders: Vec<String>,
    /// Files that are loaded first, for their registrations, and so that their classes can be named `FILE.CLASS`.
    pub files: Vec<String>,
    /// The list `tools` of verl's tool configuration: `class_name`, `config`, and `tool_schema`.
    pub verl_tools: Vec<Value>,
    /// A file with functions that have verl's decorator `@function_tool`.
    pub function_tools: Option<String>,
    /// Plain functions, in TRL's style.
    pub functions: Vec<Functions>,
    /// TRL's environments.
    pub environments: Vec<EnvironmentClass>,
    /// The list `interaction` of verl's interaction configuration: `name`, `class_name` and `config`.
    pub interactions: Vec<Value>,
    /// A file with OpenRLHF's `AgentExecutor` or `AgentInstance`.
    pub agent: Option<String>,
    /// The list of verl's agent loops: `name`, `_target_`, and arguments of the class. Without a `_target_`, a file in `files`
    /// must register the class under the name.
    pub loops: Vec<Value>,
    /// A function that leads a conversation itself.
    pub program: Option<ProgramFunction>,
    /// The settings of the run that agent loops can read, in verl's names.
    pub loop_config: Value,
    /// True if prompts contain tool schemas reduced to verl's fields, false for the schemas as the user wrote them.
    pub narrow_schemas: bool,
}

/// Functions of a file.
#[derive(Clone, Debug, Serialize)]
pub struct Functions {
    pub path: String,
    /// The names; if empty, all functions that the file defines and whose names do not begin with an underscore.
    pub names: Vec<String>,
}

/// A function of a file that leads a conversation by requests to the model.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramFunction {
    pub path: String,
    pub name: String,
}

/// A class, or a factory function, in a file.
#[derive(Clone, Debug, Serialize)]
pub struct EnvironmentClass {
    /// The value of the rows' column `environment` that selects it; `None` for the only environment, which all rows use.
    pub name: Option<String>,
    pub path: String,
    pub class: String,
}

/// The way in which processes of conversations start (`agent.start_method`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartMethod {
    /// Forks, unless the files open something that forked processes would share, such as a connection or a thread.
    #[default]
    Auto,
    /// Forks from a process that has loaded the files.
    Fork,
    /// Loads the files in each process.
    Spawn,
}

/// The options of a host and its conversations.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The Python interpreter, version 3.8 or later.
    pub python: String,
    /// The time limit for loading the files, and for starting a conversation's process.
    pub start_timeout: Duration,
    /// The memory limit of each process, in MiB.
    pub memory_limit_mb: Option<u64>,
    /// The processor time limit of one call, in seconds.
    pub cpu_limit: Option<u64>,
    /// Environment variables that processes get in addition to the usual ones.
    pub pass_env: Vec<String>,
    /// The way in which processes of conversations start.
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

/// The objects that the files offer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Offers {
    pub tools: Vec<OfferedTool>,
    pub environments: Vec<OfferedEnvironment>,
    /// The names of interactions.
    pub interactions: Vec<String>,
    /// True if there is an OpenRLHF agent.
    pub agent: bool,
    /// Agent loops: the loops in the list, and the loops that their modules register under other names.
    pub loops: Vec<OfferedLoop>,
    /// True if there is a function that leads conversations itself.
    #[serde(default)]
    pub program: bool,
}

/// An agent loop.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct OfferedLoop {
    pub name: String,
    /// True if the loop declares that it scores all its conversations itself (a class attribute `scores`).
    pub scores: bool,
}

/// A tool that every conversation may use.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct OfferedTool {
    pub name: String,
    /// The schema in OpenAI's form.
    pub schema: Value,
    /// True if the tool returns rewards, like verl's tools; an error then counts as 0.
    pub rewards: bool,
}

/// An environment of TRL.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct OfferedEnvironment {
    pub name: Option<String>,
    /// The name of the class, used in reports of its reward.
    pub class: String,
    /// The schemas of the methods that are tools.
    pub schemas: Vec<Value>,
    /// True if the environment has `get_reward`.
    pub rewards: bool,
}

/// Returns the first line for a host; `later` is true if conversations load the files instead of the host.
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
