//! The repository itself: its layers, its pages, and a run's report in a browser.

mod docs;
mod features;
mod layers;
mod prose;
mod report;
