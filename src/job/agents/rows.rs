//! What rows ask of the agents of a run, checked before the first conversation.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::start::{Agents, ENVIRONMENT, SERVER, TEXT_ENVIRONMENT};
use crate::data::Prompt;
use crate::rollout::Sampling;

/// The settings of tools that loops of the user's own read too.
const TOOLS_OF_OWN_LOOPS: [&str; 2] = ["multi_turn.tool_config_path", "multi_turn.function_tool_path"];

impl Agents {
    /// Begins the conversation of every row, without asking anybody anything.
    ///
    /// # Errors
    /// The first row that names what there is not, or lacks what its tools or its user need; tools, users, environments or loops
    /// that no row uses.
    pub fn check<'a>(&self, prompts: impl Iterator<Item = &'a Arc<Prompt>>) -> Result<()> {
        let group = self.group;
        let mut loops = BTreeSet::from([self.default.clone()]);
        for prompt in prompts {
            self.begin(prompt, "check", &Sampling::PLAIN).with_context(|| prompt.place())?;
            loops.insert(prompt.agent.clone());
        }
        let own: Vec<&str> = self.own_loops().iter().map(|own| own.name.as_str()).collect();
        let has_own = own.iter().any(|name| loops.contains(*name));
        if !own.is_empty() && !has_own {
            bail!(
                "{group}.agent.agent_loop_config_path: no row asks for {}: write {group}.agent.default_agent_loop={}, or agent_name in \
                 rows",
                own.join(" or "),
                own[0]
            );
        }
        for (name, settings) in &self.read_by {
            // Loops of the user's own get verl's tools of Python files, as in verl.
            let is_read =
                |key: &str| loops.contains(*name) || has_own && self.built_in.is_empty() && TOOLS_OF_OWN_LOOPS.contains(&key);
            let unread: Vec<&str> = settings.iter().copied().filter(|key| !is_read(key)).collect();
            if !unread.is_empty() {
                bail!(
                    "{group}.{} is read by {name}, and no row asks for it: write {group}.agent.default_agent_loop={name}, or \
                     agent_name: {name} in rows",
                    unread.join(" and ")
                );
            }
        }
        Ok(())
    }

    /// True if rows that name no loop need no reward function.
    pub fn scores_by_default(&self) -> bool {
        self.scores_in(&self.default)
    }

    /// True if the loop of a row scores its conversation itself, so that no reward function is asked.
    pub fn scores(&self, prompt: &Prompt) -> bool {
        self.scores_in(&prompt.agent)
    }

    fn scores_in(&self, name: &str) -> bool {
        let rewards = || self.host.as_ref().is_some_and(|host| host.offers().environments.iter().any(|one| one.rewards));
        match name {
            TEXT_ENVIRONMENT => true,
            SERVER => self.program_scores,
            ENVIRONMENT => self.environment_scores && rewards(),
            own => self.own_loops().iter().any(|one| one.name == own && one.scores),
        }
    }
}
