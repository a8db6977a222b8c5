//! The repository itself: its layers, its pages, and a run's report in a browser.

mod docs;
mod layers;
mod report;
