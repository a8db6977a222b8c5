//! The batch of one step: trajectories and their columns.

use std::ops::{Index, IndexMut, Range};
use std::sync::Arc;

use super::columns::{BatchColumns, Column};
use burnish_agent::Episode;
use burnish_algorithm::reward_shaping::ResponseSize;
use burnish_data::Prompt;
use burnish_model::Sequence;
use burnish_reward::ResponseScore;
use burnish_rollout::{Finish, Response};
use serde_json::Value;

/// Trajectories in the order p0 s0, p0 s1, …, p1 s0, …; `batch[Column::…]` is one `f32` per response token, or per trajectory.
pub struct Batch {
    pub prompts: Vec<Arc<Prompt>>,
    /// Index in `prompts` of each trajectory's prompt: the groups of group estimators.
    pub group: Vec<usize>,
    pub responses: Vec<Response>,
    /// Decoded responses, without special tokens.
    pub texts: Vec<String>,
    /// Score of each response, with the values that its reward functions report. `None` inside if all functions abstained, or the
    /// trajectory is excluded.
    pub scores: Vec<ResponseScore>,
    /// Conversation of each response; `None` for a response of one turn.
    pub episodes: Vec<Option<Arc<Episode>>>,
    /// Prompts of the teacher that are made of the batch; empty, or one for each trajectory: `None` for the policy's own.
    pub teacher_prompts: Vec<Option<Arc<Vec<u32>>>>,
    columns: BatchColumns,
}

impl Batch {
    /// Returns the scored responses of the policy, `n` per prompt; trains on all tokens that the policy sampled. The response of
    /// an episode has all of its ids ([`Episode::response`]).
    pub fn new(
        prompts: Vec<Arc<Prompt>>,
        n: usize,
        responses: Vec<Response>,
        texts: Vec<String>,
        scores: Vec<ResponseScore>,
        episodes: Vec<Option<Arc<Episode>>>,
    ) -> Self {
        let mut columns = BatchColumns::new(responses.iter().map(|response| response.ids.len()));
        columns.set(Column::Mask, responses.iter().zip(&episodes).flat_map(|(r, e)| sampled(r, e.as_deref())).collect());
        columns.set(Column::RolloutLogProb, responses.iter().flat_map(|r| r.rollout_log_probs.iter().copied()).collect());
        columns.set(Column::SampledLogProb, responses.iter().flat_map(|r| r.log_probs.iter().copied()).collect());
        let group = (0..responses.len()).map(|i| i / n).collect();
        Self { prompts, group, responses, texts, scores, episodes, teacher_prompts: Vec::new(), columns }
    }

    /// Returns trajectories of this batch in the given order, with repetitions, and their prompts.
    pub fn select(&self, trajectories: &[usize]) -> Self {
        fn each<T: Clone>(of: &[T], trajectories: &[usize]) -> Vec<T> {
            trajectories.iter().map(|&i| of[i].clone()).collect()
        }
        let mut prompts = Vec::new();
        let mut place = vec![None; self.prompts.len()];
        let group = trajectories.iter().map(|&i| self.group[i]).map(|of| {
            *place[of].get_or_insert_with(|| {
                prompts.push(self.prompts[of].clone());
                prompts.len() - 1
            })
        });
        Self {
            group: group.collect(),
            prompts,
            responses: each(&self.responses, trajectories),
            texts: each(&self.texts, trajectories),
            scores: each(&self.scores, trajectories),
            episodes: each(&self.episodes, trajectories),
            teacher_prompts: match self.teacher_prompts.is_empty() {
                true => Vec::new(),
                false => each(&self.teacher_prompts, trajectories),
            },
            columns: self.columns.select(trajectories),
        }
    }

    /// Appends the trajectories of another batch.
    ///
    /// # Panics
    /// If the two have different columns.
    pub fn append(&mut self, other: Self) {
        // Lists all fields, so that a new field is not forgotten here.
        let Self { prompts, group, responses, texts, scores, episodes, teacher_prompts, columns } = other;
        self.group.extend(group.iter().map(|group| group + self.prompts.len()));
        self.prompts.extend(prompts);
        self.responses.extend(responses);
        self.texts.extend(texts);
        self.scores.extend(scores);
        self.episodes.extend(episodes);
        self.teacher_prompts.extend(teacher_prompts);
        self.columns.append(columns);
    }

