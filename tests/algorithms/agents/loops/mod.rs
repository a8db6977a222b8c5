//! The loops of conversations, compared with verl, TRL and OpenRLHF for the same turns, tools and users.

mod openrlhf;
mod own;
mod properties;
mod scripted;
mod trl;
mod users;
mod verl;
