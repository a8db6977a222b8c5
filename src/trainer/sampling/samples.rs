//! Responses that a run shows or keeps: a few as a table for trackers and token by token for `trainer report`, and all of them in
//! `trainer.rollout_data_dir` and `trainer.validation_data_dir`.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use super::discarded::DiscardedGroups;
use super::transcript_text::turns;
use crate::job::Context;
use crate::job::probe::{ProbedSample, ProbedText};
use crate::trainer::batch::Batch;
use crate::trainer::batch::columns::Column;
use burnish_agent::Episode;
use burnish_config::schema::{Location, TrainerConfig};
use burnish_data::{Prompt, Tokenizer};
use burnish_reward::{ResponseScore, completion};
use burnish_rollout::Finish;
use burnish_run::{ConversationSample, Sample};
use burnish_tracking::{Cell, StepTable};
use burnish_util::json_number;
use burnish_util::no_follow;
use burnish_util::python_tagged::plain;
use burnish_util::rng::Stream;

/// Responses of a step, and what became of them.
pub(crate) struct UsedSamples<'a> {
    /// Responses that the step learned from.
    pub batch: &'a Batch,
    /// Numbers of the updates that read each of them, from 1.
    pub updates: Vec<Vec<usize>>,
    /// Groups that the step did not learn from.
    pub discarded: &'a DiscardedGroups,
}

/// Sends `trainer.log_completions` random responses of this step to the trackers, at the first step of each of
/// `trainer.num_sample_generations` equal parts of training (TRL's `sample_generations_freq`), and at the last step. As many
/// discarded responses go to the run's record.
pub(crate) fn show_completions(
    used: &UsedSamples,
    tokenizer: &Tokenizer,
    config: &TrainerConfig,
    at: &mut Context,
) -> Result<()> {
    let batch = used.batch;
    let (max, times) = (config.log_completions, config.num_sample_generations as u64);
    let total = at.total_steps();
    let due = |times: u64| (at.step - 1).is_multiple_of(total.div_ceil(times).max(1)) || at.step == total;
    if max == 0 || times == 0 || !due(times) {
        return Ok(());
    }
    let mut chosen: Vec<usize> = (0..batch.len()).collect();
    Stream::new(config.seed, "shown completions", &[at.step]).shuffle(&mut chosen);
    chosen.truncate(max);
    chosen.sort_unstable();
    let sample = |&i: &usize| -> Result<Sample> {
        Ok(Sample { updates: used.updates[i].clone(), ..sample_of(batch, i, "train", tokenizer, at.step)? })
    };
    let samples: Vec<Sample> = chosen.iter().map(sample).collect::<Result<_>>()?;
    let of_group = |(group, reason): (&Batch, &str)| -> Vec<Result<Sample>> {
        let sample = |i| {
            let discarded = Some(reason.to_owned());
            Ok(Sample { discarded, ..sample_of(group, i, "train", tokenizer, at.step)? })
        };
        (0..group.len()).map(sample).collect()
    };
    let discarded: Vec<Sample> = used.discarded.iter().flat_map(of_group).take(max).collect::<Result<_>>()?;
    let questions = chosen.iter().map(|&i| question(batch.prompt(i))).collect();
    let table = StepTable { brief: questions, ..table(&samples, "completions") };
    at.record.samples(at.step, &[samples, discarded].concat(), &table);
    Ok(())
}

/// Returns a response with its score and its values.
pub(super) fn sample_of(batch: &Batch, i: usize, kind: &str, tokenizer: &Tokenizer, step: u64) -> Result<Sample> {
    let (prompt, response, tokens) = (batch.prompt(i), &batch.responses[i], batch.tokens(i));
    let advantages = batch.get(Column::Advantages);
    let score = &batch.scores[i];
    let episode = batch.episodes[i].as_deref();
    let changed = episode.filter(|episode| episode.prompt != prompt.ids);
    let read = changed.map(|episode| tokenizer.decode(&episode.prompt, false)).transpose()?;
    Ok(Sample {
        step,
        kind: kind.to_owned(),
        row: Some(prompt.index),
        prompt: read.unwrap_or_else(|| prompt.text.clone()),
        response: batch.texts[i].clone(),
        score: score.score.map(f64::from),
        advantage: advantages.map(|advantages| mean_advantage(batch, i, advantages)),
        ground_truth: plain(&prompt.ground_truth).into_owned(),
        data_source: prompt.data_source.clone(),
        components: components(score).collect(),
        finish: match response.finish {
            Finish::Stop => "stop".to_owned(),
            Finish::Length => "length".to_owned(),
        },
        discarded: None,
        updates: Vec::new(),
        tokens: tokenizer.pieces(&response.ids)?,
        log_probs: response.log_probs.clone(),
        advantages: advantages.map(|advantages| advantages[tokens].to_vec()),
        conversation: episode.map(talk),
    })
}

