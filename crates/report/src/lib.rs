//! Reads the folders of runs: the standing of each run, and all of it as one page that needs no network (`trainer report`).
//!
//! Reading order: [`folder`] finds runs, [`record`] determines how one stands, [`series`] and `samples` read its files,
//! [`gather`] puts them into the page's JSON, [`page`] into the page, and [`watch`] serves the page while the run is active.

pub mod folder;
pub mod gather;
pub mod page;
pub mod record;
mod samples;
pub mod series;
pub mod show;
#[cfg(test)]
mod standings;
mod tail;
pub mod watch;
