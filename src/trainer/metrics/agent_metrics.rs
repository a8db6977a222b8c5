//! The metrics of conversations: reasons of their ends, their calls, and their waiting times (verl's `tool_call_counts/*` and
//! `timing_s/agent_loop/*`, TRL's `tools/*`, and additional ones). Only batches with conversations have them; the number of turns
//! is a metric of every batch.

use std::collections::BTreeMap;

use serde_json::Value;

use super::batch_metrics::spread;
use crate::trainer::batch::Batch;
use burnish_agent::loops::BRANCHES;
use burnish_agent::{CallRecord, EndReason, Episode, ReplyFailure};
use burnish_tracking::Metrics;

/// Maximum number of tools with separate metrics: names come from the model, and a run may have any number of tools.
const MAX_TOOLS: usize = 64;

/// Adds the metrics of the conversations of a batch.
///
/// Per conversation: `tool_call_counts/*`, `agent/unreadable_calls`, `agent/dropped_calls` and, if programs lead,
/// `agent/branches_dropped` (means), `agent/end/NAME` (share of conversations with this end), `tools/call_frequency` (calls).
///
/// Per call: `tools/failure_frequency` (share without a result of the tool; 0 without calls), `tools/cut_frequency` (share with a
/// truncated result).
///
/// `tools/trouble/NAME` and `tools/TOOL/calls` count calls of the step, `tools/TOOL/failure_rate` is a tool's share of failures,
/// `agent/context_ratio` the share of response tokens that the model did not sample. Names that are not tools have no separate
/// metrics.
pub(crate) fn of_batch(batch: &Batch, metrics: &mut Metrics) {
    let episodes: Vec<(usize, &Episode)> =
        batch.episodes.iter().enumerate().filter_map(|(i, episode)| Some((i, episode.as_deref()?))).collect();
    if episodes.is_empty() {
        return;
    }
    let count = episodes.len() as f64;
    let each = |number: &dyn Fn(&Episode) -> f64| -> Vec<f64> { episodes.iter().map(|(_, episode)| number(episode)).collect() };
    let mean = |number: &dyn Fn(&Episode) -> f64| each(number).iter().sum::<f64>() / count;
    spread("tool_call_counts", &each(&|episode| episode.calls.len() as f64), metrics);
    for end in EndReason::ALL {
        metrics.set(format!("agent/end/{}", end.name()), mean(&|episode| f64::from(u8::from(episode.end == end))));
    }
    metrics.set("agent/unreadable_calls", mean(&|episode| episode.unreadable_calls as f64));
    metrics.set("agent/dropped_calls", mean(&|episode| episode.dropped_calls as f64));
    let branches = |episode: &Episode| episode.extra.get(BRANCHES).and_then(Value::as_f64);
    if episodes.iter().any(|(_, episode)| branches(episode).is_some()) {
        metrics.set("agent/branches_dropped", mean(&|episode| branches(episode).unwrap_or(0.0)));
    }
    let context = each(&|episode| episode.sampled.iter().filter(|sampled| !**sampled).count() as f64);
    let tokens = each(&|episode| episode.ids.len() as f64);
    metrics.set("agent/context_ratio", context.iter().sum::<f64>() / tokens.iter().sum::<f64>().max(1.0));
    if episodes.iter().any(|(_, episode)| !episode.rewards.is_empty()) {
        spread("agent/turn_rewards", &each(&Episode::earned), metrics);
    }
    of_calls(&episodes.iter().flat_map(|(_, episode)| &episode.calls).collect::<Vec<_>>(), count, metrics);
    spread("timing_s/agent_loop/tool_calls", &each(&|episode| episode.waited), metrics);
    if let Some((i, slowest)) = episodes.iter().max_by(|(_, a), (_, b)| a.waited.total_cmp(&b.waited)) {
        metrics.set("timing_s/agent_loop/slowest/tool_calls", slowest.waited);
        metrics.set("timing_s/agent_loop/slowest/prompt_length", slowest.prompt.len() as f64);
        metrics.set("timing_s/agent_loop/slowest/response_length", batch.tokens(*i).len() as f64);
    }
}

/// Adds the metrics of the calls in `conversations` conversations.
fn of_calls(calls: &[&CallRecord], conversations: f64, metrics: &mut Metrics) {
    let share = |of: &[&CallRecord], is: &dyn Fn(&CallRecord) -> bool| {
        of.iter().filter(|call| is(call)).count() as f64 / of.len().max(1) as f64
    };
    let failed = |call: &CallRecord| call.failure.is_some();
    metrics.set("tools/call_frequency", calls.len() as f64 / conversations);
    metrics.set("tools/failure_frequency", share(calls, &failed));
    metrics.set("tools/cut_frequency", share(calls, &|call| call.cut));
    for failure in ReplyFailure::ALL {
        let count = calls.iter().filter(|call| call.failure == Some(failure)).count();
        metrics.set(format!("tools/trouble/{}", failure.name()), count as f64);
    }
    let mut tools: BTreeMap<&str, Vec<&CallRecord>> = BTreeMap::new();
    for &call in calls.iter().filter(|call| call.failure != Some(ReplyFailure::UnknownTool)) {
        tools.entry(&call.name).or_default().push(call);
    }
    for (name, calls) in tools.into_iter().take(MAX_TOOLS) {
        metrics.set(format!("tools/{name}/calls"), calls.len() as f64);
        metrics.set(format!("tools/{name}/failure_rate"), share(&calls, &failed));
        let seconds: Vec<f64> = calls.iter().map(|call| call.seconds).collect();
        spread(&format!("timing_s/agent_loop/tools/{name}"), &seconds, metrics);
    }
}

