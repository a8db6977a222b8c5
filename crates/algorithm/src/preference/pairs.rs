//! The objective of pairs: one loss or several with weights, and the terms that are added to any of them.

use super::answer::{Answer, AnswerGrads, AnsweredPair};
use super::dual::Dual;
use super::entry::{Form, Match, Pair, PreferenceLoss, Side};
use crate::options::Options;

/// The loss of pairs.
#[derive(Clone)]
pub struct PairObjective {
    /// The losses, their weights and their settings; at least one.
    pub losses: Vec<(&'static PreferenceLoss, f64, Options)>,
    /// WPO: a pair counts by how likely the policy is to write it.
    pub use_weighting: bool,
    /// The factor of the mean over chosen answers of −log π per token.
    pub nll_loss_coef: f64,
}

/// Counts of the whole mini-batch, which means divide by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairCounts {
    pub pairs: usize,
    /// Tokens of chosen answers.
    pub chosen_tokens: usize,
    /// Tokens of prompts, the first of each left out.
    pub prompt_tokens: usize,
    /// Tokens of gold answers.
    pub gold_tokens: usize,
}

impl PairCounts {
    /// Counts the pairs of a whole mini-batch.
    pub fn count(pairs: &[AnsweredPair]) -> Self {
        let sum = |of: fn(&Answer) -> usize| pairs.iter().map(|pair| of(&pair[0])).sum();
        Self { pairs: pairs.len(), chosen_tokens: sum(|a| a.tokens), prompt_tokens: sum(|a| a.prompt_tokens), gold_tokens: 0 }
    }
}

/// The contribution of some pairs to the loss of the mini-batch, and its gradient by the sums of each answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluated {
    pub loss: f64,
    pub grads: Vec<[AnswerGrads; 2]>,
}

impl PairObjective {
    /// Returns true if some loss compares with a reference.
    pub fn reads_reference(&self) -> bool {
        self.losses.iter().any(|(loss, ..)| loss.reference)
    }

    /// Returns true if some loss [compares responses](PreferenceLoss::compares). Otherwise the rewards of [`metrics`](Self::metrics) have
    /// no meaning.
    pub fn compares(&self) -> bool {
        self.losses.iter().any(|(loss, ..)| loss.compares())
    }

    /// Returns true if some loss reads the log-probabilities of prompts.
    pub fn reads_prompts(&self) -> bool {
        self.losses.iter().any(|(loss, ..)| loss.nll.is_some_and(|nll| nll.prompts))
    }

    /// Returns true if [`evaluate`](Self::evaluate) needs the whole mini-batch.
    pub fn needs_batch(&self) -> bool {
        self.losses.iter().any(|(loss, ..)| match loss.form {
            Form::Matched(..) => true,
            Form::Nll => self.use_weighting,
            Form::Pair(_) | Form::Row { .. } => false,
        })
    }

    /// Returns the contribution of these pairs to the loss of a mini-batch with these counts. Parts add up for every cut of the mini-batch.
    ///
    /// # Panics
    /// If a loss is one of answers with a label, or if it [needs the batch](Self::needs_batch) and this is not all of it.
    pub fn evaluate(&self, pairs: &[AnsweredPair], whole: &PairCounts) -> Evaluated {
        assert!(!self.needs_batch() || pairs.len() == whole.pairs, "this loss needs the whole mini-batch");
        let mut all = Evaluated { loss: 0.0, grads: vec![[AnswerGrads::default(); 2]; pairs.len()] };
        let share = 1.0 / whole.pairs as f64;
        let weights: Vec<f64> = pairs.iter().map(|pair| self.weight(pair)).collect();
        for (loss, factor, options) in &self.losses {
            match loss.form {
                Form::Pair(formula) => {
                    for (i, weight) in weights.iter().enumerate() {
                        let own = Match { policy: [i; 2], reference: [i; 2] };
                        all.add(own, formula(&own.pair(pairs, options)) * (factor * weight * share));
                    }
                }
                Form::Matched(matching, formula) => {
                    for matched in matching(pairs) {
                        all.add(matched, formula(&matched.pair(pairs, options)) * (factor * share));
                    }
                }
                Form::Nll => {}
                Form::Row { .. } => panic!("{} is a loss of answers with a label", loss.name),
            }
            if let Some(nll) = loss.nll {
                // Parts of a mini-batch never have weights here, see `needs_batch`.
                let weight = if self.use_weighting { weights.iter().sum::<f64>() * share } else { 1.0 };
                let tokens = whole.chosen_tokens + if nll.prompts { whole.prompt_tokens } else { 0 };
                let each = factor * weight * (nll.coefficient)(options) / tokens.max(1) as f64;
                for (pair, grads) in pairs.iter().zip(&mut all.grads) {
                    all.loss -= each * (pair[0].plain + if nll.prompts { pair[0].prompt } else { 0.0 });
                    grads[0].plain -= each;
                    grads[0].prompt -= if nll.prompts { each } else { 0.0 };
                }
            }
        }
        for (pair, grads) in pairs.iter().zip(&mut all.grads) {
            let each = self.nll_loss_coef * share / pair[0].tokens as f64;
            all.loss -= each * pair[0].plain;
            grads[0].plain -= each;
        }
        all
    }