/// Shows the probe of the step, if there is one, the trajectories of a batch.
pub(crate) fn show_probe(batch: &Batch, tokenizer: &Tokenizer, at: &Context) -> Result<()> {
    let Some(probe) = &at.probe else { return Ok(()) };
    let probed = |i: usize| -> Result<ProbedSample> {
        let sample = sample_of(batch, i, "train", tokenizer, 0)?;
        let text = ProbedText {
            prompt: sample.prompt,
            response: sample.response,
            tokens: sample.tokens,
            mask: batch[Column::Mask][batch.tokens(i)].iter().map(|&mask| u8::from(mask != 0.0)).collect(),
            generated_log_prob: Some(sample.log_probs),
            advantage: sample.advantages,
            updates: Vec::new(),
        };
        Ok(ProbedSample {
            sample: i,
            row: batch.prompt(i).index,
            score: sample.score,
            components: sample.components,
            ground_truth: sample.ground_truth,
            data_source: sample.data_source,
            finish: sample.finish,
            gradients: Vec::new(),
            texts: vec![text],
        })
    };
    let samples: Vec<ProbedSample> = (0..batch.len()).map(probed).collect::<Result<_>>()?;
    probe.look(|step| step.samples = samples);
    Ok(())
}

fn talk(episode: &Episode) -> ConversationSample {
    ConversationSample {
        messages: episode.messages.clone(),
        prompt_messages: episode.messages.len() - completion(episode).len(),
        end: episode.end.name().to_owned(),
        num_turns: episode.num_turns(),
        sampled: episode.sampled.iter().map(|sampled| u8::from(*sampled)).collect(),
    }
}

/// Returns the last user turn of a prompt, without the chat template; the whole text of a prompt without messages.
pub(super) fn question(prompt: &Prompt) -> String {
    let is_user = |message: &&Value| message["role"] == "user";
    let last = prompt.messages.as_array().filter(|_| prompt.conversational).and_then(|all| all.iter().rev().find(is_user));
    let text = |content: &Value| match content {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join(" "),
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    last.map(|message| text(&message["content"])).filter(|text| !text.is_empty()).unwrap_or_else(|| prompt.text.clone())
}

/// Sends samples to the trackers and to the run's record. `questions`: what the terminal shows of their prompts.
pub(super) fn show(samples: &[Sample], questions: Vec<String>, name: &'static str, at: &mut Context) {
    let table = StepTable { brief: questions, ..table(samples, name) };
    at.record.samples(at.step, samples, &table);
}

/// Folder of the dumped groups that dynamic sampling discarded. They are not in verl's file, whose lines were all trained on.
pub(crate) const DISCARDED: &str = "discarded";

/// Writes the step's trajectories to a folder, if `trainer.rollout_data_dir` is set. Discarded groups get a file in a folder below.
pub(crate) fn dump(used: &UsedSamples, folder: Option<&Location>, step: u64) -> Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    let of_group = |(group, reason): (&Batch, &str)| lines(group, step, |_| vec![("discarded", reason.into())]);
    let discarded: String = used.discarded.iter().map(of_group).collect();
    if !discarded.is_empty() {
        let folder = folder.as_path().join(DISCARDED);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        write_generations(&folder, step, &discarded)?;
    }
    write_generations(folder.as_path(), step, &lines(used.batch, step, |i| vec![("updates", json!(used.updates[i]))]))
}

/// Writes JSON lines to verl's `<folder>/<step>.jsonl`.
pub(super) fn write_generations(folder: &Path, step: u64, lines: &str) -> Result<()> {
    no_follow::write(&folder.join(format!("{step}.jsonl")), lines.as_bytes())
}

/// Returns verl's JSON lines: one object per trajectory with input, output, gts, score, step, the row of its prompt, its mean
/// advantage, the found answer (pred) and the extras. In training also the updates of the step that read it, or the reason why it was
/// discarded. Conversations also have messages, the number of prompt messages, tools, end
/// and num_turns.
pub(super) fn generations(batch: &Batch, step: u64) -> String {
    lines(batch, step, |_| vec![])
}

