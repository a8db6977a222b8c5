//! `trainer eval`: scores the responses in a file. The metric is verl's: the mean over the responses of a row, then over the
//! rows of a data source.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::evaluate_conversations::{are_settled, conversations, has_conversations};
use crate::job::hub_names;
use crate::job::reward_plan::{RewardPlan, check_rows, warn_of_prefilled};
use crate::job::unused_options::{ProcessKinds, UnusedOption, of_rewards, warn_of_unused};
use burnish_agent::Transcript;
use burnish_config::Loaded;
use burnish_config::schema::EvalConfig;
use burnish_data::rows::{EVERY_COLUMN, FileRows, Row};
use burnish_data::{GroundTruthKey, MESSAGES, RowNeeds, RowTable, Tokenizer, data_source, named_source, with_remedies};
use burnish_reward::{Conversation, ResponseScore, Rewards, ScoreInput};
use burnish_util::fs::{check_writable, refuse_input, write_atomic};
use burnish_util::interrupt::Interrupt;

/// The column of scores, which `trainer data select` reads with the column of responses.
const SCORES: &str = "scores";

/// Returns `test_score/DATA_SOURCE` for every data source, in the order of the rows, and `abstained/DATA_SOURCE`, the number of
/// responses without a score, if there are any.
///
/// # Errors
/// If a row cannot be scored (missing columns, a data source without a scorer, no responses). The message names its file and
/// place.
pub fn evaluate(loaded: Loaded<EvalConfig>) -> Result<Map<String, Value>> {
    read_responses(loaded, |read| {
        let (inputs, data) = (read.inputs(), &read.config.data);
        let start = Instant::now();
        let scores = read.scores(&inputs)?;
        let seconds = start.elapsed().as_secs_f64();
        tracing::info!("{} responses scored in {seconds:.3} s, {:.0} per second", scores.len(), scores.len() as f64 / seconds);
        if let Some(at) = scores.iter().position(|combined| combined.score.is_some_and(|score| !score.is_finite())) {
            let place = read.describe(at, &inputs[at]);
            bail!("{place}: the score is {}", scores[at].score.unwrap_or(f32::NAN));
        }
        if let Some(path) = &data.output_path {
            let path = path.as_path();
            let written = if path.extension().is_some_and(|extension| extension == "parquet") {
                let scores = by_row(read.answered, &scores);
                RowTable::read(&data.path.paths()).and_then(|table| table.write_with(path, SCORES, &scores))
            } else {
                let scored = read.places.iter().zip(&inputs).zip(&scores);
                let lines = scored.map(|((place, input), score)| format!("{}\n", Value::Object(line(*place, input, score))));
                write_atomic(path, lines.collect::<String>().as_bytes())
            };
            written.context("data.output_path")?;
        }
        Ok(report(read.answered, &scores))
    })
}

/// The responses of a file, ready to be scored.
pub(super) struct Responses<'a> {
    config: &'a EvalConfig,
    rewards: &'a Rewards,
    rows: &'a [Row],
    answered: &'a [Answered<'a>],
    /// Row and number of each response.
    pub places: Vec<(usize, usize)>,
}

impl Responses<'_> {
    /// Returns the responses as reward functions see them, in the order of `places`.
    pub(super) fn inputs(&self) -> Vec<ScoreInput<'_>> {
        self.places.iter().map(|&(i, j)| self.answered[i].input(j)).collect()
    }

    /// Scores all responses, as a step of training does.
    ///
    /// # Errors
    /// The first response that cannot be scored.
    pub(super) fn scores(&self, inputs: &[ScoreInput]) -> Result<Vec<ResponseScore>> {
        let pending = self.rewards.begin_all(inputs, self.config.reward.num_workers)?;
        self.rewards.complete(inputs, pending, |at| self.describe(at, &inputs[at]))
    }

    /// Scores a single response.
    ///
    /// # Errors
    /// If it cannot be scored.
    pub(super) fn score(&self, input: &ScoreInput) -> Result<ResponseScore> {
        self.rewards.score(input)
    }

    /// Returns the file and the place of a response's row.
    pub(super) fn place(&self, at: usize) -> String {
        self.rows[self.places[at].0].place()
    }

    fn describe(&self, at: usize, input: &ScoreInput) -> String {
        format!("{}: scoring response {} ({:?})", self.place(at), self.places[at].1, input.solution)
    }
}

