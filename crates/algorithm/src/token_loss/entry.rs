//! The entry of a token loss.

/// A loss of one token.
pub struct TokenLoss {
    pub name: &'static str,
    /// Aliases of the name.
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    /// Maps log π(token) to the loss, in nats, and its derivative by log π.
    pub loss_and_slope: fn(f64) -> (f64, f64),
}
