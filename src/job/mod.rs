//! What every training run needs, whatever it trains: the parts that `trainer` and `pipelines` share.

pub mod unused_options;
