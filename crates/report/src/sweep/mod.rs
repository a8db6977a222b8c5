//! Sweeps: their jobs, grouped by the swept values without the seeds, with the mean and the spread over the seeds.
//!
//! `jobs` reads the records of the jobs, `group` makes combinations of them, `table` shows them as text and as rows for programs,
//! and [`page()`] as one page.

mod group;
mod jobs;
mod page;
mod table;

pub use jobs::{Sweep, folder_of, last_result};
pub use page::page;