    /// Boundaries of trajectories in a token column, `[trajectories + 1]`.
    pub fn offsets(&self) -> &[usize] {
        self.columns.offsets()
    }

    /// Columns written so far.
    pub fn columns(&self) -> &BatchColumns {
        &self.columns
    }

    /// Returns a column, if it has been written; see [`Column`].
    pub fn get(&self, column: Column) -> Option<&[f32]> {
        self.columns.get(column)
    }

    /// Writes a column.
    ///
    /// # Panics
    /// If its length differs from its entry in [`Column`].
    pub fn set(&mut self, column: Column, values: Vec<f32>) {
        self.columns.set(column, values);
    }

    /// Returns the values of a trajectory in every column written so far.
    pub(crate) fn columns_of(&self, trajectory: usize) -> impl Iterator<Item = (Column, &[f32])> {
        self.columns.of_trajectory(trajectory)
    }

    /// Excludes a trajectory: it gets no score, and all its values become 0.
    pub(crate) fn leave_out(&mut self, trajectory: usize) {
        self.scores[trajectory].score = None;
        self.columns.clear(trajectory);
    }

    /// Number of trajectories.
    pub fn len(&self) -> usize {
        self.responses.len()
    }

    pub fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    pub fn prompt(&self, trajectory: usize) -> &Prompt {
        &self.prompts[self.group[trajectory]]
    }

    /// Token ids that the policy read first: the prompt's ids, or the ids of the conversation made from it.
    pub fn prompt_ids(&self, trajectory: usize) -> &[u32] {
        self.episodes[trajectory].as_deref().map_or(&self.prompt(trajectory).ids, |episode| &episode.prompt)
    }

    /// Returns for each response token true if the policy sampled it, trained or not.
    pub fn sampled(&self) -> Vec<bool> {
        let each = self.responses.iter().zip(&self.episodes);
        each.flat_map(|(response, episode)| sampled(response, episode.as_deref())).map(|mask| mask != 0.0).collect()
    }

    /// Returns true if some response is a conversation.
    pub(crate) fn has_episodes(&self) -> bool {
        self.episodes.iter().any(Option::is_some)
    }

