//! `defaults:` lists: one tree from many files, groups and packages. The rules are those of Hydra 1.3.

mod entry;
mod file;
mod layers;
mod merged;

pub use file::File;
pub use merged::compose;
