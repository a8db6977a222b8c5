//! Tools with recorded results.

use std::collections::HashSet;

use anyhow::{Context, Result};
use serde_json::Value;

use super::entry::RecordedTurn;
use super::recorder::Recorder;
use crate::tools::{ConversationView, ToolResult, Toolbox, ValidCall};
use burnish_util::crc::IEEE;

/// The tools of one conversation, some of them outside this process. Calls with recorded results of outside tools are not
/// repeated.
pub struct RecordedTools {
    tools: Box<dyn Toolbox>,
    /// The names of the tools outside this process. The other tools run again, because they keep state.
    outside: HashSet<String>,
    recorder: Recorder,
    conversation: String,
    /// The number of turns so far with calls of outside tools.
    turns: usize,
}

impl RecordedTools {
    /// Wraps tools: `outside` are the names of the tools outside this process, `conversation` is the conversation's name, the
    /// same in each run.
    pub fn new(tools: Box<dyn Toolbox>, outside: HashSet<String>, recorder: Recorder, conversation: &str) -> Self {
        Self { tools, outside, recorder, conversation: conversation.to_owned(), turns: 0 }
    }
}

impl Toolbox for RecordedTools {
    fn schemas(&self) -> &[Value] {
        self.tools.schemas()
    }

    fn call(&mut self, calls: &[ValidCall], view: &ConversationView) -> Result<Vec<ToolResult>> {
        let is_outside: Vec<bool> = calls.iter().map(|call| self.outside.contains(&call.written.name)).collect();
        let outside = |outside_wanted: bool| {
            calls.iter().zip(&is_outside).filter(move |(_, outside)| **outside == outside_wanted).map(|(call, _)| call)
        };
        let written: Vec<(&str, &str)> =
            outside(true).map(|call| (call.written.name.as_str(), call.written.arguments.as_str())).collect();
        if written.is_empty() {
            return self.tools.call(calls, view);
        }
        let (number, checksum) = (self.turns, IEEE.checksum(&serde_json::to_vec(&written)?));
        self.turns += 1;
        let known = self.recorder.answers(&self.conversation, number, checksum);
        if let Some(known) = known.filter(|known| known.len() == written.len()) {
            let others: Vec<ValidCall> = outside(false).cloned().collect();
            let others = if others.is_empty() { Vec::new() } else { self.tools.call(&others, view)? };
            let (mut known, mut others) = (known.into_iter(), others.into_iter());
            let answer = |outside: &bool| if *outside { known.next() } else { others.next() };
            return is_outside.iter().map(answer).collect::<Option<_>>().context("a toolbox has fewer answers than calls");
        }
        let answers = self.tools.call(calls, view)?;
        let recorded = answers.iter().zip(&is_outside).filter(|(_, outside)| **outside).map(|(answer, _)| answer.clone());
        let turn = RecordedTurn { number, calls: checksum, answers: recorded.collect() };
        self.recorder.record_answers(&self.conversation, turn);
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::calls::ToolCall;
    use crate::recorded::{RecordBase, RecordingOptions};

    /// Returns the number of calls so far.
    struct Counting(usize);

    impl Toolbox for Counting {
        fn schemas(&self) -> &[Value] {
            &[]
        }

        fn call(&mut self, calls: &[ValidCall], _: &ConversationView) -> Result<Vec<ToolResult>> {
            let mut answer = |_| {
                self.0 += 1;
                ToolResult { text: self.0.to_string(), reward: None, failure: None, seconds: 0.0, extra: Map::new() }
            };
            Ok(calls.iter().map(&mut answer).collect())
        }
    }

    #[test]
    fn what_was_answered_is_not_asked_again() {
        let folder = tempfile::tempdir().unwrap();
        let tools = |counts: usize| {
            let base = RecordBase { step: 1, weights: String::new(), settings: String::new(), version: String::new() };
            let recording = RecordingOptions { resumes: true, keeps: true, ..RecordingOptions::default() };
            let recorder = Recorder::open(folder.path(), (0, 1), base, recording).unwrap();
            let outside = HashSet::from(["search".to_owned()]);
            RecordedTools::new(Box::new(Counting(counts)), outside, recorder, "rollout-1-2-3")
        };
        let ask = |tools: &mut RecordedTools, calls: &[(&str, &str)]| -> Vec<String> {
            let call = |(name, arguments): &(&str, &str)| ValidCall {
                written: ToolCall { id: None, name: (*name).to_owned(), arguments: (*arguments).to_owned() },
                arguments: json!({}),
            };
            let calls: Vec<ValidCall> = calls.iter().map(call).collect();
            tools.call(&calls, &ConversationView::EMPTY).unwrap().into_iter().map(|answer| answer.text).collect()
        };
        let both = [("search", "a"), ("here", "b"), ("search", "c")];
        let mut first = tools(0);
        assert_eq!(ask(&mut first, &both), ["1", "2", "3"]);
        assert_eq!(ask(&mut first, &[("here", "d")]), ["4"]);
        assert_eq!(ask(&mut first, &[("search", "e")]), ["5"]);
        // Inside tools run again, for their state. Outside tools run again after the end of the record, or for other calls.
        let mut again = tools(10);
        assert_eq!(ask(&mut again, &both), ["1", "11", "3"]);
        assert_eq!(ask(&mut again, &[("here", "d")]), ["12"]);
        assert_eq!(ask(&mut again, &[("search", "other")]), ["13"]);
        assert_eq!(ask(&mut again, &[("search", "f")]), ["14"]);
    }
}
