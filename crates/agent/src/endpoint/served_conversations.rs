//! The record of all served turns, by conversation.
//!
//! A request continues a known conversation if its ids begin with all ids so far, or otherwise if its messages begin with the
//! messages so far. In the second case the sampled ids stay unchanged, and only the difference of the new messages is appended.
//! Any other request begins a branch, and gets the same response as a separate request.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use anyhow::Result;
use serde_json::Value;

use super::render::PromptTokens;
use super::tree::{BYTES_PER_TOKEN, Parent, ServedTurn, Trajectory, TurnTree};
use crate::tokens::Appended;
use burnish_rollout::Response;

/// The served conversations; the least recently used ones are dropped.
pub struct ServedConversations {
    trees: HashMap<String, StoredConversation>,
    /// The keys by the time of their last request.
    order: BTreeMap<u64, String>,
    /// The number of requests so far, used as a clock.
    now: u64,
    /// The size of all conversations in tokens; the bytes of messages and keys are counted as tokens, too.
    size: usize,
    /// The limit of the size.
    max: usize,
}

struct StoredConversation {
    tree: TurnTree,
    size: usize,
    /// The time of the first request, which tells the conversation from a later one with the same key.
    born: u64,
    last: u64,
    /// The number of requests.
    requests: u64,
}

/// The way in which a request continues the served turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContinuationKind {
    /// The conversation is new.
    New,
    /// The ids begin with the served ids.
    Ids,
    /// The messages begin with the served messages, but the ids do not: the served ids are continued.
    Messages,
    /// The request begins a branch: another conversation under the same key.
    Branch,
    /// The request begins a branch, because the served ids cannot be continued; with the reason.
    Broken(String),
}

/// The start of sampling for a request, with the data to record afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingStart {
    /// All ids before the response.
    pub ids: Vec<u32>,
    pub way: ContinuationKind,
    /// The number of earlier requests of this conversation.
    pub requests: u64,
    /// The number of prompt tokens of the trajectory.
    pub prompt: usize,
    born: u64,
    after: Option<Parent>,
    messages: Vec<Value>,
    setting: u64,
}

/// The stored part of a request's conversation, before its ids are final.
pub struct FoundConversation {
    requests: u64,
    born: u64,
    known: bool,
    /// The number of prompt tokens of the continued trajectory.
    prompt: usize,
    by_ids: Option<Parent>,
    by_messages: Option<(Parent, Trajectory)>,
}

impl ServedConversations {
    /// Creates an empty record of at most `max` tokens. 16 bytes of messages count as a token.
    pub fn new(max: usize) -> Self {
        Self { trees: HashMap::new(), order: BTreeMap::new(), now: 0, size: 0, max }
    }

    /// Looks up a request. `setting` is a hash of its tools and template variables.
    pub fn find(&mut self, key: &str, prompt: &PromptTokens, setting: u64) -> FoundConversation {
        self.forget_oldest();
        let kept = self.touch(key);
        let requests = kept.requests;
        kept.requests += 1;
        let by_ids = kept.tree.by_ids(&prompt.ids);
        let by_messages = if by_ids.is_none() { kept.tree.by_messages(&prompt.messages, setting) } else { None };
        let prompt = by_ids.or(by_messages).map_or(0, |after| kept.tree.prompt(after.turn));
        let by_messages = by_messages.and_then(|after| Some((after, kept.tree.trajectory(after.turn)?)));
        FoundConversation { requests, born: kept.born, known: kept.tree.len() > 0, prompt, by_ids, by_messages }
    }

    /// Records a served turn. `message` is the model's message, in the form of chat templates.
    pub fn served(&mut self, key: &str, start: &SamplingStart, message: Option<Value>, response: Response) {
        let kept = self.touch(key);
        // A conversation that was dropped meanwhile begins again.
        let after = start.after.filter(|_| kept.born == start.born);
        let context = start.ids[after.map_or(0, |after| after.tokens)..].to_vec();
        let from = after.map_or(0, |after| after.messages);
        let messages = start.messages.get(from..).unwrap_or_default().iter().cloned().chain(message).collect();
        let added = kept.tree.add(ServedTurn { after, context, response, messages, setting: start.setting });
        kept.size += added;
        self.size += added;
        self.forget_oldest();
    }

