//! Agents compared with verl, TRL and OpenRLHF.

mod calls;
mod endpoint;
mod loops;
mod mcp;
mod rewards;
mod schemas;
mod server;
mod session;
mod session_calls;
mod session_chaos;
mod session_start;
mod streams;
mod tokens;
