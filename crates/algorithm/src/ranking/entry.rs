//! The entry of a loss of reward models.

/// A loss of reward models.
pub struct RankingLoss {
    /// The name in settings.
    pub name: &'static str,
    pub doc: &'static str,
    /// The settings that not every loss reads.
    pub reads: &'static [&'static str],
    pub form: RankingForm,
}

/// The data of a loss.
#[derive(Clone, Copy)]
pub enum RankingForm {
    /// Pairs of texts. The function maps r⁺ − r⁻, and the margin by which it should be above 0, to the loss and its derivative by
    /// r⁺ − r⁻.
    Pairs(fn(f64, f64) -> (f64, f64)),
    /// Steps with a label each.
    Steps,
}

/// The settings of losses of pairs.
pub(super) const OF_PAIRS: &[&str] =
    &["data.chosen_key", "data.rejected_key", "data.margin_key", "algorithm.center_rewards_coefficient"];