/// Starts the reward functions, reads the responses, checks that they can be scored, and calls `then` with them.
///
/// # Errors
/// The errors of these steps, with the file and the place of the row, and the errors of `then`.
pub(super) fn read_responses<T>(mut loaded: Loaded<EvalConfig>, then: impl FnOnce(&Responses) -> Result<T>) -> Result<T> {
    hub_names::find(&mut loaded)?.fetch(&mut loaded.config)?;
    let (config, tree) = (&loaded.config, &loaded.tree);
    let data = &config.data;
    if let Some(path) = &data.output_path {
        let (files, code) = (data.path.paths(), &config.custom_reward_function.path);
        let code = code.iter().map(|path| ("custom_reward_function.path", path.as_path()));
        refuse_input(("data.output_path", path.as_path()), files.iter().map(|file| ("data.path", file.as_path())).chain(code))?;
        check_writable(path.as_path()).context("data.output_path")?;
    }
    let rewards = RewardPlan::start(config.rewards(), &Interrupt::default())?;
    let needs = rewards.needs;
    let source = data.data_source_key.as_deref();
    let truth = GroundTruthKey::new(data.label_key.as_deref(), GroundTruthKey::Field(data.reward_model_key.clone()))
        .or_solution(needs.solution);
    rewards.check_keys(("data.data_source_key", source), &truth)?;
    let tokenizer = data.tokenizer.as_ref().map(|folder| Tokenizer::load(folder.as_path()).context("data.tokenizer"));
    let tokenizer = tokenizer.transpose()?;
    let files = data.path.paths();
    let mut required = vec![data.response_key.as_str()];
    // A conversation may come with its score; its row then needs nothing.
    let all_need_scores = !has_conversations(&files);
    // Columns that a setting names must exist, even if no scorer reads them.
    required.extend(source.filter(|source| (needs.data_source && all_need_scores) || *source != "data_source"));
    required.extend(truth.required(needs.ground_truth && all_need_scores));
    let some = [data.prompt_key.as_str(), "extra_info", MESSAGES];
    let some: Vec<&str> = source.into_iter().chain(truth.columns()).chain(some).collect();
    let mut settings = vec![("data.response_key", data.response_key.as_str()), truth.setting()];
    settings.extend(source.map(|source| ("data.data_source_key", source)));
    let rows = FileRows::read(&files, &required, if needs.columns { EVERY_COLUMN } else { &some });
    let mut rows = rows.map_err(|error| with_remedies(error, &settings)).context("data.path")?;
    if rows.is_empty() {
        bail!("data.path: no rows to score");
    }
    if needs.columns {
        rows.fill_columns()?;
    }
    let rows = rows.each(|_, row| Ok(row))?;
    // All rows are read before the first error is returned, so that the same file always gives the same error.
    let reading = Reading { config, needs, named: !rewards.asks_rules(), truth: &truth, tokenizer: tokenizer.as_ref() };
    let read = |row| reading.read(row);
    let answered: Vec<Result<Answered>> = rows.par_iter().map(|row| read(row).with_context(|| row.place())).collect();
    let answered = answered.into_iter().collect::<Result<Vec<_>>>()?;
    if rewards.asks_rules() {
        let known = |(row, answered): (&Row, &Answered)| {
            burnish_reward::find(answered.data_source).map(drop).with_context(|| row.place())
        };
        rows.iter().zip(&answered).filter(|(_, answered)| answered.needs_scores()).try_for_each(known)?;
    }
    let sources = answered.iter().filter(|row| row.needs_scores()).map(|row| row.data_source).collect();
    let rewards = rewards.rewards(&sources)?;
    let failure = |(row, answered): (&Row, &Answered)| rewards.check(&answered.row()).err().map(|error| (row.place(), error));
    let unscored = rows.par_iter().zip(&answered).filter(|(_, answered)| answered.needs_scores());
    check_rows(&rewards, unscored.map(failure).collect())?;
    let unscored = || answered.iter().filter(|row| row.needs_scores());
    let known = unscored().filter(|row| !row.prompt_text.is_empty());
    warn_of_prefilled(&rewards, known.map(|row| (row.data_source, row.prompt_text.as_str())));
    let reads_prompt = needs.prompt_text || unscored().any(|row| rewards.tagged(row.data_source).next().is_some());
    let options: Vec<UnusedOption> = [
        (!reads_prompt, "data.tokenizer", "no reward function reads the prompt as text"),
        (!reads_prompt && !needs.columns, "data.prompt_key", "no reward function reads the prompt"),
        (!reads_prompt && !needs.columns, "data.apply_chat_template", "no reward function reads the prompt"),
    ]
    .into_iter()
    .chain(of_rewards(&config.rewards(), &rewards, ProcessKinds::default()))
    .collect();
    warn_of_unused::<EvalConfig>(tree, &options)?;
    let places: Vec<(usize, usize)> =
        answered.iter().enumerate().flat_map(|(i, row)| (0..row.responses.len()).map(move |j| (i, j))).collect();
    then(&Responses { config, rewards: &rewards, rows: &rows, answered: &answered, places })
}

