//! The call of one of OpenRLHF's programs in the words of a program: `… openrlhf.cli.train_ppo_ray …`, by module or by path.

use crate::peers::{LaunchInfo, TrainerCall, stem};

/// Finds the call in the words of a program.
pub fn find(words: &[String]) -> Option<TrainerCall> {
    let is_call = |word: &String| word.replace('/', ".").contains("openrlhf.cli.");
    let at = words.iter().position(is_call)?;
    Some(TrainerCall { stage: stem(&words[at]).to_string(), rest: at + 1, script: None })
}

/// Returns nothing to count: OpenRLHF's sizes are those of all processes together.
pub fn launch(_: &TrainerCall, _: &[String]) -> LaunchInfo {
    LaunchInfo::default()
}
