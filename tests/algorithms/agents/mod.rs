//! Agents beside verl, TRL and OpenRLHF.

mod calls;
mod endpoint;
mod loops;
mod rewards;
mod schemas;
mod session;
mod session_chaos;
mod tokens;
