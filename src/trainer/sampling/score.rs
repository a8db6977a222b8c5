//! Phase `reward`: one score per trajectory, by the reward functions, of which a reward model may be one. A score that fails is an
//! error, never a 0; where every function abstains, the trajectory has none.

use anyhow::Result;

use super::generate::Sampled;
use super::reward_model::CUT;
use super::scoring::input;
use super::side::SamplingSide;
use crate::algorithm::advantage::Component;
use crate::job::{Context, NothingUpdated};
use crate::reward::{PendingScores, ScoreInput};
use crate::trainer::batch::{Batch, extra};
use crate::trainer::columns::Column;
use crate::trainer::nonfinite::check_scores;
use crate::util::excerpt::excerpt;
use crate::util::interrupt::Interrupted;

impl SamplingSide {
    /// Scores every trajectory and applies what depends on one response alone: penalties for length and for an end that did not
    /// come. The score stands at the last token of the response, as in verl's reward managers.
    ///
    /// # Errors
    /// [`NothingUpdated`], with the first response that could not be scored.
    pub(super) fn score(&self, sampled: Sampled, at: &Context) -> Result<Batch> {
        let Sampled { mut batch, raws, pending, .. } = sampled;
        self.score_batch(&mut batch, &raws, pending, at).map_err(|error| match error.is::<Interrupted>() {
            true => error,
            false => NothingUpdated(error).into(),
        })?;
        Ok(batch)
    }

    fn score_batch(&self, batch: &mut Batch, raws: &[String], pending: Vec<Option<PendingScores>>, at: &Context) -> Result<()> {
        // Behind a failure there may be responses that nobody was asked about: the failure ends the run.
        let pending: Vec<PendingScores> = pending.into_iter().map_while(|pending| pending).collect();
        let pairs: Vec<_> = (0..pending.len()).map(|i| (batch.prompt(i), batch.responses[i].ids.as_slice())).collect();
        let failed = self.rewards.fails() && pending.iter().any(PendingScores::failed);
        let judge = self.reward_model.as_ref().filter(|_| !failed).map(|model| model.judge(&pairs));
        let verdict = judge.transpose()?;
        let inputs = |i: usize| ScoreInput {
            model_score: verdict.as_ref().map(|verdict| verdict.scores[i]),
            ..input(batch.prompt(i), &batch.responses[i], [&batch.texts[i], &raws[i]], at.step)
        };
        let inputs: Vec<ScoreInput> = (0..pending.len()).map(inputs).collect();
        let place = |i: usize| {
            let (row, text) = (batch.prompt(i).index, excerpt(&batch.texts[i]));
            format!("step {}: scoring the response to row {row} ({text})", at.step)
        };
        let results = self.rewards.complete(&inputs, pending, place)?;
        let mut scores: Vec<Option<f64>> = results.iter().map(|r| r.score.map(f64::from)).collect();
        let lengths: Vec<usize> = batch.responses.iter().map(|response| response.ids.len()).collect();
        let ended: Vec<bool> = (0..batch.len()).map(|i| !batch.truncated(i)).collect();
        batch.extras = self.shaping.apply(&mut scores, &lengths, &ended);
        let weights = self.rewards.weights();
        batch.components =
            weights.map(|(name, weight)| Component { name: name.to_owned(), weight, values: Vec::new() }).collect();
        for (i, result) in results.into_iter().enumerate() {
            batch.preds[i] = result.pred;
            batch.notes[i] = result.notes;
            for (component, (_, value)) in batch.components.iter_mut().zip(result.components) {
                component.values.push(value);
            }
            for (name, value) in result.extras {
                extra(&mut batch.extras, &name, lengths.len())[i] = Some(value);
            }
        }
        if let Some(cut) = verdict.and_then(|verdict| verdict.cut) {
            batch.extras.push((CUT.to_owned(), cut.into_iter().map(|cut| Some(f64::from(u8::from(cut)))).collect()));
        }
        check_scores(batch, &mut scores, at)?;
        batch.scored = scores.iter().map(Option::is_some).collect();
        batch.set(Column::Scores, batch.at_last_tokens(&scores));
        Ok(())
    }
}
