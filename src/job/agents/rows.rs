//! Checks, before the first conversation, what rows ask of the agents of a run.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::start::{Agents, ENVIRONMENT, SERVER, SINGLE_TURN, TEXT_ENVIRONMENT};
use burnish_config::schema::AgentKeys;
use burnish_data::{AGENT_NAME, Prompt};
use burnish_rollout::Sampling;

/// Settings of tools that the user's loops read too.
const TOOLS_OF_CUSTOM_LOOPS: [&str; 2] = ["multi_turn.tool_config_path", "multi_turn.function_tool_path"];

/// Checks the rows of a run without agents, whose responses are single turns.
///
/// # Errors
/// If a row names a loop of several turns; reports the first.
pub fn check_single_turns<'a>(keys: &AgentKeys, mut prompts: impl Iterator<Item = &'a Arc<Prompt>>) -> Result<()> {
    let Some(prompt) = prompts.find(|prompt| !["", SINGLE_TURN].contains(&prompt.agent.as_str())) else { return Ok(()) };
    let needed = keys.needed_by(&prompt.agent);
    let needed = if needed.is_empty() { vec!["agent.agent_loop_config_path"] } else { needed };
    Err(nothing_to_call(keys.group, &keys.agent.default_agent_loop, &prompt.agent, &needed)).with_context(|| prompt.place())
}

/// Returns the error of a row whose loop has no tools to call. `default`: the default loop.
fn nothing_to_call(group: &str, default: &str, name: &str, needed: &[&str]) -> anyhow::Error {
    let needed: Vec<String> = needed.iter().map(|key| format!("{group}.{key}=FILE")).collect();
    anyhow::anyhow!(
        "{AGENT_NAME} is {name}, which has nothing to call: write {}; or {group}.agent.read_agent_name=false, and every row has \
         {default}, the loop of {group}.agent.default_agent_loop",
        needed.join(", or ")
    )
}

impl Agents {
    /// Begins the conversation of every row, without starting a turn.
    ///
    /// # Errors
    /// If a row names something unknown, or lacks what its tools or its user need; if no row uses some tools, users, environments
    /// or loops.
    pub fn check<'a>(&self, prompts: impl Iterator<Item = &'a Arc<Prompt>>) -> Result<()> {
        let mut loops = BTreeSet::new();
        for prompt in prompts {
            if let Some((_, needed)) = self.read_by.get(prompt.agent.as_str()).filter(|(set, _)| set.is_empty()) {
                return Err(nothing_to_call(self.group, &self.default, &prompt.agent, needed)).with_context(|| prompt.place());
            }
            self.begin(prompt, "check", &Sampling::PLAIN).with_context(|| prompt.place())?;
            loops.insert(prompt.agent.as_str());
        }
        let own: Vec<&str> = self.custom_loops().iter().map(|own| own.name.as_str()).collect();
        let has_own = own.iter().any(|name| loops.contains(name));
        if !own.is_empty() && !has_own {
            bail!(
                "{}.agent.agent_loop_config_path: no row asks for {}{}",
                self.group,
                own.join(" or "),
                self.remedy(own[0], &loops)
            );
        }
        for (name, (settings, _)) in &self.read_by {
            // The user's loops get verl's tools of Python files, as in verl.
            let is_read =
                |key: &str| loops.contains(name) || has_own && self.built_in.is_empty() && TOOLS_OF_CUSTOM_LOOPS.contains(&key);
            let unread: Vec<&str> = settings.iter().copied().filter(|key| !is_read(key)).collect();
            if !unread.is_empty() {
                bail!(
                    "{}.{} is read by {name}, and no row asks for it{}",
                    self.group,
                    unread.join(" and "),
                    self.remedy(name, &loops)
                );
            }
        }
        Ok(())
    }

    /// Returns the setting to write so that rows use this loop. `loops`: the loops that rows use now.
    fn remedy(&self, name: &str, loops: &BTreeSet<&str>) -> String {
        let group = self.group;
        if self.default != name {
            return format!(": write {group}.agent.default_agent_loop={name}, or {AGENT_NAME}: {name} in rows");
        }
        let names = loops.iter().copied().collect::<Vec<_>>().join(", ");
        format!(
            ", because the column {AGENT_NAME} of every row names another loop ({names}): write {group}.agent.read_agent_name=false, \
             or remove the column"
        )
    }

    /// Returns true if rows that name no loop need no reward function.
    pub(crate) fn scores_by_default(&self) -> bool {
        self.scores_in(&self.default)
    }

    /// Returns true if the loop of a row scores its conversation itself, so that no reward function is called.
    pub fn scores(&self, prompt: &Prompt) -> bool {
        self.scores_in(&prompt.agent)
    }

    fn scores_in(&self, name: &str) -> bool {
        let rewards = || self.host.as_ref().is_some_and(|host| host.offers().environments.iter().any(|one| one.rewards));
        match name {
            TEXT_ENVIRONMENT => true,
            SERVER => self.program_scores,
            ENVIRONMENT => self.environment_scores && rewards(),
            own => self.custom_loops().iter().any(|one| one.name == own && one.scores),
        }
    }
}
