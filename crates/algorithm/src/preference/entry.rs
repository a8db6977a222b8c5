//! The entry of a preference loss: its formula and its description.

use super::answer::AnsweredPair;
use super::divergence;
use super::dual::Dual;
use crate::options::Options;
use burnish_registry::{Need, Refusal, When};

/// A row of [`PREFERENCE_LOSSES`](super::PREFERENCE_LOSSES).
pub struct PreferenceLoss {
    /// A value of `algorithm.loss_type`.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// The documentation of the entry, in the format of [`Estimator::doc`](crate::advantage::Estimator::doc).
    /// In formulas Δ⁺ and Δ⁻ are log π − log π_ref of the chosen and the rejected answer, Δ their difference, LS is log σ.
    pub doc: &'static str,
    pub form: Form,
    /// True if the loss compares with a reference.
    pub reference: bool,
    /// The value that, multiplied by β, is the reward of a response.
    pub reward: fn(&Side, &Options) -> Dual,
    /// True if log-probabilities are reported per token.
    pub per_token: bool,
    /// Further values of a pair whose means are reported.
    pub reports: &'static [Report],
    /// The mean negative log-likelihood that the loss adds.
    pub nll: Option<Nll>,
    /// The factor of the mean negative log-likelihood of gold answers, if the loss adds it.
    pub gold: Option<fn(&Options) -> f64>,
    /// The settings that the entry reads, as full keys.
    pub reads: &'static [&'static str],
    /// The settings that cannot be combined with the entry.
    pub refuses: &'static [Refusal],
    /// The values of `algorithm.label_smoothing` for which the formula is defined; `None` if it is not read.
    pub smoothing: Option<Smoothing>,
}

impl PreferenceLoss {
    /// Returns true for a loss of labelled responses, false for a loss of pairs.
    pub fn is_of_rows(&self) -> bool {
        matches!(self.form, Form::Row { .. })
    }

    /// Returns true if the loss compares a response with another one or with a reference; the likelihood of chosen responses does
    /// not.
    pub fn compares(&self) -> bool {
        !matches!(self.form, Form::Nll)
    }

    /// Returns what a run must provide for it.
    pub fn needs(&self) -> &'static [Need] {
        if self.reference { &[Need::Reference] } else { &[] }
    }
}

/// The name of a value of pairs, and the value.
pub(super) type Report = (&'static str, fn(&Pair) -> f64);

/// The shape of a loss.
pub enum Form {
    /// The mean over pairs of a formula.
    Pair(fn(&Pair) -> Dual),
    /// The mean over pairs that are matched within the whole mini-batch.
    Matched(fn(&[AnsweredPair]) -> Vec<Match>, fn(&Pair) -> Dual),
    /// The mean over answers with a label of a formula.
    Row { loss: fn(&PreferenceRow) -> Dual, kl: Kl },
    /// Nothing but the negative log-likelihood of [`PreferenceLoss::nll`].
    Nll,
}

/// A pair that a loss builds from two pairs: the index of the pair with the chosen side, then the index of the pair with the
/// rejected side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    pub policy: [usize; 2],
    pub reference: [usize; 2],
}

/// The source of KTO's z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kl {
    /// The loss has no z.
    Without,
    /// The mean log-ratio of answers to other prompts, without gradient.
    Mismatched,
    /// The mean log-ratio of the answers with the other label, with gradient.
    OtherLabel,
}

/// A negative log-likelihood: the mean over tokens of all chosen answers of the mini-batch.
#[derive(Clone, Copy)]
pub struct Nll {
    /// True if the tokens of the prompts count too.
    pub prompts: bool,
    /// Its factor in the loss.
    pub coefficient: fn(&Options) -> f64,
}

/// The bounds of `algorithm.label_smoothing`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smoothing {
    /// True if 0 is refused too.
    pub positive: bool,
    /// All values from here on are refused.
    pub below: f64,
}

/// One answer of a pair.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub log_prob: Dual,
    pub reference: f64,
    pub tokens: f64,
}

impl Side {
    /// Returns log π − log π_ref.
    pub fn ratio(&self) -> Dual {
        self.log_prob - self.reference
    }

