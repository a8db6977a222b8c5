//! Begins the conversation of a row.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::start::{Agents, ENVIRONMENT, PromptParts, SERVER, SINGLE_TURN, TEXT_ENVIRONMENT, TOOLS};
use burnish_agent::AgentLoop;
use burnish_agent::ConversationLimits;
use burnish_agent::calls::CallFormat;
use burnish_agent::calls::response::template_named;
use burnish_agent::loops::{
    Begin, CustomLoop, DeferredLoop, EnvironmentReward, EpisodeRecord, OpenAiLoop, OpenAiOptions, ResponseTemplateChat,
    SingleTurn, TemplateChat, TextEnvironmentLoop, ToolAgent, TrlLoop, params_from,
};
use burnish_agent::participants::User;
use burnish_agent::recorded::RecordedTools;
use burnish_agent::session::{
    Host, LoopArguments, OfferedLoop, PythonEnvironment, PythonLoop, PythonProgram, PythonTextEnvironment, PythonTools,
    PythonUser, RowTools, Session,
};
use burnish_agent::tokens::Continuation;
use burnish_agent::tools::Toolbox;
use burnish_agent::tools::built_in::{BuiltInTools, SharedTool};
use burnish_agent::tools::joined::JoinedToolbox;
use burnish_agent::users;
use burnish_config::schema::AGENT_LOOPS;
use burnish_data::{AGENT_NAME, Prompt, TemplateVariables, selected};
use burnish_rollout::Sampling;

/// Response templates of TRL for formats of another name.
const RESPONSE_TEMPLATES: &[(&str, &str)] = &[
    ("hermes", "qwen3"),
    ("qwen3_coder", "qwen3_5"),
    ("glm", "glm4moe"),
    ("llama3_json", "llama3"),
    ("gpt-oss", "gptoss"),
    ("harmony", "gptoss"),
    ("lfm2", "lfm2_5"),
];

impl Agents {
    /// Returns the conversation of a row, with turns sampled by `sampling`. `request_id`: its name for tools and users, the same
    /// in a resumed run. Does not start a turn yet.
    ///
    /// # Errors
    /// If the row names something unknown, or lacks what its tools or its user need.
    pub fn begin(&self, prompt: &Arc<Prompt>, request_id: &str, sampling: &Sampling) -> Result<Box<dyn AgentLoop>> {
        let record = |ids: &[u32]| EpisodeRecord::new(messages(prompt), ids.to_vec(), self.limits.clone());
        let parts = self.parts()?;
        Ok(match prompt.agent.as_str() {
            "" | SINGLE_TURN => Box::new(SingleTurn::new(record(&prompt.ids), Arc::new(parts.tokenizer.clone()))),
            TOOLS => self.tool_agent(prompt, record(&prompt.ids), request_id)?,
            ENVIRONMENT => Box::new(DeferredLoop::new(record(&[]), self.environment(prompt.clone(), request_id)?)),
            TEXT_ENVIRONMENT => self.text_environment(prompt)?,
            SERVER => self.server_agent(prompt, request_id)?,
            own if self.custom_loops().iter().any(|one| one.name == own) => {
                self.custom_loop(prompt, record(&prompt.ids), request_id, sampling)?
            }
            other => {
                let all = AGENT_LOOPS.into_iter().chain(self.custom_loops().iter().map(|own| own.name.as_str()));
                bail!("agent_name is {other:?}, which is not a loop; the loops are {}", all.collect::<Vec<_>>().join(", "))
            }
        })
    }

    fn parts(&self) -> Result<&PromptParts> {
        self.prompt.as_ref().context("agents were begun before their tokenizer was read")
    }

    fn tool_agent(&self, prompt: &Prompt, record: EpisodeRecord, request_id: &str) -> Result<Box<dyn AgentLoop>> {
        let info = &prompt.extra_info;
        let session = self.host.as_ref().map(Host::session);
        let tools = self.toolbox(info, session.as_ref(), request_id)?;
        let tools = self.recorded(Box::new(tools), request_id);
        let chat = self.chat(tools.schemas())?;
        let agent = ToolAgent::new(record, chat, tools).tells_unreadable(self.tells_unreadable);
        Ok(match self.user(info, session.as_ref(), request_id)? {
            Some(user) => Box::new(agent.with_user(user)),
            None => Box::new(agent),
        })
    }