    /// Drops the least recently used conversations until the others fit, also the last one if it alone is too large.
    fn forget_oldest(&mut self) {
        while self.size > self.max
            && let Some((_, oldest)) = self.order.pop_first()
            && let Some(forgotten) = self.trees.remove(&oldest)
        {
            self.size -= forgotten.size;
            if self.trees.is_empty() {
                let (size, max) = (forgotten.size, self.max);
                tracing::warn!("the conversation {oldest:?} has the size of {size} tokens and was forgotten; the limit is {max}");
            }
        }
    }

    /// Returns the trajectories of a conversation; `None` if it is unknown.
    pub fn trajectories(&self, key: &str) -> Option<ServedTrajectories> {
        self.trees.get(key).map(|kept| ServedTrajectories(kept.tree.clone()))
    }

    /// Removes a conversation and returns its trajectories.
    pub fn take(&mut self, key: &str) -> Option<ServedTrajectories> {
        let kept = self.trees.remove(key)?;
        self.order.remove(&kept.last);
        self.size -= kept.size;
        Some(ServedTrajectories(kept.tree))
    }

    /// Returns the number of conversations.
    pub fn len(&self) -> usize {
        self.trees.len()
    }

    pub fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    fn touch(&mut self, key: &str) -> &mut StoredConversation {
        self.now += 1;
        let now = self.now;
        // The key is stored twice.
        let empty = (2 * (key.len() + size_of::<(String, StoredConversation)>())).div_ceil(BYTES_PER_TOKEN);
        let size = &mut self.size;
        let new = || {
            *size += empty;
            StoredConversation { tree: TurnTree::new(), size: empty, born: now, last: now, requests: 0 }
        };
        let kept = self.trees.entry(key.to_owned()).or_insert_with(new);
        self.order.remove(&kept.last);
        kept.last = now;
        self.order.insert(now, key.to_owned());
        kept
    }
}

/// The trajectories of a conversation at one time: one for every turn that no request continued. They take little memory until
/// they are written, although each has its own copy of a shared beginning.
pub struct ServedTrajectories(TurnTree);

impl ServedTrajectories {
    /// Returns the trajectories one by one.
    pub fn iter(&self) -> impl Iterator<Item = Trajectory> {
        self.0.trajectories()
    }

    /// Writes the conversation as JSON, one trajectory after another.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&self, key: &str, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        write!(out, "{{\"conversation\":{},\"trajectories\":[", Value::from(key))?;
        for (i, trajectory) in self.iter().enumerate() {
            out.write_all(if i > 0 { b"," } else { b"" })?;
            serde_json::to_writer(&mut *out, &trajectory)?;
        }
        out.write_all(b"]}\n")
    }
}

impl FoundConversation {
    /// Determines the final ids. `append` returns what new messages add to a conversation with these messages and ids
    /// ([`Continuation::append`](crate::tokens::Continuation::append)).
    pub fn start(
        self,
        prompt: PromptTokens,
        setting: u64,
        append: impl FnOnce(&[Value], &[u32], &[Value]) -> Result<Appended>,
    ) -> SamplingStart {
        let PromptTokens { ids, messages } = prompt;
        let begin = |ids: Vec<u32>, way| {
            let prompt = ids.len();
            SamplingStart {
                ids,
                way,
                requests: self.requests,
                prompt,
                born: self.born,
                after: None,
                messages: Vec::new(),
                setting,
            }
        };
        let first = self.prompt;
        let mut start = if let Some(after) = self.by_ids {
            let kept = after.messages.min(messages.len());
            SamplingStart { after: Some(Parent { messages: kept, ..after }), prompt: first, ..begin(ids, ContinuationKind::Ids) }
        } else if let Some((after, served)) = self.by_messages {
            match continued(&served, &messages[after.messages..], append) {
                Ok((kept, whole)) => SamplingStart {
                    after: Some(Parent { tokens: kept, ..after }),
                    prompt: first,
                    ..begin(whole, ContinuationKind::Messages)
                },
                Err(error) => begin(ids, ContinuationKind::Broken(format!("{error:#}"))),
            }
        } else {
            begin(ids, if self.known { ContinuationKind::Branch } else { ContinuationKind::New })
        };
        start.messages = messages;
        start
    }
}

