//! What the folders of runs say: how each run stands, and all of it as one page that needs no network (`trainer report`).
//!
//! Reading order: [`folder`] finds runs, [`record`] says how one stands, [`series`] and [`samples`] read its files, [`gather`] puts
//! them into the page's JSON, [`page`] into the page, and [`watch`] serves it while the run goes on.

pub mod folder;
pub mod gather;
pub mod page;
pub mod record;
mod samples;
pub mod series;
pub mod show;
mod tail;
pub mod watch;
