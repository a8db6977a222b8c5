//! The user's side of a chat: lines of a terminal, or the whole standard input of a pipe.

use std::io::{self, Read};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::commands::{self, Next};
use super::history::ChatHistory;
use super::partner::{AnswerEnd, ChatAnswer, Listener, Partner};
use super::shown::{AnswerWriter, is_dialogue, note};
use burnish_agent::endpoint::for_template;
use burnish_util::interrupt::Interrupted;
use burnish_util::terminal;

const PROMPT: &str = "> ";
const MORE: &str = "  ";

impl Listener for AnswerWriter {
    fn begin(&mut self, opened_thinking: bool) {
        self.restart(opened_thinking);
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.write(text)
    }
}

/// Reads messages from the terminal until Ctrl-D or `/quit`, and shows the answers.
///
/// # Errors
/// If the terminal or the engine fails.
pub(crate) fn talk(mut partner: Partner, mut history: ChatHistory) -> Result<()> {
    let name = partner.name().to_owned();
    note(&format!("{name}: /help lists the commands, Ctrl-C stops an answer, Ctrl-D ends the chat"))?;
    while let Some(line) = message()? {
        if line.trim().is_empty() {
            continue;
        }
        match commands::run(&mut history, &line).transpose()? {
            Some(Next::Quit) => return Ok(()),
            Some(Next::Continue) => continue,
            None => {}
        }
        let line = if line.starts_with("//") { &line[1..] } else { &line };
        let before = history.len();
        if let Err(error) = exchange(&mut partner, &mut history, line) {
            if partner.has_stopped() {
                return Err(error);
            }
            note(&format!("error: {error:#}"))?;
            history.truncate(before);
        }
    }
    Ok(())
}

/// Reads a message: a line, and the next one after a backslash at its end. `None` at the end of the input.
fn message() -> Result<Option<String>> {
    let mut text = String::new();
    loop {
        terminal::print(if text.is_empty() { PROMPT } else { MORE })?;
        let mut line = String::new();
        if io::stdin().read_line(&mut line).context("the terminal cannot be read")? == 0 {
            // The shell's prompt begins a line.
            terminal::print("\n")?;
            return Ok(None);
        }
        let line = line.trim_end_matches(['\n', '\r']);
        match line.strip_suffix('\\') {
            Some(begun) => text += &format!("{begun}\n"),
            None => return Ok(Some(text + line)),
        }
    }
}

/// Answers a message, running tools until an answer has no call. The history gets all messages.
fn exchange(partner: &mut Partner, history: &mut ChatHistory, text: &str) -> Result<AnswerEnd> {
    // In a pipe, only the last turn is the answer.
    let mut writer = AnswerWriter::new(partner.has_tools() && !is_dialogue());
    if history.is_raw {
        let answer = partner.continued(text, &mut writer)?;
        writer.finish(true)?;
        history.push(json!({"role": "user", "content": text}));
        history.push(for_template(&answer.message));
        return checked_end(answer.end);
    }
    history.push(json!({"role": "user", "content": text}));
    for turn in 1.. {
        let answer = partner.answer(&history.messages(), &mut writer)?;
        writer.finish(answer.calls.is_empty())?;
        history.push(for_template(&answer.message));
        if answer.calls.is_empty() {
            return checked_end(answer.end);
        }
        if partner.max_turns() == Some(turn) {
            note("the calls are not run: rollout.multi_turn.max_assistant_turns is reached")?;
            break;
        }
        if !run_calls(partner, history, &answer)? {
            return checked_end(AnswerEnd::Stopped);
        }
    }
    Ok(AnswerEnd::Whole)
}

/// Runs the calls of an answer and shows both. Returns false if the user stopped the tools.
fn run_calls(partner: &mut Partner, history: &mut ChatHistory, answer: &ChatAnswer) -> Result<bool> {
    for call in &answer.calls {
        note(&format!("→ {}({})", call.name, call.arguments))?;
    }
    let (results, left) = partner.run_calls(answer, &history.messages())?;
    let text = |result: &Value| result["content"].as_str().unwrap_or_default().to_owned();
    for result in results.iter().map(text) {
        note(&format!("← {result}"))?;
    }
    if left > 0 {
        note(&format!("{left} calls are not run: rollout.multi_turn.max_parallel_calls"))?;
    }
    let any = !results.is_empty();
    results.into_iter().for_each(|result| history.push(result));
    Ok(any)
}

fn checked_end(end: AnswerEnd) -> Result<AnswerEnd> {
    match end {
        AnswerEnd::Whole => {}
        AnswerEnd::Limit => tracing::info!("the answer has reached its limit (--max-tokens, or the model's positions)"),
        AnswerEnd::Stopped => tracing::info!("stopped"),
    }
    Ok(end)
}

/// Reads the whole standard input as one message.
///
/// # Errors
/// If standard input is empty or not text.
pub(crate) fn all_input() -> Result<String> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("standard input")?;
    // The shell's `echo` ends a text with a line feed.
    if text.ends_with('\n') {
        text.pop();
        text.truncate(text.strip_suffix('\r').unwrap_or(&text).len());
    }
    if text.is_empty() {
        bail!("standard input is empty: write `echo TEXT | trainer chat MODEL`, or run it in a terminal");
    }
    Ok(text)
}

/// Answers one message, and prints only the answer.
///
/// # Errors
/// If the model cannot answer; [`Interrupted`] after Ctrl-C.
pub(crate) fn one_answer(mut partner: Partner, mut history: ChatHistory, text: &str) -> Result<()> {
    match exchange(&mut partner, &mut history, text)? {
        AnswerEnd::Stopped => Err(Interrupted("the answer was stopped".to_owned()).into()),
        AnswerEnd::Whole | AnswerEnd::Limit => Ok(()),
    }
}
