//! The objective of answers with a label.

use super::answer::Answer;
use super::dual::Dual;
use super::entry::{Form, Kl, PreferenceLoss, PreferenceRow};
use crate::options::Options;

/// A response and its label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelledAnswer {
    pub answer: Answer,
    pub desirable: bool,
}

impl LabelledAnswer {
    /// Returns log π − log π_ref.
    fn ratio(&self) -> f64 {
        self.answer.log_prob - self.answer.reference
    }
}

/// The loss of answers with a label.
#[derive(Clone)]
pub struct RowObjective {
    pub loss: &'static PreferenceLoss,
    pub options: Options,
}

/// The contribution of some responses to the loss of the mini-batch, and its gradient by log π of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvaluatedRows {
    pub loss: f64,
    pub grads: Vec<f64>,
}

impl RowObjective {
    fn form(&self) -> (fn(&PreferenceRow) -> Dual, Kl) {
        match self.loss.form {
            Form::Row { loss, kl } => (loss, kl),
            _ => panic!("{} is a loss of pairs", self.loss.name),
        }
    }

    /// Returns true if z is [`kl`] of answers to other prompts.
    pub fn reads_mismatched(&self) -> bool {
        self.form().1 == Kl::Mismatched
    }

    /// Returns true if [`evaluate`](Self::evaluate) needs the whole mini-batch.
    pub fn needs_batch(&self) -> bool {
        self.form().1 == Kl::OtherLabel
    }

    /// Returns the contribution of these responses to the loss of a mini-batch of `whole` answers; `mismatched` is z if it is
    /// [`kl`] of answers to other prompts. Parts add up for every cut of the mini-batch.
    ///
    /// # Panics
    /// If the loss is one of pairs, or if it [needs the batch](Self::needs_batch) and this is not all of it.
    pub fn evaluate(&self, rows: &[LabelledAnswer], mismatched: f64, whole: usize) -> EvaluatedRows {
        let (formula, kind) = self.form();
        assert!(kind != Kl::OtherLabel || rows.len() == whole, "this loss needs the whole mini-batch");
        let share = 1.0 / whole as f64;
        let count = |desirable: bool| rows.iter().filter(|row| row.desirable == desirable).count();
        let mean = |desirable: bool| kl(rows.iter().filter(|row| row.desirable == desirable).map(|row| row.ratio()));
        // The z of undesirable and of desirable responses, each by its own label.
        let (z, others) = ([mean(true), mean(false)], [count(true), count(false)]);
        let mut all = EvaluatedRows { loss: 0.0, grads: vec![0.0; rows.len()] };
        let mut by_kl = [0.0; 2];
        for (row, grad) in rows.iter().zip(&mut all.grads) {
            let own = usize::from(row.desirable);
            let kl = match kind {
                Kl::Without => Dual::default(),
                Kl::Mismatched => Dual::constant(mismatched),
                Kl::OtherLabel => Dual::input(z[own], 1),
            };
            let ratio = Dual::input(row.ratio(), 0);
            let loss = formula(&PreferenceRow { ratio, kl, desirable: row.desirable, options: &self.options }) * share;
            all.loss += loss.value;
            *grad += loss.by[0];
            by_kl[own] += loss.by[1];
        }
        for (row, grad) in rows.iter().zip(&mut all.grads) {
            // This response counts among the responses of the opposite label.
            let other = usize::from(!row.desirable);
            if z[other] > 0.0 {
                *grad += by_kl[other] / others[other] as f64;
            }
        }
        all
    }

    /// Returns TRL's metrics of the responses of a whole mini-batch, without the metrics of a label that does not occur.
    pub fn metrics(&self, rows: &[LabelledAnswer], mismatched: f64) -> Vec<(&'static str, f64)> {
        let beta = self.options.number("beta");
        let mean = |desirable: bool, of: &dyn Fn(&LabelledAnswer) -> f64| {
            let numbers: Vec<f64> = rows.iter().filter(|row| row.desirable == desirable).map(of).collect();
            (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
        };
        let reward = |desirable| mean(desirable, &|row| beta * row.ratio());
        let log_prob = |desirable| mean(desirable, &|row| row.answer.log_prob);
        let (chosen, rejected) = (reward(true), reward(false));
        let margin = chosen.zip(rejected).map(|(chosen, rejected)| chosen - rejected);
        let all = [
            ("kl", (!self.needs_batch()).then_some(mismatched)),
            ("rewards/chosen", chosen),
            ("rewards/rejected", rejected),
            ("rewards/margins", margin),
            ("logps/chosen", log_prob(true)),
            ("logps/rejected", log_prob(false)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// KTO's z: the mean log-ratio of some answers, but at least 0.
pub fn kl(ratios: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = ratios.fold((0.0, 0usize), |(sum, count), ratio| (sum + ratio, count + 1));
    (sum / count.max(1) as f64).max(0.0)
}
