//! What every training run needs, whatever it trains: the parts that [`crate::trainer`] and [`crate::pipelines`] share.

pub mod unused_options;
