//! Sweeps: their jobs, grouped by the swept values without the seeds, with the mean and the spread over the seeds.
//!
//! [`read`](Sweep::read) reads the records of the jobs, `group` makes combinations of them, [`rows`](Sweep::rows) tables for
//! programs, and [`page`] one page.

mod group;
mod jobs;
mod page;
mod table;

pub use group::Combination;
pub use jobs::{Sweep, folder_of, last_result};
pub use page::page;
