//! What a token loss says of itself.

/// A loss of one token.
pub struct TokenLoss {
    pub name: &'static str,
    /// Other names that are taken for it.
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    /// Maps log π(token) to the loss, in nats, and its derivative by log π.
    pub of: fn(f64) -> (f64, f64),
}
