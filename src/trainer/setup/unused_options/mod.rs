//! Settings of reinforcement learning that have no effect with the other settings; see [`crate::job::unused_options`].

mod algorithm;
#[cfg(test)]
mod reads_tests;
mod run;
mod warn;

pub(super) use warn::warn;
