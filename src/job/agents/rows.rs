//! What rows ask of the agents of a run, checked before the first conversation.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::start::{Agents, ENVIRONMENT, TEXT_ENVIRONMENT};
use crate::data::Prompt;

impl Agents {
    /// Begins the conversation of every row, without asking anybody anything.
    ///
    /// # Errors
    /// The first row that names what there is not, or lacks what its tools or its user need; tools, users or environments that no row uses.
    pub fn check<'a>(&self, prompts: impl Iterator<Item = &'a Arc<Prompt>>) -> Result<()> {
        let mut loops = BTreeSet::from([self.default.clone()]);
        for prompt in prompts {
            self.begin(prompt, "check").with_context(|| prompt.place())?;
            loops.insert(prompt.agent.clone());
        }
        for (name, settings) in &self.read_by {
            if !loops.contains(*name) && !settings.is_empty() {
                bail!(
                    "actor_rollout_ref.rollout.{} is read by {name}, and no row asks for it: write \
                     actor_rollout_ref.rollout.agent.default_agent_loop={name}, or agent_name: {name} in rows",
                    settings.join(" and ")
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
            ENVIRONMENT => self.environment_scores && rewards(),
            _ => false,
        }
    }
}
