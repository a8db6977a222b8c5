//! The functions of a pool as reward functions: builds the arguments for each style of function, and parses the results.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::options::{Signature, Style};
use super::pool::Pool;
use crate::score::Score;
use crate::score_input::{BatchJudge, Judge, ScoreInput};
use crate::{Conversation, Reward, Runs, completion};
use burnish_util::suggest::did_you_mean;

/// Columns that functions in TRL's style get under another name and in another form.
const NO_COLUMNS: [&str; 3] = ["prompt", "completion", "completion_ids"];

/// Returns one reward function for each function of a file, under its name. Built-in code has no value here, because it does not
/// score by itself.
pub fn functions(pool: &Arc<Pool>) -> Vec<Reward> {
    let offered = pool.functions().iter().enumerate().filter_map(|(index, signature)| {
        let function = PythonFunction { pool: pool.clone(), index };
        let runs = match signature.style {
            Style::VerlBatch | Style::Trl => Runs::Together(Arc::new(function)),
            Style::Verl | Style::OpenRlhf => Runs::Each(Arc::new(function)),
            Style::Plain | Style::Estimator | Style::PolicyLoss | Style::PostProcessing => return None,
        };
        let wants = signature.wants.clone();
        Some(Reward { check: Arc::new(move |input| has_columns(input, &wants)), ..Reward::new(&signature.name, runs) })
    });
    offered.collect()
}

/// Fails if a row lacks a column that a function requires.
fn has_columns(input: &ScoreInput, wants: &[String]) -> Result<()> {
    let columns = || input.columns.keys().map(String::as_str).filter(|name| !NO_COLUMNS.contains(name));
    let Some(missing) = wants.iter().find(|name| columns().all(|column| column != name.as_str())) else { return Ok(()) };
    let hint = did_you_mean(missing, columns());
    let have: Vec<&str> = columns().collect();
    let others =
        if have.is_empty() { "the data has only the prompt".to_owned() } else { format!("the columns are {}", have.join(", ")) };
    bail!("it requires the argument `{missing}`, which is not a column of the data: {others}.{hint}")
}

struct PythonFunction {
    pool: Arc<Pool>,
    index: usize,
}

impl Judge for PythonFunction {
    fn score(&self, input: &ScoreInput) -> Result<Score> {
        self.scores(std::slice::from_ref(input))?.pop().context("a reward function returned nothing")
    }
}

impl BatchJudge for PythonFunction {
    fn score(&self, inputs: &[ScoreInput]) -> Result<Vec<Score>> {
        if inputs.is_empty() { Ok(Vec::new()) } else { self.scores(inputs) }
    }
}

impl PythonFunction {
    fn scores(&self, inputs: &[ScoreInput]) -> Result<Vec<Score>> {
        let signature = &self.pool.functions()[self.index];
        let reply = match (signature.style, inputs) {
            (Style::Verl, [input]) => self.pool.call(self.index, &Verl::new(input)),
            (Style::OpenRlhf, [input]) => self.pool.call(self.index, &OpenRlhf::new(input)),
            (Style::Trl, _) => self.pool.call(self.index, &Trl::new(inputs, signature)),
            _ => self.pool.call(self.index, &VerlBatch::new(inputs)),
        }?;
        let scores: Option<Vec<Score>> = reply["scores"].as_array().and_then(|scores| scores.iter().map(read).collect());
        scores.filter(|scores| scores.len() == inputs.len()).context("the reply of a reward worker has no valid scores")
    }
}

/// Values that a conversation adds to `extra_info`.
#[derive(Serialize)]
struct Rollout<'a> {
    num_turns: usize,
    tool_rewards: Vec<f64>,
    turn_scores: Vec<f64>,
    messages: &'a [Value],
    /// Further values from the agent loop.
    extra: &'a Map<String, Value>,
}

impl<'a> Rollout<'a> {
    fn new(conversation: &'a dyn Conversation) -> Self {
        Self {
            num_turns: conversation.num_turns(),
            tool_rewards: conversation.tool_rewards(),
            turn_scores: conversation.turn_scores(),
            messages: conversation.messages(),
            extra: conversation.extra(),
        }
    }
}

#[derive(Serialize)]
struct Verl<'a> {
    data_source: &'a str,
    solution_str: &'a str,
    ground_truth: &'a Value,
    extra_info: &'a Value,
    // Omitted for responses of one turn, whose random seeds depend on the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<Rollout<'a>>,
}

impl<'a> Verl<'a> {
    fn new(input: &ScoreInput<'a>) -> Self {
        let ScoreInput { data_source, solution: solution_str, ground_truth, extra_info, .. } = *input;
        Self { data_source, solution_str, ground_truth, extra_info, rollout: input.conversation.map(Rollout::new) }
    }
}

