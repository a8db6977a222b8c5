//! The names of agent files and settings in messages.

use burnish_python::words::Words;

/// The settings that control how agent files run.
pub(super) static WORDS: Words = Words {
    file: "an agent file",
    files: "agent files",
    python: "reward.python",
    pass_env: "reward.pass_env",
    memory_limit_mb: "actor_rollout_ref.rollout.agent.memory_limit_mb",
    cpu_limit: "reward.cpu_limit",
};