/// Returns the lines with `further` columns of each trajectory.
fn lines(batch: &Batch, step: u64, further: impl Fn(usize) -> Vec<(&'static str, Value)>) -> String {
    let mut lines = String::new();
    for (i, score) in batch.scores.iter().enumerate() {
        let prompt = batch.prompt(i);
        let mut row = Map::new();
        row.insert("input".into(), prompt.text.clone().into());
        row.insert("output".into(), batch.texts[i].clone().into());
        row.insert("gts".into(), plain(&prompt.ground_truth).into_owned());
        row.insert("score".into(), json_number::to_value(score.score.map(f64::from)));
        row.insert("step".into(), step.into());
        row.insert("row".into(), prompt.index.into());
        row.extend(further(i).into_iter().map(|(name, value)| (name.to_owned(), value)));
        if let Some(advantages) = batch.get(Column::Advantages) {
            row.insert("advantage".into(), json_number::to_value(mean_advantage(batch, i, advantages)));
        }
        if let Some(episode) = &batch.episodes[i] {
            row.insert("messages".into(), episode.messages.clone().into());
            row.insert("asked".into(), episode.prompt_messages.into());
            if !episode.tools.is_empty() {
                row.insert("tools".into(), episode.tools.clone().into());
            }
            if episode.tokens_only {
                row.insert("tokens_only".into(), true.into());
            }
            row.insert("end".into(), episode.end.name().into());
            row.insert("num_turns".into(), episode.num_turns().into());
        }
        row.extend(score.pred.clone().map(|pred| ("pred".to_owned(), pred.into())));
        row.extend(components(score));
        row.extend(score.notes.iter().cloned());
        row.extend(score.extras.iter().map(|(name, value)| (name.clone(), json_number::to_value(*value))));
        lines.push_str(&Value::Object(row).to_string());
        lines.push('\n');
    }
    lines
}

/// Returns the rewards of the functions by name, if there are several.
fn components(score: &ResponseScore) -> impl Iterator<Item = (String, Value)> {
    let several = score.components.len() > 1;
    score.components.iter().filter(move |_| several).map(|c| (c.name.clone(), json_number::to_value(c.reward)))
}

/// Returns the value of a reward function, unless it abstained.
fn number(value: Option<&Value>) -> Option<f64> {
    value.filter(|value| !value.is_null()).and_then(json_number::from_value)
}

/// Returns the mean advantage over trained tokens; an estimator that compares responses gives all tokens the same.
fn mean_advantage(batch: &Batch, i: usize, advantages: &[f32]) -> f64 {
    let trained: Vec<f32> = batch.tokens(i).filter(|&t| batch[Column::Mask][t] != 0.0).map(|t| advantages[t]).collect();
    f64::from(trained.iter().sum::<f32>() / trained.len().max(1) as f32)
}

/// Returns query, response and score, as in TRL's table; the reward functions, if the run has several; the advantage, if it
/// exists. For conversations the response is the turns; the number of turns and the reason of the end are columns.
fn table(samples: &[Sample], name: &'static str) -> StepTable {
    let first = samples.first();
    let components: Vec<&String> = first.iter().flat_map(|sample| sample.components.keys()).collect();
    let advantage = first.is_some_and(|sample| sample.advantage.is_some());
    let mut columns: Vec<String> = ["query", "response", "score"].map(str::to_owned).to_vec();
    columns.extend(components.iter().map(|name| (*name).clone()));
    let conversations = samples.iter().any(|sample| sample.conversation.is_some());
    columns.extend(["num_turns", "end"].iter().filter(|_| conversations).map(|name| (*name).to_owned()));
    columns.extend(advantage.then(|| "advantage".to_owned()));
    let row = |sample: &Sample| {
        let talk = sample.conversation.as_ref();
        let response = talk.map(|talk| turns(talk.messages.get(talk.prompt_messages..).unwrap_or_default()));
        let response = response.as_deref().unwrap_or(&sample.response);
        let mut row = vec![Cell::from(sample.prompt.as_str()), Cell::from(response), Cell::from(sample.score)];
        row.extend(components.iter().map(|name| Cell::from(number(sample.components.get(*name)))));
        if conversations {
            row.push(Cell::from(talk.map(|talk| talk.num_turns as f64)));
            row.push(talk.map_or(Cell::None, |talk| Cell::from(talk.end.as_str())));
        }
        row.extend(sample.advantage.map(|advantage| Cell::from(Some(advantage))));
        row
    };
    StepTable { name, columns, rows: samples.iter().map(row).collect(), brief: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::batch::tests::{conversations, episode, two_responses};

    #[test]
    fn a_conversation_is_shown_as_turns() {
        let tokenizer = Tokenizer::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/arithmetic/model")).unwrap();
        let mut batch = conversations(vec![episode(&[true, false, true])]);
        batch.append(two_responses());
        let rows: Vec<Value> = generations(&batch, 3).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&rows[0]["end"], &rows[0]["num_turns"]), (&"answer".into(), &4.into()));
        assert_eq!((rows[0]["messages"].as_array().map(Vec::len), rows[1].get("messages")), (Some(4), None));

        let samples: Vec<Sample> = [0, 1].map(|i| sample_of(&batch, i, "train", &tokenizer, 3).unwrap()).to_vec();
        let talk = samples[0].conversation.as_ref().unwrap();
        assert_eq!((talk.prompt_messages, &talk.sampled[..]), (1, &[1, 0, 1][..]));
        let table = table(&samples, "completions");
        assert_eq!(table.columns, ["query", "response", "score", "num_turns", "end"]);
        assert_eq!(table.rows[0][1], Cell::from("assistant: \ntool: 6\nassistant: It is 6."));
        assert_eq!(
            (&table.rows[0][3..], &table.rows[1][3..]),
            (&[Cell::Number(4.0), Cell::from("answer")][..], &[Cell::None, Cell::None][..])
        );

        // Written samples can be read again, also responses of one turn.
        for sample in samples {
            let text = serde_json::to_string(&sample).unwrap();
            assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
            assert_eq!(text.contains("sampled"), sample.conversation.is_some());
        }
    }
}
