//! The part of an update of the actor that `trainer replay` shows: every token of a mini-batch, and the gradient of each trajectory.

use anyhow::Result;

use super::side::LearningSide;
use super::totals::Totals;
use super::update::ActorMiniBatch;
use crate::job::probe::{SampleGradient, StepProbe, TokenColumns};
use crate::trainer::batch::columns::{BatchColumns, Column};
use burnish_algorithm::loss::PolicyObjective;
use burnish_model::{Gradients, TokenStats};
use burnish_optim::GradientSum;

impl LearningSide {
    /// Passes over each trajectory of a mini-batch alone, with its weights in the mini-batch, before the update. `gradients`: the
    /// gradients of the mini-batch.
    ///
    /// # Errors
    /// If the user's loss fails.
    pub(super) fn look(
        &self,
        probe: &StepProbe,
        update: usize,
        mini: &mut ActorMiniBatch,
        gradients: &GradientSum,
    ) -> Result<()> {
        let models = self.models();
        for (j, &trajectory) in mini.trajectories.iter().enumerate() {
            let (mut own, mut columns) = (Gradients::default(), TokenColumns::default());
            let mut seen = |of: &BatchColumns, stats: &TokenStats| columns = self.token_columns(update, of, stats);
            self.accumulate_slice(&models, (mini, &[j]), true, &mut own, &mut Totals::default(), &mut seen)?;
            let gradient = SampleGradient::measure(update, &own, gradients.whole());
            probe.look(|step| {
                let Some(sample) = step.samples.get_mut(trajectory) else { return };
                sample.gradients.push(gradient);
                sample.texts[0].updates.push(columns);
            });
        }
        Ok(())
    }

    /// Returns the values of the tokens of a trajectory under the current policy.
    fn token_columns(&self, update: usize, columns: &BatchColumns, stats: &TokenStats) -> TokenColumns {
        let ratio = |old: &[f32]| stats.log_prob.iter().zip(old).map(|(now, old)| (now - old).exp()).collect();
        let none = columns.get(Column::Advantages).is_none().then(|| vec![0.0; columns.tokens()]);
        let x = self.loss_columns(columns, stats, none.as_deref(), None);
        // The slope of the KL term does not count.
        let policy_alone = PolicyObjective { kl_loss: None, ..self.objective.clone() };
        let slopes = policy_alone.evaluate(&x).d_log_prob;
        let is_read = |t: usize| {
            let of_entropy = x.entropy_mask.is_none_or(|mask| mask[t] != 0.0);
            x.mask[t] != 0.0 && x.weights[t] != 0.0 && x.advantages[t] != 0.0 && of_entropy
        };
        let clipped = slopes.iter().enumerate().map(|(t, slope)| u8::from(*slope == 0.0 && is_read(t))).collect();
        TokenColumns {
            update,
            log_prob: stats.log_prob.clone(),
            entropy: stats.entropy.clone(),
            ratio: Some(x.old_log_prob.map_or_else(|| vec![1.0; stats.log_prob.len()], ratio)),
            clipped: (none.is_none() && self.custom_loss.is_none()).then_some(clipped),
        }
    }
}