/// Returns the mean over the rows of each data source.
fn report(answered: &[Answered], scores: &[ResponseScore]) -> Map<String, Value> {
    let mut sources: Vec<(&str, Vec<f64>, usize)> = Vec::new();
    let mut rest = scores;
    for row in answered {
        let (own, others) = rest.split_at(row.responses.len());
        rest = others;
        let known: Vec<f64> = own.iter().filter_map(|combined| combined.score.map(f64::from)).collect();
        let at = sources.iter().position(|(source, ..)| *source == row.data_source).unwrap_or_else(|| {
            sources.push((row.data_source, Vec::new(), 0));
            sources.len() - 1
        });
        sources[at].1.extend((!known.is_empty()).then(|| mean(&known)));
        sources[at].2 += own.len() - known.len();
    }
    let mut report = Map::new();
    for (source, means, abstained) in sources {
        let source = named_source(source);
        report.extend((!means.is_empty()).then(|| (format!("test_score/{source}"), json!(mean(&means)))));
        report.extend((abstained > 0).then(|| (format!("abstained/{source}"), json!(abstained))));
    }
    report
}

/// Returns the scores of each row's responses; null for a response without a score.
fn by_row(answered: &[Answered], scores: &[ResponseScore]) -> Vec<Value> {
    let mut scores = scores.iter().map(|combined| json!(combined.score));
    answered.iter().map(|row| scores.by_ref().take(row.responses.len()).collect()).collect()
}

/// Returns the position of the response, its score, and what the reward functions reported.
pub(super) fn line((row, response): (usize, usize), input: &ScoreInput, combined: &ResponseScore) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("row".into(), row.into());
    line.insert("response".into(), response.into());
    line.insert("data_source".into(), input.data_source.into());
    line.insert("score".into(), json!(combined.score));
    line.extend(combined.pred.clone().map(|pred| ("pred".to_owned(), pred.into())));
    let several = combined.components.len() > 1;
    line.extend(combined.components.iter().filter(|_| several).map(|c| (c.name.clone(), json!(c.reward))));
    let extras = combined.extras.iter().map(|(name, value)| (name.clone(), json!(value)));
    for (name, value) in extras.chain(combined.notes.iter().cloned()) {
        // The fields that identify the response keep their names; a function's value of the same name is renamed.
        let name = if line.contains_key(&name) { format!("reported/{name}") } else { name };
        line.insert(name, value);
    }
    line
}

