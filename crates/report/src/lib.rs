//! Reads the folders of runs: the status of each run, and all of it as one page that needs no network (`trainer report`).
//!
//! Reading order: [`folder`] finds runs, [`record`] determines a run's status, [`compare`] the settings in which runs differ;
//! [`series`] and `samples` read the files of a run, [`disk`] adds up their sizes. [`headline`] names the most important metrics,
//! and [`markdown`] shows them in a comment. [`gather`] puts them into the page's JSON, [`page`] builds the page, and [`watch`]
//! serves it while the run is active. [`sweep`] compares the runs of a sweep.

pub mod compare;
pub mod disk;
pub mod folder;
pub mod gather;
pub mod headline;
pub mod markdown;
pub mod page;
pub mod record;
pub mod replay_page;
mod samples;
pub mod series;
pub mod show;
#[cfg(test)]
mod status_tests;
pub mod sweep;
mod tail;
pub mod watch;
