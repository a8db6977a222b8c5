//! Settings: the files of defaults, Hydra's rules, keys, files and commands written for other programs, and the schemas for
//! editors.

mod hydra;
mod infinite;
mod launchers;
mod open_mappings;
mod peers;
mod processes;
mod schemas;
mod settings;
mod suggestions;
mod verl;