#[derive(Serialize)]
struct VerlBatch<'a> {
    data_sources: Vec<&'a str>,
    solution_strs: Vec<&'a str>,
    ground_truths: Vec<&'a Value>,
    extra_infos: Vec<&'a Value>,
    /// One item per response, or empty if no response has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rollouts: Vec<Option<Rollout<'a>>>,
}

impl<'a> VerlBatch<'a> {
    fn new(inputs: &[ScoreInput<'a>]) -> Self {
        Self {
            data_sources: inputs.iter().map(|input| input.data_source).collect(),
            solution_strs: inputs.iter().map(|input| input.solution).collect(),
            ground_truths: inputs.iter().map(|input| input.ground_truth).collect(),
            extra_infos: inputs.iter().map(|input| input.extra_info).collect(),
            rollouts: match inputs.iter().any(|input| input.conversation.is_some()) {
                true => inputs.iter().map(|input| input.conversation.map(Rollout::new)).collect(),
                false => Vec::new(),
            },
        }
    }
}

/// Arguments in OpenRLHF's style: lists of one item, because each response is scored when it is complete.
#[derive(Serialize)]
struct OpenRlhf<'a> {
    /// Prompt and response, with special tokens.
    queries: [String; 1],
    prompts: [&'a str; 1],
    labels: [&'a Value; 1],
}

impl<'a> OpenRlhf<'a> {
    fn new(input: &ScoreInput<'a>) -> Self {
        let response = if input.raw.is_empty() { input.solution } else { input.raw };
        Self { queries: [format!("{}{response}", input.prompt_text)], prompts: [input.prompt_text], labels: [input.ground_truth] }
    }
}

#[derive(Serialize)]
struct Trl<'a> {
    prompts: Vec<Prompt<'a>>,
    completions: Vec<Completion<'a>>,
    completion_ids: Vec<Option<&'a [u32]>>,
    columns: Columns<'a>,
    /// Names of all columns, for the message about a missing one.
    all_columns: Vec<&'a str>,
    step: u64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Prompt<'a> {
    Known(&'a Value),
    Text(&'a str),
    /// The messages that the model read. An environment or a program may have changed the columns of the row, as in TRL.
    Messages(&'a [Value]),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Completion<'a> {
    Text(&'a str),
    /// The messages after the prompt.
    Messages(&'a [Value]),
}

impl<'a> Completion<'a> {
    /// Chooses messages if the prompt consists of messages, and text if it is text, as TRL does.
    fn new(input: &ScoreInput<'a>) -> Self {
        match input.conversation {
            Some(conversation) if input.prompt.is_array() => Self::Messages(completion(conversation)),
            _ => Self::Text(input.solution),
        }
    }
}

/// Columns of a batch, each as the list of its values.
struct Columns<'a>(Vec<(&'a str, Vec<&'a Value>)>);

impl Serialize for Columns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, values)| (name, values)))
    }
}

impl<'a> Trl<'a> {
    /// Selects the columns that the function uses; only these are sent.
    fn new(inputs: &[ScoreInput<'a>], signature: &Signature) -> Self {
        let takes = |name: &str| signature.columns.as_ref().is_none_or(|columns| columns.iter().any(|known| known == name));
        let all = inputs[0].columns.keys().map(String::as_str).filter(|name| !NO_COLUMNS.contains(name));
        let all_columns: Vec<&str> = all.collect();
        let values = |name: &str| inputs.iter().map(|input| input.columns.get(name).unwrap_or(&Value::Null)).collect();
        let columns = all_columns.iter().filter(|name| takes(name)).map(|name| (*name, values(name))).collect();
        let prompt = |input: &ScoreInput<'a>| match (input.prompt, input.conversation) {
            (Value::Null, _) => Prompt::Text(input.prompt_text),
            (Value::Array(_), Some(conversation)) => {
                let messages = conversation.messages();
                Prompt::Messages(&messages[..conversation.prompt_len().min(messages.len())])
            }
            (prompt, _) => Prompt::Known(prompt),
        };
        Self {
            prompts: inputs.iter().map(prompt).collect(),
            completions: inputs.iter().map(Completion::new).collect(),
            completion_ids: inputs.iter().filter(|_| takes("completion_ids")).map(|input| input.token_ids).collect(),
            columns: Columns(columns),
            all_columns,
            step: inputs[0].step,
        }
    }
}

/// Parses `[score, extras, pred, notes]`. Numbers that JSON lacks are sent as text.
fn read(score: &Value) -> Option<Score> {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let [score, extras, pred, notes] = score.as_array()?.as_slice() else { return None };
    let score = if score.is_null() { None } else { Some(number(score)? as f32) };
    let extras: Option<Vec<(String, f64)>> =
        extras.as_object()?.iter().map(|(name, value)| Some((name.clone(), number(value)?))).collect();
    let notes = notes.as_object()?.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    Some(Score { score, extras: extras?, pred: pred.as_str().map(str::to_owned), notes })
}
