//! Settings: the files of defaults, Hydra's rules, keys and files written for verl, and the schemas for editors.

mod hydra;
mod schemas;
mod settings;
mod verl;
