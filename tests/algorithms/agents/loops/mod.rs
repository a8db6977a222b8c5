//! The loops of conversations, beside what verl, TRL and OpenRLHF return for the same turns, tools and users.

mod openrlhf;
mod own;
mod properties;
mod scripted;
mod trl;
mod users;
mod verl;
