//! Rewards from a server, by the protocol of OpenRLHF's remote reward models (`utils/agent.py` and `cli/serve_rm.py` there).
//!
//! One request per response, as in OpenRLHF 0.11:
//! `{"query": [prompt + response], "prompts": [prompt], "labels": [ground truth]}`, answered by
//! `{"rewards": [r], "scores": [s], "extra_logs": {name: [x]}}`, of which only `rewards` is needed.

mod answer;
mod call;
mod endpoint;
mod judge;
#[cfg(test)]
mod tests;

pub use answer::read as read_answer;
pub use judge::{Remote, RemoteOptions};
