//! `defaults:` lists: composition of one tree from files, groups and packages, by the rules of Hydra 1.3.

mod entry;
mod file;
mod layers;
mod merged;

pub(crate) use file::ConfigFile;
pub(crate) use merged::compose;
