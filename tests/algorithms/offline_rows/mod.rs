//! Rows of the stages around reinforcement learning, against the ids, masks and bins that TRL and verl made of them
//! (`offline/data.json`, `offline/packing.json`).

mod differences;
mod packing;
mod pairs;
mod setting;
mod supervised;
mod unpaired;
mod verl;
