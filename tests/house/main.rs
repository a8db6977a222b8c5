//! The house itself: its layers, its pages, and the report of a run as a browser shows it.

mod docs;
mod layers;
mod report;