/// Watches a run's calls of tools: a run whose every call fails, or whose model writes unreadable calls, would otherwise look
/// normal. Warns once of each, after the first step that shows it.
#[derive(Default)]
pub(crate) struct ToolWatch {
    /// Number of calls so far that tools returned a result for.
    answered: usize,
    warned_unread: bool,
    warned_failed: bool,
}

impl ToolWatch {
    /// Follows the conversations of a step.
    pub(crate) fn follow(&mut self, step: u64, batch: &Batch) {
        for warning in self.warnings(batch) {
            tracing::warn!("step {step}: {warning}");
        }
    }

    fn warnings(&mut self, batch: &Batch) -> Vec<String> {
        let episodes = || batch.episodes.iter().flatten();
        let calls: Vec<&CallRecord> = episodes().flat_map(|episode| &episode.calls).collect();
        let unreadable: usize = episodes().map(|episode| episode.unreadable_calls).sum();
        self.answered += calls.iter().filter(|call| call.failure.is_none()).count();
        let mut warnings = Vec::new();
        if calls.is_empty() && unreadable > 0 && self.answered == 0 && !std::mem::replace(&mut self.warned_unread, true) {
            warnings.push(format!(
                "none of {unreadable} texts that look like calls of tools could be read: is \
                 actor_rollout_ref.rollout.multi_turn.format the format of this model? trainer report shows its responses"
            ));
        }
        if !calls.is_empty() && self.answered == 0 && !std::mem::replace(&mut self.warned_failed, true) {
            let mut kinds: BTreeMap<(Option<ReplyFailure>, &str), usize> = BTreeMap::new();
            calls.iter().for_each(|call| *kinds.entry((call.failure, &call.name)).or_default() += 1);
            let max = kinds.into_iter().max_by_key(|(_, count)| *count);
            let max = max.and_then(|((failure, name), count)| Some(format!("{count} times {} of {name:?}", failure?.name())));
            let count = calls.len();
            warnings.push(format!(
                "no tool returned a result for {count} calls, most often {}; the model got an error each time. The log has \
                 the output of the tools, trainer report the calls",
                max.unwrap_or_default()
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::batch::tests::{conversations, episode, two_responses};

    fn call(name: &str, failure: Option<ReplyFailure>) -> CallRecord {
        CallRecord { name: name.to_owned(), failure, cut: false, seconds: 0.25 }
    }

    fn batch() -> Batch {
        let mut first = episode(&[true, false, false, true]);
        first.calls = vec![call("a", None), call("a", Some(ReplyFailure::Timeout)), call("zz", Some(ReplyFailure::UnknownTool))];
        let mut second = episode(&[true; 4]);
        (second.end, second.calls, second.waited, second.unreadable_calls) = (EndReason::UnreadableCall, vec![], 2.0, 1);
        conversations(vec![first, second])
    }

    #[test]
    fn calls_ends_and_times_are_counted() {
        let mut metrics = Metrics::new();
        of_batch(&two_responses(), &mut metrics);
        assert_eq!(metrics.iter().count(), 0, "there is no conversation");
        of_batch(&batch(), &mut metrics);
        let expected = [
            ("tool_call_counts/mean", 1.5),
            ("tool_call_counts/max", 3.0),
            ("agent/end/answer", 0.5),
            ("agent/end/unreadable_call", 0.5),
            ("agent/end/failed", 0.0),
            ("agent/unreadable_calls", 0.5),
            ("agent/context_ratio", 0.25),
            ("tools/call_frequency", 1.5),
            ("tools/failure_frequency", 2.0 / 3.0),
            ("tools/trouble/timeout", 1.0),
            ("tools/trouble/died", 0.0),
            ("tools/a/calls", 2.0),
            ("tools/a/failure_rate", 0.5),
            ("timing_s/agent_loop/tool_calls/max", 2.0),
            ("timing_s/agent_loop/slowest/response_length", 4.0),
            ("timing_s/agent_loop/tools/a/mean", 0.25),
        ];
        for (name, value) in expected {
            assert_eq!(metrics.get(name), Some(value), "{name}");
        }
        assert_eq!((metrics.get("tools/zz/calls"), metrics.get("agent/turn_rewards/mean")), (None, None));
    }

    #[test]
    fn tools_that_never_answer_and_calls_that_nobody_can_read_are_said_once() {
        let unread = conversations(batch().episodes[1..].iter().flatten().map(|episode| Episode::clone(episode)).collect());
        let mut failed = episode(&[true]);
        failed.calls =
            vec![call("a", Some(ReplyFailure::Raised)), call("b", Some(ReplyFailure::Died)), call("b", Some(ReplyFailure::Died))];
        let failed = conversations(vec![failed]);
        let mut watch = ToolWatch::default();
        assert!(watch.warnings(&two_responses()).is_empty());
        let warnings = watch.warnings(&unread);
        assert!(warnings.len() == 1 && warnings[0].contains("none of 1 texts"), "{warnings:?}");
        let warnings = watch.warnings(&failed);
        assert!(warnings.len() == 1 && warnings[0].contains("for 3 calls, most often 2 times died of \"b\""), "{warnings:?}");
        assert!(watch.warnings(&failed).is_empty() && watch.warnings(&unread).is_empty());
        let mut watch = ToolWatch::default();
        assert!(watch.warnings(&batch()).is_empty() && watch.warnings(&failed).is_empty(), "a tool has answered");
    }
}