    /// Returns the tools that a row with this `extra_info` may use.
    fn toolbox(&self, info: &Value, session: Option<&Session>, request_id: &str) -> Result<JoinedToolbox> {
        let kwargs = info.get("tools_kwargs").filter(|kwargs| !kwargs.is_null()).cloned().unwrap_or_else(|| json!({}));
        let mut boxes: Vec<Box<dyn Toolbox>> = Vec::new();
        let shown = self.shown(info)?;
        let chosen: Vec<SharedTool> = self.built_in.iter().filter(|made| shown.contains(made.schema())).cloned().collect();
        if !chosen.is_empty() {
            let tools = BuiltInTools::new(&chosen, &without_nulls(&kwargs), self.limits.call_timeout, self.interrupt.clone());
            boxes.push(Box::new(tools.context("extra_info.tools_kwargs")?));
        }
        if let (Some(host), Some(session)) = (&self.host, session) {
            let offered = host.offers().tools.iter().filter(|tool| shown.contains(&tool.schema));
            let row = RowTools {
                tools_kwargs: kwargs.as_object().cloned().unwrap_or_default(),
                tool_selection: offered.map(|tool| tool.name.clone()).collect(),
                request_id: request_id.to_owned(),
            };
            // An empty selection would mean all tools.
            if !row.tool_selection.is_empty() {
                boxes.push(Box::new(PythonTools::new(session.clone(), host.offers(), None, row, self.limits.call_timeout)));
            }
        }
        JoinedToolbox::new(boxes)
    }

    /// Returns all tools, for a conversation that does not belong to a row, and the limits of their calls.
    ///
    /// # Errors
    /// If two tools have the same name, or a tool needs what only a row has.
    pub(crate) fn all_tools(&self, request_id: &str) -> Result<(Box<dyn Toolbox>, &ConversationLimits)> {
        let session = self.host.as_ref().map(Host::session);
        Ok((Box::new(self.toolbox(&json!({}), session.as_ref(), request_id)?), &self.limits))
    }

    /// Returns tools whose results are recorded, if there is a recorder. Conversations with a user in Python begin again instead,
    /// because recorded results do not restore the user's state.
    fn recorded(&self, tools: Box<dyn Toolbox>, request_id: &str) -> Box<dyn Toolbox> {
        let has_state = self.users.iter().any(|user| users::find(&user.class_name).is_none());
        let Some(recorder) = self.recorder.as_ref().filter(|_| !has_state) else { return tools };
        let inside: Vec<&str> = self.built_in.iter().filter(|made| !made.waits()).map(SharedTool::name).collect();
        let name = |schema: &Value| schema["function"]["name"].as_str().map(str::to_owned);
        let outside = tools.schemas().iter().filter_map(name).filter(|name| !inside.contains(&name.as_str())).collect();
        Box::new(RecordedTools::new(tools, outside, recorder.clone(), request_id))
    }

    /// Returns the schemas of the tools that a row may use, as its prompt shows them.
    fn shown(&self, info: &Value) -> Result<Vec<Value>> {
        let offers = self.host.as_ref().map(Host::offers);
        let offered = offers.into_iter().flat_map(|offers| &offers.tools).map(|tool| tool.schema.clone());
        let all: Vec<Value> = self.built_in.iter().map(|made| made.schema().clone()).chain(offered).collect();
        selected(&all, info)
    }

    /// Returns the user that a row names in its `interaction_kwargs`; if it names no user, the only user.
    fn user(&self, info: &Value, session: Option<&Session>, request_id: &str) -> Result<Option<Box<dyn User>>> {
        let Some(only) = self.users.first() else { return Ok(None) };
        let kwargs = info.get("interaction_kwargs").filter(|kwargs| !kwargs.is_null());
        let kwargs = kwargs.context("extra_info has no interaction_kwargs: multi_turn.interaction_config_path names users")?;
        let known = || self.users.iter().map(|user| user.name.as_str()).collect::<Vec<_>>().join(", ");
        let user = match kwargs["name"].as_str() {
            Some(name) => self.users.iter().find(|user| user.name == name).with_context(|| {
                format!("extra_info.interaction_kwargs.name is {name:?}; multi_turn.interaction_config_path has {}", known())
            })?,
            None if self.users.len() == 1 => only,
            None => bail!("extra_info.interaction_kwargs has no name; multi_turn.interaction_config_path has {}", known()),
        };
        if let Some(kind) = users::find(&user.class_name) {
            return Ok(Some((kind.begin)(kwargs).context("extra_info.interaction_kwargs")?));
        }
        let session = session.context("the interactions of Python files have no process")?.clone();
        let (name, timeout) = (user.name.as_str(), self.limits.call_timeout);
        Ok(Some(Box::new(PythonUser::new(session, name, without_nulls(kwargs), request_id.to_owned(), timeout))))
    }

