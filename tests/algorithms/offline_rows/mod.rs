//! Rows of the stages around reinforcement learning, against the ids, masks and bins of TRL, OpenRLHF and verl
//! (`offline/data.json`, `offline/packing.json`).

mod differences;
mod openrlhf;
mod packing;
mod pairs;
mod setting;
mod supervised;
mod turns;
mod unpaired;
mod verl;