/// Returns the number of served ids that stay, and all ids.
fn continued(
    served: &Trajectory,
    new: &[Value],
    append: impl FnOnce(&[Value], &[u32], &[Value]) -> Result<Appended>,
) -> Result<(usize, Vec<u32>)> {
    let mut whole = served.tokens.all();
    let appended = append(&served.messages, &whole, new)?;
    let kept = whole.len().saturating_sub(appended.remove).max(served.tokens.prompt.len());
    whole.truncate(kept);
    whole.extend(appended.ids);
    Ok((kept, whole))
}

#[cfg(test)]
mod tests {
    use anyhow::bail;
    use serde_json::json;

    use super::*;
    use burnish_rollout::Finish;

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn assistant(text: &str) -> Value {
        json!({"role": "assistant", "content": text})
    }

    fn response(ids: &[u32]) -> Response {
        let log_probs: Vec<f32> = ids.iter().map(|id| -(*id as f32)).collect();
        Response { ids: ids.to_vec(), rollout_log_probs: log_probs.clone(), log_probs, finish: Finish::Stop }
    }

    fn prompt(ids: &[u32], messages: &[Value]) -> PromptTokens {
        PromptTokens { ids: ids.to_vec(), messages: messages.to_vec() }
    }

    /// Sends a request and samples this turn. New messages become the ids 90, 91, … and remove the last id.
    fn ask(all: &mut ServedConversations, prompt: PromptTokens, turn: &[u32], reply: &str) -> SamplingStart {
        let append = |history: &[Value], _: &[u32], new: &[Value]| {
            if new[0]["content"] == "?" {
                bail!("no");
            }
            assert_eq!(history.last().unwrap()["role"], "assistant");
            Ok(Appended { remove: 1, ids: (90..90 + new.len() as u32).collect() })
        };
        let start = all.find("k", &prompt, 0).start(prompt, 0, append);
        all.served("k", &start, Some(assistant(reply)), response(turn));
        start
    }

    #[test]
    fn what_was_sampled_stays() {
        let mut all = ServedConversations::new(10_000);
        assert_eq!(ask(&mut all, prompt(&[1, 2], &[user("a")]), &[3, 4], "b").way, ContinuationKind::New);
        // The same ids, from a template that repeats sampled text exactly.
        let second = ask(&mut all, prompt(&[1, 2, 3, 4, 5], &[user("a"), assistant("b"), user("c")]), &[6], "d");
        assert_eq!((second.way, second.requests), (ContinuationKind::Ids, 1));
        // Other ids for the same messages: sampled ids stay, except those that the template removes.
        let messages = [user("a"), assistant("b"), user("c"), assistant(" d "), user("e"), user("f")];
        let third = ask(&mut all, prompt(&[1, 2, 77, 5, 6, 7], &messages), &[8], "g");
        assert_eq!((third.way, third.prompt, &third.ids[..]), (ContinuationKind::Messages, 2, &[1, 2, 3, 4, 5, 90, 91][..]));
        let whole: Vec<Trajectory> = all.trajectories("k").unwrap().iter().collect();
        let [one] = &whole[..] else { panic!("{whole:?}") };
        assert_eq!(one.tokens.prompt, [1, 2]);
        assert_eq!(one.tokens.ids, [3, 4, 5, 90, 91, 8]);
        assert_eq!(one.tokens.sampled, [true, true, false, false, false, true]);
        assert_eq!(one.tokens.log_probs, [-3.0, -4.0, 0.0, 0.0, 0.0, -8.0]);
        assert_eq!(one.messages.len(), 7);
        assert_eq!(one.messages[6], assistant("g"));
        // The second turn again: a branch after the first turn.
        let again = ask(&mut all, prompt(&[1, 2, 3, 4, 5], &[user("a"), assistant("b"), user("c")]), &[66], "D");
        assert_eq!(again.way, ContinuationKind::Ids);
        // Another conversation, and one that cannot be continued.
        assert_eq!(ask(&mut all, prompt(&[5], &[user("x")]), &[6], "y").way, ContinuationKind::Branch);
        let broken = ask(&mut all, prompt(&[5, 5], &[user("x"), assistant("y"), user("?")]), &[6], "z");
        assert_eq!(broken.way, ContinuationKind::Broken("no".to_owned()));
        let taken = all.take("k").unwrap();
        let mut written = Vec::new();
        taken.write("k", &mut written).unwrap();
        let whole: Vec<Trajectory> = taken.iter().collect();
        assert_eq!(
            serde_json::from_slice::<Value>(&written).unwrap(),
            json!({"conversation": "k", "trajectories": serde_json::to_value(&whole).unwrap()})
        );
        let ids: Vec<Vec<u32>> = whole.iter().map(|one| one.tokens.all()).collect();
        assert_eq!(ids, [vec![1, 2, 3, 4, 5, 90, 91, 8], vec![1, 2, 3, 4, 5, 66], vec![5, 6], vec![5, 5, 6]]);
        assert!(all.is_empty() && all.size == 0 && all.order.is_empty());
    }

