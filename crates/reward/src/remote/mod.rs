//! Rewards from a server, by the protocol of OpenRLHF's remote reward models (`utils/agent.py` and `cli/serve_rm.py` there).
//!
//! Sends one request per response, as OpenRLHF 0.11 does:
//! `{"query": [prompt + response], "prompts": [prompt], "labels": [ground truth]}`. The server replies with
//! `{"rewards": [r], "scores": [s], "extra_logs": {name: [x]}}`; only `rewards` is required.

mod call;
mod endpoint;
mod judge;
mod reply;
#[cfg(test)]
mod tests;

pub use call::client;
pub use judge::{Remote, RemoteOptions};
pub use reply::read as read_answer;