    /// Returns log π per token.
    pub fn mean(&self) -> Dual {
        self.log_prob * (1.0 / self.tokens)
    }
}

/// A pair, and the settings that its loss reads.
pub struct Pair<'a> {
    pub chosen: Side,
    pub rejected: Side,
    pub options: &'a Options,
}

impl Pair<'_> {
    /// Returns β.
    pub fn beta(&self) -> f64 {
        self.number("beta")
    }

    /// Returns a setting.
    pub fn number(&self, name: &str) -> f64 {
        self.options.number(name)
    }

    /// Returns the scores of the chosen and the rejected answer: f′(Δ⁺), f′(Δ⁻), by the divergence of the settings.
    pub fn scores(&self) -> (Dual, Dual) {
        let f = |side: &Side| divergence::score(side.ratio(), self.options);
        (f(&self.chosen), f(&self.rejected))
    }

    /// Returns β·(f′(Δ⁺) − f′(Δ⁻)).
    pub fn margin(&self) -> Dual {
        let (chosen, rejected) = self.scores();
        (chosen - rejected) * self.beta()
    }

    /// Returns βΔ⁺ and βΔ⁻.
    pub fn rewards(&self) -> (Dual, Dual) {
        (self.chosen.ratio() * self.beta(), self.rejected.ratio() * self.beta())
    }
}

/// An answer with its label, and the settings that its loss reads.
pub struct PreferenceRow<'a> {
    /// Δ, the first input.
    pub ratio: Dual,
    /// z, the second input where it has a gradient.
    pub kl: Dual,
    pub desirable: bool,
    pub options: &'a Options,
}

/// The keys of the settings.
pub(crate) const BETA: &str = "algorithm.beta";
pub(crate) const LABEL_SMOOTHING: &str = "algorithm.label_smoothing";
pub(crate) const F_DIVERGENCE: &str = "algorithm.f_divergence_type";
pub(crate) const F_ALPHA: &str = "algorithm.f_alpha_divergence_coef";

const fn one_divergence(name: &'static str) -> Refusal {
    Refusal {
        key: F_DIVERGENCE,
        when: When::Is(name),
        why: "`NAME` is defined for reverse_kl alone",
        instead: "write KEY=reverse_kl, or a loss_type such as sigmoid",
    }
}

const NO_WEIGHTING: Refusal = Refusal {
    key: "algorithm.use_weighting",
    when: When::On,
    why: "the weights are of the pairs of losses with a reference, and `NAME` has none, or pairs that change",
    instead: "write KEY=false, or a loss_type such as sigmoid",
};

const NO_LENGTHS: Refusal = Refusal {
    key: "algorithm.ld_alpha",
    when: When::On,
    why: "`NAME` does not compare the sums of two answers with those of a reference",
    instead: "write KEY=null, or a loss_type such as sigmoid",
};

const NO_NLL: Refusal = Refusal {
    key: "algorithm.nll_loss_coef",
    when: When::On,
    why: "`NAME` learns from labelled responses, and none of them is chosen",
    instead: "write KEY=null, or a loss_type of pairs",
};

/// The refusals of a loss that supports one divergence only.
pub(crate) const REVERSE_KL_ALONE: &[Refusal] = &[FORWARD, JS, ALPHA];
/// The refusals of a loss whose pairs are matched in the batch.
pub(crate) const MATCHED: &[Refusal] = &[FORWARD, JS, ALPHA, NO_WEIGHTING];
/// The refusals of a loss without a reference.
pub(crate) const WITHOUT_REFERENCE: &[Refusal] = &[FORWARD, JS, ALPHA, NO_WEIGHTING, NO_LENGTHS];
/// The refusals of a loss of answers with a label.
pub(crate) const OF_ROWS: &[Refusal] = &[FORWARD, JS, ALPHA, NO_WEIGHTING, NO_LENGTHS, NO_NLL];

const FORWARD: Refusal = one_divergence("forward_kl");
const JS: Refusal = one_divergence("js_divergence");
const ALPHA: Refusal = one_divergence("alpha_divergence");
