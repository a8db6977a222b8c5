//! Finds the call of a program of OpenRLHF, by module or by path: `… openrlhf.cli.train_ppo_ray …`.

use crate::peers::{LaunchInfo, TrainerCall, stem};
use crate::shell::targets;

/// Finds the call among the words of a program.
pub(super) fn find(words: &[String]) -> Option<TrainerCall> {
    let is_openrlhf = |name: &str| format!(".{}", name.replace('/', ".")).contains(".openrlhf.cli.");
    let target = targets(words).into_iter().find(|target| is_openrlhf(&target.name))?;
    Some(TrainerCall { stage: stem(&target.name).to_string(), rest: target.at + 1, script: None })
}

/// Returns no number of processes: OpenRLHF's batch sizes are totals of all processes.
pub(super) fn launch(_: &TrainerCall, _: &[String]) -> LaunchInfo {
    LaunchInfo::default()
}