    /// Returns the chat for rows with these tools.
    fn chat(&self, schemas: &[Value]) -> Result<Arc<TemplateChat>> {
        let names: Vec<String> = schemas.iter().map(|one| one["function"]["name"].to_string()).collect();
        let mut chats = self.chats.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(chat) = chats.get(&names) {
            return Ok(chat.clone());
        }
        let parts = self.parts()?;
        let continuation = Continuation::new(parts.tokenizer.clone(), &parts.model_type, with_tools(parts, schemas))?;
        let continuation = continuation.with_literal_special_tokens(self.neutralise);
        let warnings = continuation.check(!schemas.is_empty(), !self.users.is_empty());
        for warning in warnings.context("the chat template cannot be used for conversations of several turns")? {
            tracing::warn!("{warning}");
        }
        let chat = Arc::new(TemplateChat {
            tokenizer: parts.tokenizer.clone(),
            continuation: continuation.into(),
            format: parts.format,
            ignore_in_thinking: self.ignore_in_thinking,
        });
        chats.insert(names, chat.clone());
        Ok(chat)
    }

    /// Begins a conversation with an environment, whose reset returns text to append to the last message.
    fn environment(&self, prompt: Arc<Prompt>, request_id: &str) -> Result<Begin> {
        let parts = self.parts()?;
        let host =
            self.host.as_ref().with_context(|| format!("{}.agent.environment.path does not name an environment", self.group))?;
        let offered = host.offers().environments.first().context("the file does not contain an environment")?.clone();
        let (session, timeout) = (host.session(), self.limits.call_timeout);
        let row = RowTools { request_id: request_id.to_owned(), ..RowTools::default() };
        let tools = PythonTools::new(session.clone(), host.offers(), Some(&offered), row, timeout);
        let environment = PythonEnvironment::new(session, None, timeout);
        let variables = with_tools(parts, tools.schemas());
        let chat = ResponseTemplateChat {
            tokenizer: parts.tokenizer.clone(),
            variables: parts.variables.clone(),
            template: response_template(parts.format)
                .with_context(|| format!("{}.multi_turn.format={}", self.group, parts.format.name))?
                .to_owned(),
            format: Some(parts.format),
            escaper: parts.escaper.clone(),
        };
        let (tokenizer, iterations, limits) = (parts.tokenizer.clone(), self.max_iterations, self.limits.clone());
        let scores = self.environment_scores;
        Ok(Box::new(move |mut record: EpisodeRecord| {
            let feedback = match environment.reset(&prompt.columns)? {
                Ok(feedback) => feedback,
                Err(error) => {
                    record.begin_with(prompt.ids.clone());
                    record.fault(error);
                    return Ok(Box::new(SingleTurn::new(record, Arc::new(tokenizer))));
                }
            };
            let messages = messages(&prompt);
            let escaper = chat.escaper.as_deref();
            let ids = match (&feedback, escaper) {
                // Special tokens of the row stay special; special tokens in the environment's text become text.
                (Some(feedback), Some(escaper)) => {
                    let own = escaper.escape_where(&messages, |_| false);
                    let text = tokenizer.apply_chat_template(
                        &with_feedback(own, &escaper.escape_text(feedback)).into(),
                        true,
                        &variables,
                    )?;
                    escaper.encode(&text)?
                }
                (feedback, _) => {
                    let all = with_feedback(messages.clone(), feedback.as_deref().unwrap_or_default());
                    tokenizer.encode(&tokenizer.apply_chat_template(&all.into(), true, &variables)?)?
                }
            };
            let record = EpisodeRecord::new(with_feedback(messages, feedback.as_deref().unwrap_or_default()), ids, limits);
            let trl = TrlLoop::new(record, Arc::new(chat), Box::new(tools), iterations);
            let reward: EnvironmentReward = Box::new(move || environment.reward());
            Ok(Box::new(match offered.rewards {
                true => trl.with_reward(reward, scores),
                false => trl,
            }))
        }))
    }

    /// Returns the user's agent loops.
    pub(super) fn custom_loops(&self) -> &[OfferedLoop] {
        self.host.as_ref().map_or(&[], |host| &host.offers().loops)
    }