    pub fn sequence(&self, trajectory: usize) -> Sequence<'_> {
        let sampled = self.episodes[trajectory].as_deref().map(|episode| &*episode.sampled);
        Sequence { prompt: self.prompt_ids(trajectory), response: &self.responses[trajectory].ids, sampled }
    }

    pub fn sequences(&self) -> Vec<Sequence<'_>> {
        (0..self.len()).map(|i| self.sequence(i)).collect()
    }

    /// Moves rewards behind the last trained token of a trajectory onto that token. If rollout correction rejects the last token,
    /// its score still counts.
    pub(crate) fn on_trained_tokens(&self, column: &[f32]) -> Vec<f32> {
        let mut moved = column.to_vec();
        for i in 0..self.len() {
            let tokens = self.tokens(i);
            if let Some(last) = tokens.clone().rev().find(|&t| self[Column::Mask][t] != 0.0) {
                let behind: f32 = moved[last + 1..tokens.end].iter().sum();
                moved[last] += behind;
                moved[last + 1..tokens.end].fill(0.0);
            }
        }
        moved
    }

    /// Range of a trajectory's response tokens.
    pub fn tokens(&self, trajectory: usize) -> Range<usize> {
        self.offsets()[trajectory]..self.offsets()[trajectory + 1]
    }

    /// Returns a token column with each trajectory's value at its last token; 0 for a missing value or an empty response.
    pub(crate) fn at_last_tokens(&self, values: &[Option<f64>]) -> Vec<f32> {
        let mut column = vec![0.0; self.columns.tokens()];
        for (i, value) in values.iter().enumerate() {
            if let (Some(value), Some(last)) = (value, self.tokens(i).last()) {
                column[last] = *value as f32;
            }
        }
        column
    }

    /// Returns the sum of a token column per trajectory.
    pub(crate) fn totals(&self, column: &[f32]) -> Vec<f64> {
        (0..self.len()).map(|i| column[self.tokens(i)].iter().map(|&x| x as f64).sum()).collect()
    }

    /// Excludes responses cut off by the length limit from the loss.
    pub(crate) fn mask_truncated(&mut self) {
        let truncated: Vec<usize> = (0..self.len()).filter(|&i| self.truncated(i)).collect();
        for i in truncated {
            let tokens = self.tokens(i);
            self[Column::Mask][tokens].fill(0.0);
        }
    }

    /// Returns true if a response was cut off by the length limit.
    pub fn truncated(&self, trajectory: usize) -> bool {
        self.responses[trajectory].finish == Finish::Length
    }

    /// Returns the role of a trajectory: `role` of the row's extra_info, else its data source.
    pub(crate) fn role(&self, trajectory: usize) -> &str {
        let prompt = self.prompt(trajectory);
        prompt.extra_info.get("role").and_then(Value::as_str).unwrap_or(&prompt.data_source)
    }

    /// Returns the tokens and turns of each trajectory.
    pub(crate) fn sizes(&self) -> Vec<ResponseSize> {
        let sampled = self.sampled();
        let size = |i: usize| {
            let output_tokens = sampled[self.tokens(i)].iter().filter(|&&sampled| sampled).count();
            let turns = self.episodes[i].as_deref().map_or(1, |episode| episode.assistant_turns);
            ResponseSize { output_tokens, input_tokens: self.sequence(i).len() - output_tokens, turns }
        };
        (0..self.len()).map(size).collect()
    }

    /// Returns the mask of the chosen trajectories; 0 for all others.
    pub fn mask_of(&self, counted: &[bool]) -> Vec<f32> {
        let mut mask = self[Column::Mask].to_vec();
        for i in (0..self.len()).filter(|&i| !counted[i]) {
            mask[self.tokens(i)].fill(0.0);
        }
        mask
    }

    /// Prompt and response tokens of all trajectories.
    pub fn total_tokens(&self) -> usize {
        (0..self.len()).map(|i| self.sequence(i).len()).sum()
    }
}

/// Returns 1 for each token of a response that the policy sampled, 0 for the others.
fn sampled<'a>(response: &'a Response, episode: Option<&'a Episode>) -> impl Iterator<Item = f32> + 'a {
    let is_sampled = move |t: usize| episode.is_none_or(|episode| episode.sampled.get(t).copied().unwrap_or(false));
    (0..response.ids.len()).map(move |t| f32::from(u8::from(is_sampled(t))))
}

impl Index<Column> for Batch {
    type Output = [f32];

    /// Returns a column, `[tokens]` or `[trajectories]`; see [`Column`].
    ///
    /// # Panics
    /// If it has not been written.
    fn index(&self, column: Column) -> &[f32] {
        &self.columns[column]
    }
}