/// The `extra_info` of a row without one: an empty mapping, as in training.
static NO_EXTRA_INFO: LazyLock<Value> = LazyLock::new(|| json!({}));

/// The reading of rows.
struct Reading<'a> {
    config: &'a EvalConfig,
    needs: RowNeeds,
    /// True if the settings name reward functions.
    named: bool,
    truth: &'a GroundTruthKey,
    tokenizer: Option<&'a Tokenizer>,
}

/// A row and its responses.
struct Answered<'a> {
    row: &'a Row,
    data_source: &'a str,
    ground_truth: &'a Value,
    extra_info: &'a Value,
    prompt: Cow<'a, Value>,
    prompt_text: String,
    responses: Vec<&'a str>,
    /// The conversation of each response; empty for responses of one turn.
    conversations: Vec<Transcript>,
}

impl Reading<'_> {
    fn read<'a>(&self, row: &'a Row) -> Result<Answered<'a>> {
        let data = &self.config.data;
        let key = &data.response_key;
        let responses = row.column(key)?;
        let texts = match responses {
            Value::Array(texts) => texts.as_slice(),
            // Files with one response per row.
            Value::String(_) => std::slice::from_ref(responses),
            _ => bail!("column \"{key}\" must be a text or a list of texts, not {responses}"),
        };
        let conversations = conversations(row, texts.len(), self.named)?;
        let needs = match are_settled(&conversations) {
            true => RowNeeds { data_source: false, ground_truth: false, ..self.needs },
            false => self.needs,
        };
        let source = data.data_source_key.as_deref().map(|key| data_source(row, key, needs.data_source)).transpose()?;
        let ground_truth = self.truth.value_in(row, needs.ground_truth)?;
        if texts.is_empty() {
            bail!("column \"{key}\" has no responses");
        }
        let text =
            |(i, text): (usize, &'a Value)| text.as_str().with_context(|| format!("response {i} must be text, not {text}"));
        let prompt = match row.values.get(&data.prompt_key).unwrap_or(&Value::Null) {
            Value::String(text) if data.apply_chat_template => Cow::Owned(json!([{"role": "user", "content": text}])),
            prompt => Cow::Borrowed(prompt),
        };
        let prompt_text = match (prompt.as_ref(), self.tokenizer) {
            (Value::String(text), _) => text.clone(),
            (prompt @ Value::Array(_), Some(tokenizer)) => tokenizer.apply_chat_template(prompt, true, &Map::new())?,
            (Value::Array(_), None) if needs.prompt_text => bail!(
                "column \"{}\" is a conversation, and a reward function reads the prompt as text: write data.tokenizer=FOLDER, whose chat \
                 template writes it",
                data.prompt_key
            ),
            _ => String::new(),
        };
        Ok(Answered {
            row,
            data_source: source.unwrap_or_default(),
            ground_truth,
            extra_info: row.values.get("extra_info").filter(|extra| !extra.is_null()).unwrap_or(&NO_EXTRA_INFO),
            prompt,
            prompt_text,
            responses: texts.iter().enumerate().map(text).collect::<Result<_>>()?,
            conversations,
        })
    }
}

impl Answered<'_> {
    /// Returns true if reward functions score a response of the row.
    fn needs_scores(&self) -> bool {
        !are_settled(&self.conversations)
    }

    fn input(&self, response: usize) -> ScoreInput<'_> {
        let conversation = self.conversations.get(response).map(|transcript| transcript as &dyn Conversation);
        ScoreInput { solution: self.responses[response], raw: self.responses[response], conversation, ..self.row() }
    }

    /// Returns the row as reward functions see it, without a response.
    fn row(&self) -> ScoreInput<'_> {
        ScoreInput {
            data_source: self.data_source,
            ground_truth: self.ground_truth,
            extra_info: self.extra_info,
            prompt: &self.prompt,
            prompt_text: &self.prompt_text,
            columns: &self.row.values,
            ..Default::default()
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
