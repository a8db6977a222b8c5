//! Reasons why a replay may differ from the record, named before it starts.

use serde_json::Value;

use super::recorded::RecordedSteps;
use burnish_model::ops::cpu_kernels;
use burnish_run::RunInfo;
use burnish_util::platform::host_name;

/// A setting that leads out of this process.
struct Obstacle {
    /// End of the key.
    key: &'static str,
    /// True for values that matter.
    is_one: fn(&Value) -> bool,
    why: &'static str,
}

const fn obstacle(key: &'static str, why: &'static str) -> Obstacle {
    Obstacle { key, is_one: |value| !value.is_null(), why }
}

const PYTHON: &str = "Python is called again: its results must depend only on its arguments";
const SERVER: &str = "a server is asked again, and may answer differently";

const OBSTACLES: &[Obstacle] = &[
    Obstacle {
        key: "trainer.device",
        is_one: |value| !value.as_str().is_some_and(|device| device.starts_with("cpu")),
        why: "a GPU may add numbers in another order, so the last digits may differ",
    },
    obstacle("reward_model.remote_url", SERVER),
    obstacle("reward.sandbox_fusion.url", SERVER),
    obstacle("agent.server.path", "a program leads conversations again, at its own pace"),
    obstacle("multi_turn.tool_config_path", "tools are called again, those of servers too"),
    obstacle("multi_turn.interaction_config_path", "users reply again"),
    obstacle("multi_turn.function_tool_path", PYTHON),
    obstacle("agent.functions_path", PYTHON),
    obstacle("agent.environment.path", PYTHON),
    obstacle("agent.agent_func_path", PYTHON),
    obstacle("custom_reward_function.path", PYTHON),
    obstacle("post_processing.path", PYTHON),
];

/// Returns a line for each reason why a replay may differ from the record.
pub(super) fn find(recorded: &RecordedSteps) -> Vec<String> {
    let info = &recorded.info;
    let mut lines = of_machine(info);
    for setting in &info.config {
        let found = OBSTACLES.iter().find(|one| setting.key.ends_with(one.key) && (one.is_one)(&setting.value));
        lines.extend(found.map(|one| format!("{}={}: {}", setting.key, shown(&setting.value), one.why)));
    }
    lines
}

/// Returns the reasons in the program and the machine.
fn of_machine(info: &RunInfo) -> Vec<String> {
    let (version, host) = (env!("CARGO_PKG_VERSION"), host_name());
    let mut lines = Vec::new();
    if info.version != version {
        lines.push(format!("burnish {} made the run, and this is {version}", info.version));
    }
    let (theirs, ours) = (info.instructions.as_str(), cpu_kernels());
    if !theirs.is_empty() && theirs != ours {
        lines.push(format!("the run computed with {theirs}, and this processor computes with {ours}: the last digits differ"));
    } else if info.host != host {
        lines.push(format!("the run was on {}, and this is {host}: another processor may round differently", info.host));
    }
    lines
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_config::kinds::KINDS;

    #[test]
    fn other_instructions_are_named() {
        let lines = |instructions: &str| {
            let mut info = RunInfo::new("ppo", "p", "e");
            info.instructions = instructions.to_owned();
            of_machine(&info)
        };
        assert_eq!(lines(cpu_kernels()), Vec::<String>::new());
        assert_eq!(lines(""), Vec::<String>::new(), "old records do not say");
        let other = lines("another kind");
        assert!(other.len() == 1 && other[0].contains("the run computed with another kind"), "{other:?}");
    }

    #[test]
    fn every_obstacle_is_a_setting() {
        let keys: Vec<String> =
            KINDS.iter().flat_map(|known| known.defaults().unwrap().settings()).map(|(key, ..)| key).collect();
        for one in OBSTACLES {
            assert!(keys.iter().any(|key| key.ends_with(one.key)), "{}", one.key);
        }
    }
}
