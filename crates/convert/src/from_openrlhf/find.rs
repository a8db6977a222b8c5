//! Finds the call of a program of OpenRLHF, by module or by path: `… openrlhf.cli.train_ppo_ray …`.

use crate::peers::{LaunchInfo, TrainerCall, stem};

/// Finds the call among the words of a program.
pub(super) fn find(words: &[String]) -> Option<TrainerCall> {
    let is_call = |word: &String| word.replace('/', ".").contains("openrlhf.cli.");
    let at = words.iter().position(is_call)?;
    Some(TrainerCall { stage: stem(&words[at]).to_string(), rest: at + 1, script: None })
}

/// Returns no number of processes: OpenRLHF's batch sizes are totals of all processes.
pub(super) fn launch(_: &TrainerCall, _: &[String]) -> LaunchInfo {
    LaunchInfo::default()
}
