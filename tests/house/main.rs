//! The repository itself: its layers, its pages, and a run's report in a browser.

mod docs;
mod extending;
mod features;
mod layers;
mod prose;
mod names;
mod report;