    #[test]
    fn other_tools_are_another_conversation() {
        let mut all = ServedConversations::new(10_000);
        ask(&mut all, prompt(&[1], &[user("a")]), &[2], "b");
        let next = prompt(&[7], &[user("a"), assistant("b"), user("c")]);
        let found = all.find("k", &next, 1);
        assert_eq!(found.start(next, 1, |_, _, _| bail!("not asked")).way, ContinuationKind::Branch);
    }

    /// The record takes at most its limit, for every part of a request that is large, and forgets the oldest conversations first.
    #[test]
    fn the_oldest_are_forgotten() {
        const MAX: usize = 10_000;
        let mut all = ServedConversations::new(MAX);
        let mut serve = |key: &str, ids: usize, content: &str, response: &Response| {
            let prompt = prompt(&vec![1; ids], &[user(content)]);
            let start = all.find(key, &prompt, 0).start(prompt, 0, |_, _, _| bail!("not asked"));
            all.served(key, &start, None, response.clone());
            let is_right = all.size == all.trees.values().map(|kept| kept.size).sum::<usize>() && all.size <= MAX;
            assert!(is_right && all.order.len() == all.len(), "{key:.20}: {} {}", all.size, all.len());
            (start, all.len())
        };
        let few = response(&[3, 4]);
        let (first, count) = serve("a", 2, "", &few);
        assert_eq!(count, 1);
        // What is large: a key, messages, a prompt, a response, the number of turns or of conversations.
        for i in 0..100 {
            let key = format!("{i}");
            let counts = [
                serve(&format!("{i}{}", "k".repeat(500)), 2, "", &few).1,
                serve(&key, 2, &"x".repeat(20_000), &few).1,
                serve(&key, 4_000, "", &few).1,
                serve(&key, 2, "", &response(&vec![5; 4_000])).1,
                serve("turns", 2, &key, &few).1,
            ];
            assert!(counts.iter().all(|count| (1..100).contains(count)), "{counts:?}");
        }
        for key in 0..2000 {
            all.find(&format!("left {key}"), &prompt(&[1], &[]), 0);
        }
        assert!(all.size < MAX + 100 && all.len() < 1000, "requests without a response are counted: {}", all.size);
        // A turn that began before its conversation was dropped becomes a separate conversation.
        all.served("a", &first, None, few.clone());
        assert_eq!(all.trajectories("a").unwrap().iter().count(), 1);
        // A conversation that is too large alone is forgotten, too.
        let large = prompt(&vec![1; MAX], &[]);
        let start = all.find("large", &large, 0).start(large, 0, |_, _, _| bail!("not asked"));
        all.served("large", &start, None, few);
        assert!(all.is_empty() && all.size == 0);
    }
}
