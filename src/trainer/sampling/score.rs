//! Phase `reward`: one score per trajectory, from the reward functions and the reward model. A score that fails is an error,
//! never a 0; if every function abstains, the trajectory has no score.

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::Result;

use super::reward_model::CUT;
use super::sample::Sampled;
use super::scoring::{DecodedResponse, input};
use super::side::SamplingSide;
use crate::job::{Context, NothingUpdated};
use crate::trainer::batch::nonfinite::check_scores;
use crate::trainer::batch::{Batch, turn_rewards};
use burnish_data::Prompt;
use burnish_reward::{Conversation, PendingScores, ResponseScore, ScoreInput};
use burnish_reward_model::model::{Judged, ModelScores, RewardModel};
use burnish_rollout::Finish;
use burnish_util::excerpt::excerpt;
use burnish_util::interrupt::Interrupted;

impl SamplingSide {
    /// Scores every response, and applies the shaping that depends on a single response: penalties for its length and for a
    /// missing end.
    ///
    /// # Errors
    /// [`NothingUpdated`], with the first response that could not be scored.
    pub(super) fn score(&self, sampled: Sampled, at: &Context) -> Result<Batch> {
        self.scored(sampled, at).map_err(|error| match error.is::<Interrupted>() {
            true => error,
            false => NothingUpdated(error).into(),
        })
    }

    fn scored(&self, Sampled { prompts, n, mut responses, .. }: Sampled, at: &Context) -> Result<Batch> {
        // After an error, later responses may be unscored: the error ends the run.
        let pending: Vec<PendingScores> = responses.iter_mut().map_while(|response| response.pending.take()).collect();
        let prompt = |i: usize| prompts[i / n].as_ref();
        let called = responses.iter().take(pending.len()).enumerate();
        let judged_prompts: Vec<Cow<Prompt>> =
            called.clone().map(|(i, response)| prompt_of_conversation(prompt(i), response)).collect();
        let judged = judged_prompts.iter().zip(called.clone()).map(|(prompt, (_, response))| Judged {
            prompt,
            response: &response.response.ids,
            conversation: response.episode.as_ref().map(|episode| episode as &dyn Conversation),
        });
        let judged: Vec<Judged> = judged.collect();
        let failed = self.rewards.fails() && pending.iter().any(PendingScores::failed);
        let judge = self.reward_model.as_ref().filter(|_| !failed).map(|model| self.judge(model, &judged));
        let verdict = judge.transpose()?;
        let inputs = called.map(|(i, response)| ScoreInput {
            model_score: verdict.as_ref().map(|verdict| verdict.scores[i]),
            ..input(prompt(i), response, at.step)
        });
        let inputs: Vec<ScoreInput> = inputs.collect();
        // A function may fail on one machine alone.
        let (ranks, rewards, step) = (&self.ranks, &self.rewards, at.step);
        let rank_of = |i: usize| match ranks.is_alone() {
            true => String::new(),
            false => format!("rank {}: ", ranks.owner(i / n, prompts.len())),
        };
        let place = |i: usize| {
            let (row, text) = (prompt(i).index, excerpt(&responses[i].text));
            format!("{}step {step}: scoring the response to row {row} ({text})", rank_of(i))
        };
        // Functions that see the whole batch are called once, on rank 0.
        let mut scores = ranks.first(|| ranks.at_work(|| rewards.complete(&inputs, pending, place)))?;
        for (score, response) in scores.iter_mut().zip(&responses) {
            turn_rewards::join(self.turn_rewards, score, response.episode.as_ref());
        }
        self.shape(&mut scores, &responses);
        if let Some(cut) = verdict.and_then(|verdict| verdict.cut) {
            scores.iter_mut().zip(cut).for_each(|(score, cut)| score.report(CUT, f64::from(u8::from(cut))));
        }
        let (mut of_policy, mut texts, mut episodes) = (Vec::new(), Vec::new(), Vec::new());
        for DecodedResponse { response, text, episode, .. } in responses {
            of_policy.push(response);
            texts.push(text);
            episodes.push(episode.map(Arc::new));
        }
        let mut batch = Batch::new(prompts, n, of_policy, texts, scores, episodes);
        check_scores(&mut batch, at)?;
        Ok(batch)
    }

    /// Returns the reward model's scores; each rank computes its share.
    fn judge(&self, model: &RewardModel, judged: &[Judged]) -> Result<ModelScores> {
        let ModelScores { scores, cut } = self.ranks.agree(model.judge(&judged[self.ranks.share(judged.len())]))?;
        Ok(ModelScores { scores: self.ranks.concat_f32s(scores), cut: cut.map(|cut| self.ranks.concat(cut)) })
    }

    /// Shapes each score. The values of the shaping are logged before the values of the reward functions.
    fn shape(&self, scores: &mut [ResponseScore], responses: &[DecodedResponse]) {
        let mut shaped: Vec<Option<f64>> = scores.iter().map(|score| score.score.map(f64::from)).collect();
        let lengths: Vec<usize> = responses.iter().map(|response| response.response.ids.len()).collect();
        let ended: Vec<bool> = responses.iter().map(|response| response.response.finish != Finish::Length).collect();
        let numbers = self.shaping.apply(&mut shaped, &lengths, &ended);
        for (i, (score, shaped)) in scores.iter_mut().zip(shaped).enumerate() {
            // + 0 turns −0 into 0.
            score.score = shaped.map(|shaped| shaped as f32 + 0.0);
            let own = numbers.iter().filter_map(|(name, values)| Some((name.clone(), values[i]?))).collect();
            let reported = std::mem::replace(&mut score.extras, own);
            score.report_all(reported);
        }
    }
}

/// Returns the prompt that a reward model reads, with the ids of the conversation made from it.
fn prompt_of_conversation<'a>(prompt: &'a Prompt, response: &DecodedResponse) -> Cow<'a, Prompt> {
    match response.episode.as_ref().filter(|episode| episode.prompt != prompt.ids) {
        Some(episode) => Cow::Owned(Prompt { ids: episode.prompt.clone(), ..prompt.clone() }),
        None => Cow::Borrowed(prompt),
    }
}
