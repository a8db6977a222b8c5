//! The repository itself: its layers, its pages and their commands, its site, its prose, its packages, and a run's report in a browser.
//! The repository itself: its layers, its pages, its site, its prose, its packages, and a report of a run in a browser.

mod automation;
mod commands;
mod debugging;
mod docs;
mod extending;
mod features;
mod layers;
mod models;
mod names;
mod packaging;
mod prose;
mod report;
mod site;
mod type_names;
mod visibility;