    /// Returns the factor of the likelihood of gold answers, added up over the losses; 0 if no loss reads gold answers.
    pub fn gold_coefficient(&self) -> f64 {
        self.losses.iter().filter_map(|(loss, weight, options)| Some(weight * loss.gold?(options))).sum()
    }

    /// Returns the contribution of these gold answers to the loss of a mini-batch with these counts, and their gradients.
    pub fn evaluate_gold(&self, golds: &[Answer], whole: &PairCounts) -> (f64, Vec<AnswerGrads>) {
        let each = self.gold_coefficient() / whole.gold_tokens.max(1) as f64;
        let loss = golds.iter().map(|gold| -each * gold.plain).sum();
        (loss, vec![AnswerGrads { plain: -each, ..AnswerGrads::default() }; golds.len()])
    }

    /// WPO's weight of a pair, which has no gradient.
    fn weight(&self, pair: &AnsweredPair) -> f64 {
        if self.use_weighting { (pair[0].typicality + pair[1].typicality).exp() } else { 1.0 }
    }

    /// Returns TRL's metrics of the pairs of a whole mini-batch; the first loss that compares responses defines the reward.
    pub fn metrics(&self, pairs: &[AnsweredPair]) -> Vec<(&'static str, f64)> {
        let mean = |options: &Options, of: &dyn Fn(&Pair) -> f64| {
            let numbers = (0..pairs.len()).map(|i| of(&Match { policy: [i; 2], reference: [i; 2] }.pair(pairs, options)));
            numbers.sum::<f64>() / pairs.len() as f64
        };
        let (first, _, options) = self.losses.iter().find(|(loss, ..)| loss.compares()).unwrap_or(&self.losses[0]);
        let beta = options.number("beta");
        let reward = |side: &Side| beta * (first.reward)(side, options).value;
        let log_prob = |side: &Side| if first.per_token { side.mean().value } else { side.log_prob.value };
        let chosen = mean(options, &|pair| reward(&pair.chosen));
        let rejected = mean(options, &|pair| reward(&pair.rejected));
        let mut metrics = vec![
            ("rewards/chosen", chosen),
            ("rewards/rejected", rejected),
            ("rewards/accuracies", mean(options, &|pair| f64::from(reward(&pair.chosen) > reward(&pair.rejected)))),
            ("rewards/margins", chosen - rejected),
            ("logps/chosen", mean(options, &|pair| log_prob(&pair.chosen))),
            ("logps/rejected", mean(options, &|pair| log_prob(&pair.rejected))),
        ];
        metrics.extend(self.nll(pairs).map(|nll| ("nll_loss", nll)));
        for (loss, _, options) in &self.losses {
            metrics.extend(loss.reports.iter().map(|(name, of)| (*name, mean(options, of))));
        }
        metrics
    }

    /// The negative log-likelihood of chosen answers that is part of the loss, as a mean over tokens; 0 where its factor is 0.
    fn nll(&self, pairs: &[AnsweredPair]) -> Option<f64> {
        let terms = self.losses.iter().filter_map(|(loss, _, options)| Some((loss.nll?, options)));
        let (nll, options) = terms.into_iter().next()?;
        let (whole, chosen) = (PairCounts::count(pairs), pairs.iter().map(|pair| &pair[0]));
        let (sum, tokens) = match nll.prompts {
            true => (chosen.map(|a| a.plain + a.prompt).sum::<f64>(), whole.chosen_tokens + whole.prompt_tokens),
            false => (chosen.map(|a| a.plain).sum(), whole.chosen_tokens),
        };
        Some(if (nll.coefficient)(options) == 0.0 { 0.0 } else { -sum / tokens.max(1) as f64 })
    }
}

impl Match {
    /// The pair that this makes of some pairs; its inputs are the log-probabilities of the two answers.
    fn pair<'a>(&self, pairs: &[AnsweredPair], options: &'a Options) -> Pair<'a> {
        let side = |side: usize| {
            let answer = &pairs[self.policy[side]][side];
            Side {
                log_prob: Dual::input(answer.log_prob, side),
                reference: pairs[self.reference[side]][side].reference,
                tokens: answer.tokens as f64,
            }
        };
        Pair { chosen: side(0), rejected: side(1), options }
    }
}

impl Evaluated {
    /// Adds the loss of a pair.
    fn add(&mut self, matched: Match, loss: Dual) {
        self.loss += loss.value;
        for side in 0..2 {
            self.grads[matched.policy[side]][side].log_prob += loss.by[side];
        }
    }
}