    /// Begins a loop written by the user.
    fn custom_loop(
        &self,
        prompt: &Prompt,
        record: EpisodeRecord,
        request_id: &str,
        sampling: &Sampling,
    ) -> Result<Box<dyn AgentLoop>> {
        let host =
            self.host.as_ref().with_context(|| format!("{}.agent.agent_loop_config_path does not name a loop", self.group))?;
        let tokens = self.parts()?.tokens.clone();
        let row = LoopArguments {
            name: prompt.agent.clone(),
            sampling_params: params_from(sampling),
            row: verl_row(prompt),
            tokenizer: tokens.about()?,
            request_id: request_id.to_owned(),
        };
        let own = Box::new(PythonLoop::new(host.session(), row, self.limits.call_timeout));
        let scores = self.custom_loops().iter().any(|one| one.name == prompt.agent && one.scores);
        Ok(Box::new(CustomLoop::new(record, &prompt.agent, own, tokens, *sampling).scores(scores)))
    }

    fn text_environment(&self, prompt: &Prompt) -> Result<Box<dyn AgentLoop>> {
        let host = self.host.as_ref().with_context(|| format!("{}.agent.agent_func_path does not name an agent", self.group))?;
        let params = Map::from_iter([("max_tokens".to_owned(), Value::from(self.limits.response_length))]);
        let environment = PythonTextEnvironment::new(host.session(), params, self.limits.call_timeout);
        let codec = Arc::new(self.parts()?.tokenizer.clone());
        let label = prompt.ground_truth.clone();
        let limits = self.limits.clone();
        Ok(Box::new(TextEnvironmentLoop::new(messages(prompt), prompt.text.clone(), label, limits, codec, Box::new(environment))))
    }

    /// Begins a conversation led by a program through requests to the run's server.
    fn server_agent(&self, prompt: &Prompt, request_id: &str) -> Result<Box<dyn AgentLoop>> {
        let server = self.server.as_ref().with_context(|| format!("{}.agent.server.path does not name a program", self.group))?;
        let host = self.host.as_ref().context("the program of agent.server.path has no process")?;
        let (limits, scores) = (self.limits.clone(), self.program_scores);
        let program = PythonProgram::new(host.session(), prompt.columns.clone(), request_id.to_owned(), &limits);
        let options = OpenAiOptions { model: server.model(), limits, scores };
        let program_starter = server.program_starter();
        let begin = Box::new(move || program_starter.begin(program));
        Ok(Box::new(OpenAiLoop::new(messages(prompt), prompt.ids.clone(), options, begin)))
    }
}

/// Returns the arguments of verl's `run`: the columns of a row, and the fields that verl's data set adds.
fn verl_row(prompt: &Prompt) -> Map<String, Value> {
    let mut row = prompt.columns.clone();
    row.remove(AGENT_NAME);
    let of_info =
        |name: &str, without: Value| prompt.extra_info.get(name).filter(|own| !own.is_null()).cloned().unwrap_or(without);
    for (name, value) in [
        ("raw_prompt", prompt.messages.clone()),
        ("extra_info", prompt.extra_info.clone()),
        ("index", of_info("index", 0.into())),
        ("tools_kwargs", of_info("tools_kwargs", json!({}))),
        ("interaction_kwargs", of_info("interaction_kwargs", json!({}))),
    ] {
        row.insert(name.to_owned(), value);
    }
    row
}

fn messages(prompt: &Prompt) -> Vec<Value> {
    prompt.messages.as_array().cloned().unwrap_or_default()
}

/// Appends an environment's text to the last message of a prompt.
fn with_feedback(mut messages: Vec<Value>, feedback: &str) -> Vec<Value> {
    if let Some(last) = messages.last_mut().filter(|_| !feedback.is_empty()) {
        match &mut last["content"] {
            Value::Array(parts) => parts.push(json!({"type": "text", "text": feedback})),
            content => *content = format!("{}{feedback}", content.as_str().unwrap_or_default()).into(),
        }
    }
    messages
}

fn with_tools(parts: &PromptParts, schemas: &[Value]) -> TemplateVariables {
    let mut variables = parts.variables.clone();
    variables.insert("tools".to_owned(), schemas.to_vec().into());
    variables
}

/// Returns the response template that reads turns in a format.
fn response_template(format: &CallFormat) -> Result<&'static str> {
    let named = RESPONSE_TEMPLATES.iter().find(|(name, _)| *name == format.name).map_or(format.name, |(_, template)| template);
    template_named(named).map(|template| template.name).with_context(|| {
        let readable: Vec<&str> = RESPONSE_TEMPLATES.iter().map(|(name, _)| *name).collect();
        format!("an environment cannot read turns in this format; it reads {}", readable.join(", "))
    })
}

/// Drops arguments that are null: a struct in a Parquet file makes absent arguments null.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}