impl IndexMut<Column> for Batch {
    /// Panics like [`Self::index`].
    fn index_mut(&mut self, column: Column) -> &mut [f32] {
        &mut self.columns[column]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use serde_json::{Map, Value, json};

    use super::*;
    use burnish_agent::{CallRecord, EndReason};

    /// Two responses of two tokens to one prompt, the second cut off.
    pub(crate) fn two_responses() -> Batch {
        let prompt = Prompt {
            ids: vec![1],
            messages: Value::Null,
            text: String::new(),
            data_source: String::new(),
            ground_truth: Value::Null,
            extra_info: Value::Null,
            agent: String::new(),
            conversational: true,
            columns: Default::default(),
            index: 0,
            place: (Path::new("data.jsonl").into(), 0),
        };
        let response =
            |finish| Response { ids: vec![5, 2], log_probs: vec![-1.0, -2.0], rollout_log_probs: vec![-0.5, -1.5], finish };
        let responses = vec![response(Finish::Stop), response(Finish::Length)];
        let scores = vec![ResponseScore { score: Some(0.0), ..Default::default() }; 2];
        Batch::new(vec![Arc::new(prompt)], 2, responses, vec![String::new(); 2], scores, vec![None; 2])
    }

    /// A conversation of two turns with a tool between them; `sampled` marks the sampled tokens.
    pub(crate) fn episode(sampled: &[bool]) -> Episode {
        let count = sampled.len();
        let of_sampled = |number: f32| sampled.iter().map(|&sampled| if sampled { number } else { 0.0 }).collect();
        Episode {
            prompt: vec![1, 9],
            ids: (0..count as u32).collect(),
            sampled: sampled.to_vec(),
            log_probs: of_sampled(-1.0),
            rollout_log_probs: of_sampled(-0.5),
            finish: Finish::Stop,
            end: EndReason::Answer,
            messages: [("user", "2*3"), ("assistant", ""), ("tool", "6"), ("assistant", "It is 6.")]
                .map(|(role, content)| json!({"role": role, "content": content}))
                .to_vec(),
            prompt_messages: 1,
            tools: vec![],
            tokens_only: false,
            assistant_turns: 2,
            user_turns: 1,
            calls: vec![CallRecord { name: "calculator".into(), failure: None, cut: false, seconds: 0.5 }],
            rewards: vec![],
            score: None,
            extra: Map::new(),
            unreadable_calls: 0,
            dropped_calls: 0,
            waited: 0.5,
        }
    }

    /// Conversations with these masks, all to one prompt, each with the score 0.
    pub(crate) fn conversations(episodes: Vec<Episode>) -> Batch {
        let prompts = two_responses().prompts;
        let count = episodes.len();
        let scores = vec![ResponseScore { score: Some(0.0), ..Default::default() }; count];
        let responses = episodes.iter().map(Episode::response).collect();
        let episodes = episodes.into_iter().map(|episode| Some(Arc::new(episode))).collect();
        Batch::new(prompts, count, responses, vec![String::new(); count], scores, episodes)
    }

    #[test]
    fn what_tools_said_is_not_trained() {
        let mut batch = conversations(vec![episode(&[true, false, true]), episode(&[true])]);
        assert_eq!(batch[Column::Mask], [1.0, 0.0, 1.0, 1.0]);
        assert_eq!((batch.prompt_ids(0), batch.sequence(0).len()), (&[1, 9][..], 5));
        batch.append(two_responses());
        let batch = batch.select(&[3, 0]);
        assert_eq!((&batch[Column::Mask], batch.prompt_ids(0)), (&[1.0, 1.0, 1.0, 0.0, 1.0][..], &[1][..]));
        assert_eq!((batch.sampled(), batch.has_episodes()), (vec![true, true, true, false, true], true));
    }

    #[test]
    fn the_score_of_a_rejected_last_token_stays_with_its_trajectory() {
        let mut batch = two_responses();
        batch.set(Column::Mask, vec![1.0, 0.0, 0.0, 0.0]);
        // A trajectory without a trained token loses the reward.
        assert_eq!(batch.on_trained_tokens(&[0.5, 1.0, 0.25, 2.0]), [1.5, 0.0, 0.25, 2.0]);
    }

    #[test]
    fn selected_and_appended_batches_keep_their_trajectories() {
        let mut batch = two_responses();
        batch.scores[0].score = Some(1.0);
        batch.scores[1].score = None;
        batch.scores[0].report("acc", 1.0);
        let mut both = batch.select(&[1]);
        batch.scores[0].extras.clear();
        batch.scores[0].report("other", 3.0);
        both.append(batch);
        assert_eq!((both.group.as_slice(), both.prompts.len(), both.offsets()), (&[0, 1, 1][..], 2, &[0, 2, 4, 6][..]));
        assert_eq!(both.trajectory_scores(), [None, Some(1.0), None]);
        assert_eq!(both.number("other"), Some(vec![None, Some(3.0), None]));
        assert_eq!(both.number("acc"), Some(vec![None, Some(1.0), None]), "the score stands for an acc that nothing reports");
        assert_eq!(both.number("accuracy"), None);
    }
}
