//! Finds the call of a trainer of TRL: `trl grpo …`, `accelerate launch … grpo.py …`, `python -m trl.scripts.grpo`.

use super::stages::{ABSENT, TRAINERS};
use crate::peers::{LaunchInfo, TrainerCall};
use crate::peers::{flag, stem};
use crate::shell::{TargetForm, targets};

/// Parts of script names, with their stages; the longer ones first.
const IN_SCRIPTS: &[(&str, &str)] = &[
    ("reward_modeling", "reward"),
    ("async_grpo", "async_grpo"),
    ("iw_opd", "iw_opd"),
    ("dpo_online", "online_dpo"),
    ("online_dpo", "online_dpo"),
    ("nash_md", "nash_md"),
    ("vllm_serve", "vllm_serve"),
    ("ppov2", "ppo"),
];

/// Flags that `trl` passes to `accelerate launch`.
const LAUNCHER_FLAGS: &[&str] =
    &["accelerate_config", "num_processes", "num_machines", "main_process_port", "mixed_precision", "config_file", "gpu_ids"];

/// The names of `trl … --accelerate_config NAME`, with their numbers of processes.
const ACCELERATE: &[(&str, usize)] = &[
    ("single_gpu", 1),
    ("multi_gpu", 8),
    ("zero1", 8),
    ("zero2", 8),
    ("zero3", 8),
    ("fsdp1", 8),
    ("fsdp2", 8),
    ("fsdp_qlora", 8),
    ("deepspeed_zero1", 8),
    ("deepspeed_zero2", 8),
    ("deepspeed_zero3", 8),
    ("context_parallel_2gpu", 2),
];

/// Launchers that set the number of processes that they start.
const COUNTED: &[&str] = &[
    "accelerate",
    "accelerate-launch",
    "accelerate.commands.launch",
    "torchrun",
    "deepspeed",
    "torch.distributed.run",
    "torch.distributed.launch",
];

/// Folders of other libraries' commands.
const FOREIGN: &[&str] = &["openrlhf/cli/", "verl/trainer/"];

/// Finds the call among the words of a program.
pub(super) fn find(words: &[String]) -> Option<TrainerCall> {
    let target = targets(words).into_iter().next()?;
    let rest = target.at + 1;
    if target.form == TargetForm::Program {
        let stage = words.get(rest).filter(|word| !word.starts_with('-')).cloned().unwrap_or_default();
        let rest = rest + usize::from(!stage.is_empty());
        return Some(TrainerCall { stage, rest, script: None });
    }
    let path = target.name.replace('.', "/");
    if FOREIGN.iter().any(|folder| path.contains(folder)) {
        return None;
    }
    let is_trl = ["trl/scripts/", "examples/scripts/", "trl/commands/"].iter().any(|folder| path.contains(folder));
    let script = (!is_trl).then(|| target.name.clone());
    Some(TrainerCall { stage: stage(stem(&target.name)), rest, script })
}

/// Returns the stage in the name of a script; empty without a known one.
fn stage(stem: &str) -> String {
    let stem = stem.to_lowercase().replace('-', "_");
    if let Some((_, stage)) = IN_SCRIPTS.iter().find(|(part, _)| stem.contains(part)) {
        return (*stage).to_string();
    }
    let known = |part: &&str| {
        TRAINERS.iter().any(|trainer| trainer.name == *part)
            || ABSENT.iter().any(|(names, _)| names.split(' ').any(|name| name == *part))
    };
    stem.split('_').find(known).unwrap_or_default().to_string()
}

/// Reads the number of processes.
pub(super) fn launch(call: &TrainerCall, words: &[String]) -> LaunchInfo {
    let target = targets(words).into_iter().next();
    let is_trl = target.as_ref().is_some_and(|target| target.form == TargetForm::Program);
    let launchers = target.map(|target| target.launchers).unwrap_or_default();
    let counted = launchers.iter().filter(|(name, _)| COUNTED.contains(&name.as_str()));
    let before: Vec<String> = counted.flat_map(|(_, range)| words[range.clone()].iter().cloned()).collect();
    let is_launcher_flag = |index: &usize| {
        let name = words[*index].trim_start_matches('-').split('=').next().unwrap_or_default();
        is_trl && words[*index].starts_with("--") && LAUNCHER_FLAGS.contains(&name)
    };
    let starts: Vec<usize> = (call.rest..words.len()).filter(is_launcher_flag).collect();
    let has_value = |index: &usize| !words[*index].contains('=') && index + 1 < words.len();
    let values: Vec<usize> = starts.iter().copied().filter(has_value).map(|index| index + 1).collect();
    let launch_words = starts.iter().chain(&values).map(|index| words[*index].clone());
    let flags: Vec<String> = before.iter().cloned().chain(launch_words).collect();
    let number = |names: &[&str]| flag(&flags, names).and_then(|text| text.parse::<usize>().ok());
    let nodes = number(&["nnodes", "num_machines"]).unwrap_or(1);
    let named = flag(&flags, &["accelerate_config", "config_file"]).and_then(|name| {
        let name = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".yaml");
        ACCELERATE.iter().find(|(known, _)| *known == name).map(|(_, processes)| *processes)
    });
    // accelerate counts the processes of all machines, torchrun those of one machine.
    let each = number(&["nproc_per_node", "num_gpus"]).map(|each| each.saturating_mul(nodes));
    let is_launched = !before.is_empty();
    let processes = number(&["num_processes"]).or(each).or(named);
    LaunchInfo { processes, is_launched, words: starts.into_iter().chain(values).collect() }
}
